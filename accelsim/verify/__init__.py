"""Verify: the main job. One network through every backend, compared with every golden.

What comes in: `VerifyOptions`. What goes out: a `RunRecord` and a run folder. This is where all
rooms meet; it holds no arithmetic and draws no tables.
"""

from __future__ import annotations

from accelsim.verify.options import VerifyOptions
from accelsim.verify.record import RunRecord
from accelsim.verify.run import fail, new_record, verify

__all__ = ["RunRecord", "VerifyOptions", "fail", "new_record", "verify"]
