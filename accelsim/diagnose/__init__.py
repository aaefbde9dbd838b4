"""Diagnosis: a network is right in float and wrong on the NPU; where does it go wrong?

What comes in: `DiagnoseOptions`. What goes out: a `DiagnoseRecord` and a run folder that `accelsim
replay` repeats. One input walks down the rungs: float, the framework's int8, the QDQ graph on TVM,
the integer reference, the simulator, the RTL. It holds no arithmetic of the NPU.
"""

from __future__ import annotations

from accelsim.diagnose.document import document, text
from accelsim.diagnose.record import DiagnoseOptions, DiagnoseRecord
from accelsim.diagnose.run import diagnose

__all__ = ["DiagnoseOptions", "DiagnoseRecord", "diagnose", "document", "text"]
