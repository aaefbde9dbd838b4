"""accelsim: an NPU simulator and co-verification environment.

A quantized network is compiled for the NPU in `rtl/`, run on a Python simulator and on the RTL, and
compared layer by layer with golden results from TVM and PyTorch. Importing the package imports none
of its rooms.
"""

from __future__ import annotations

__version__ = "0.1.0"
