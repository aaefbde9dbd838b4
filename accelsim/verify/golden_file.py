"""The golden of a user's file: what the network's first output should be, sample by sample.

What comes in: outputs of one backend, the file's golden and what the framework makes of the same
samples. What goes out: counts, and what of it fails the run. It must not know layers.

An output of integers equals its golden, or differs where the framework itself gives the golden:
that is a difference from the framework, which layers are judged by. An output of floats may stand
beside the golden of a float model: it has to keep the class and 10 dB of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accelsim.artifacts import QuantizedModel
from accelsim.errors import InputError
from accelsim.verify.input_files import Samples

LEAST_DB = 10.0  # of a float golden: with less, what is left is another output


def check_golden(samples: Samples | None, quantized: QuantizedModel) -> None:
    """Refuse a golden that is not one number for each of the model's first output."""
    golden = None if samples is None else samples.golden
    if samples is None or golden is None:
        return
    if golden.dtype.kind not in "iuf":
        raise InputError(f"{samples.origin}: the golden is {golden.dtype}, which are no numbers")
    if not np.all(np.isfinite(golden)):
        raise InputError(f"{samples.origin}: the golden has values that are not finite")
    kind = quantized.qdq["main"].ret_ty
    shape = tuple(int(extent) for extent in getattr(kind, "fields", [kind])[0].shape)
    batch = next((given[0] for given in quantized.input_shapes if given), 1)
    if math.prod(golden.shape[1:]) * batch != math.prod(shape):
        raise InputError(
            f"{samples.origin}: the golden has shape {golden.shape}; the model's first output has "
            f"shape {shape} in each batch of {batch}"
        )


@dataclass(slots=True)
class GoldenCount:
    """What one backend's first output has of the golden."""

    elements: int = 0
    different: int = 0
    furthest: float = 0.0
    strange: int = 0  # integers that differ where the framework gives something else, too
    classes: int = 0  # samples of another class
    signal: float = 0.0  # sums of squares, of floats
    noise: float = 0.0

    def add(
        self, output: np.ndarray, golden: np.ndarray, framework: np.ndarray | None, batch: int
    ) -> None:
        """Count one batch; all three have the same number of elements."""
        wanted = golden.reshape(output.shape).astype(np.float64)
        apart = np.abs(output.astype(np.float64) - wanted)
        wrong = apart > 0
        self.elements += wrong.size
        self.different += int(wrong.sum())
        self.furthest = max(self.furthest, float(apart.max(initial=0.0)))
        if output.dtype.kind in "iu":
            theirs = None if framework is None else framework.reshape(output.shape) == wanted
            self.strange += int((wrong if theirs is None else wrong & ~theirs).sum())
        else:
            self.signal += float(np.square(wanted).sum())
            self.noise += float(np.square(apart).sum())
        found, theirs_class = classes_of(output, batch), classes_of(wanted, batch)
        if found is not None and theirs_class is not None:
            self.classes += int((found != theirs_class).sum())

    def problems(self, where: str) -> list[str]:
        """What fails the run, one sentence each; `where` names samples and backend."""
        found = []
        if self.classes:
            found.append(f"{where}: the class of {self.classes:,} is not the golden's")
        if self.strange:
            found.append(
                f"{where}: {self.strange:,} of {self.elements:,} elements are not the golden's, "
                f"by up to {self.furthest:g}, and the framework does not give it either"
            )
        if self.noise > self.signal * 10 ** (-LEAST_DB / 10):
            kept = 10 * math.log10(self.signal / self.noise) if self.signal else -math.inf
            found.append(
                f"{where}: {kept:.1f} dB of the golden are left, less than {LEAST_DB:g}: the "
                "output is another one"
            )
        return found


def classes_of(output: np.ndarray, batch: int) -> np.ndarray | None:
    """The class of each sample, the first of the largest; None where there is one value only."""
    rows = output.reshape(batch, -1)
    return rows.argmax(1) if rows.shape[1] > 1 else None
