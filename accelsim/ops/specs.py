"""Specs of an operator: its edge cases, drawn ones, and specs as JSON that replays a case.

What comes in: an operator, a configuration, a seed, or text. What goes out: specs. It must not know
how a case is computed.
"""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from typing import Any
from zlib import crc32

import numpy as np

from accelsim.errors import InputError
from accelsim.ops.case import Spec
from accelsim.ops.operator import Operator
from accelsim.spec.config import Config

VALUES = ("uniform", "ends", "narrow")
ROUNDINGS = ("qnnpack", "fp32", "tflite", "onnxruntime")
MOST_ELEMENTS = 1 << 26  # of an input


def specs_of(operator: Operator, config: Config, seed: int, random: int) -> tuple[Spec, ...]:
    """The edge cases of a configuration, then `random` drawn ones named random0, random1, …"""
    drawn = []
    for number in range(random):
        rng = np.random.default_rng([seed, number, crc32(operator.name.encode())])
        drawn.append(replace(operator.draw(rng, config), name=f"random{number}"))
    return (*operator.edges(config), *drawn)


def to_json(spec: Spec) -> str:
    """The name and the fields that are not at their defaults, on one line."""
    values = {f.name: getattr(spec, f.name) for f in fields(spec)}
    kept = {f.name for f in fields(spec) if f.name == "name" or values[f.name] != f.default}
    return json.dumps({name: values[name] for name in values if name in kept})


def from_json(operator: Operator, text: str) -> Spec:
    """The inverse. Raises InputError, naming the field, where the text is no spec of it."""
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"the case is no JSON: {error}") from None
    known = {f.name: f.default for f in fields(operator.spec)}
    if not isinstance(values, dict) or not isinstance(values.get("name"), str):
        raise InputError("a case is a JSON object with a name")
    for name in values:
        if name not in known:
            raise InputError(f"a case of {operator.name} has no {name!r}: use {', '.join(known)}")
    given = {name: _frozen(value) for name, value in values.items()}
    for name, value in given.items():
        if name != "name" and not _alike(value, known[name]):
            raise InputError(f"{name} of a case of {operator.name} cannot be {value!r}")
    spec = operator.spec(**given)
    if not (_sensible(spec) and operator.legal(spec)):
        raise InputError(f"{operator.name} has no case like {text}")
    return spec


def _sensible(spec: Spec) -> bool:
    """Whether the fields that all operators share can be drawn from."""
    extents = (spec.batch, spec.channels, *spec.size)
    return (
        all(isinstance(one, int) and one > 0 for one in extents)
        and math.prod(extents) <= MOST_ELEMENTS
        and all(isinstance(zero, int) and 0 <= zero <= 255 for zero in spec.zeros)
        and 0 < spec.spread < math.inf
        and 0 <= spec.input_scale < math.inf
        and spec.values in VALUES
        and spec.rounding in ROUNDINGS
    )


def _frozen(value: Any) -> Any:
    return tuple(_frozen(one) for one in value) if isinstance(value, list) else value


def _alike(value: Any, default: Any) -> bool:
    """Whether a value may take the place of a default: numbers for numbers, tuples for tuples."""
    if default is None or value is None:
        return default is None
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, float):
        return isinstance(value, int | float)
    return isinstance(value, type(default))
