"""A metric as a value, and where it comes from.

What comes in: a name or `FILE.py:FUNCTION`. What goes out: a `Metric`. It must not know networks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from accelsim.errors import InputError
from accelsim.importer.functions import user_function
from accelsim.metrics.classification import top_k

Outputs = tuple[np.ndarray, ...]  # each (samples, …)

DEFAULT = "top1"


@dataclass(frozen=True, slots=True)
class Metric:
    """A function of outputs and labels with the name that the user gave."""

    name: str
    function: Callable[[Any, np.ndarray], Any]

    def measure(self, outputs: Outputs, labels: np.ndarray) -> dict[str, float]:
        """The numbers by name, the one that counts first.

        Raises InputError, in one sentence, for whatever a user's function does wrong.
        """
        given = outputs[0] if len(outputs) == 1 else outputs
        return _numbers(self.function(given, labels), self.name)


def load_metric(spec: str = DEFAULT) -> Metric:
    """`top1`, `top5` or `FILE.py:FUNCTION`.

    Raises InputError for anything else, and for a file or function that cannot be had.
    """
    if spec in ("top1", "top5"):
        return Metric(spec, top_k(int(spec.removeprefix("top"))))
    if ".py:" not in spec:
        raise InputError(f"metric '{spec}' is not one of top1, top5 and FILE.py:FUNCTION")
    return Metric(spec, user_function(spec, "metric"))


def _numbers(result: Any, name: str) -> dict[str, float]:
    """What a metric returned, as plain numbers by name."""
    found = result if isinstance(result, Mapping) else {name.rpartition(":")[2]: result}
    if not found:
        raise InputError(f"metric {name} returned an empty dict; return a number or some by name")
    numbers: dict[str, float] = {}
    for key, value in found.items():
        try:
            number = float(value)
        except (TypeError, ValueError, RuntimeError):
            raise InputError(
                f"metric {name} returned a {type(value).__name__} for '{key}'; return a number or "
                "a dict of numbers"
            ) from None
        if not math.isfinite(number):
            raise InputError(f"metric {name} returned {number} for '{key}', which ranks nothing")
        numbers[str(key)] = number
    return numbers
