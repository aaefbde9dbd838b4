"""Post-training quantization that is chosen, measured and reported: `accelsim quantize`.

What comes in: a float model with calibration data, and labelled samples where there are some. What
goes out: a QDQ `.pt2` that `accelsim verify` takes, and a report: what was tried, accuracy from
float to int8, signal to quantization noise by layer, and which layers cost the accuracy. It must
not know the hardware.

Observers, equalisation and bias correction are chosen by the signal-to-quantization-noise ratio of
the network's outputs on calibration data, never by the labels that judge the result.
`docs/quantization.md` explains the options.
"""

from __future__ import annotations

from accelsim.calibrate.document import document, text
from accelsim.calibrate.files import prepare_base
from accelsim.calibrate.options import QuantizeOptions
from accelsim.calibrate.record import QuantizeRecord
from accelsim.calibrate.run import checkpoint, new_record, run
from accelsim.calibrate.training import check_optimizer

__all__ = [
    "QuantizeOptions",
    "QuantizeRecord",
    "check_optimizer",
    "checkpoint",
    "document",
    "new_record",
    "prepare_base",
    "run",
    "text",
]
