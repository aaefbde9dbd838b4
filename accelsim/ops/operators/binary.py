"""Product, minimum and maximum of two tensors, broadcast, or with a constant."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from tvm import relax

from accelsim.ops.case import Case, Spec
from accelsim.ops.modules import Builder
from accelsim.ops.operator import Facts, Operator
from accelsim.ops.pairs import (
    BROADCAST,
    PairSpec,
    draw_pair,
    expanded,
    legal_pair,
    pair_case,
    pair_edges,
    relax_operands,
    torch_operands,
)

Join = Callable[[Any, Any], Any]


def _joins(operator: str) -> tuple[Join, Join]:
    """In PyTorch and in Relax."""
    return {
        "multiply": (torch.mul, relax.op.multiply),
        "minimum": (torch.minimum, relax.op.minimum),
        "maximum": (torch.maximum, relax.op.maximum),
    }[operator]


def _make(rng: np.random.Generator, operator: str, spec: Spec) -> Case:
    return pair_case(rng, operator, spec, _joins(operator)[0])


def _relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    operands = relax_operands(build, case, sources, quantized)
    return build.emit(_joins(case.operator)[1](*operands))


def _torch(case: Case, sources: list[Any]) -> Any:
    return _joins(case.operator)[0](*torch_operands(case, sources))


def _product(case: Case, inputs: list[Any]) -> Any:
    run = torch.ops.quantized.mul_relu if case.spec.relu else torch.ops.quantized.mul
    return run(*expanded(case, inputs), float(case.scale), case.zero)


def _facts(instructions: tuple[str, ...], *exact: str, notes: str = "") -> Facts:
    return Facts(
        types="two int8 or uint8 activations, or one and a constant",
        limits=BROADCAST,
        instructions=instructions,
        roundings=("qnnpack", "fp32", "tflite", "onnxruntime"),
        exact=exact,
        notes=notes,
    )


_operator = partial(
    Operator,
    edges=pair_edges,
    draw=draw_pair,
    make=_make,
    relax=_relax,
    torch=_torch,
    legal=legal_pair,
    spec=PairSpec,
)
_EXTREME = ("load", "store", "pool", "binary")
_NOTE = "operands of other scales are brought to the output's first, which keeps their order"

OPERATORS = (
    _operator(
        "multiply",
        _facts(("load", "store", "binary"), "PyTorch qnnpack", "TFLite"),
        quantized=_product,
    ),
    _operator("minimum", _facts(_EXTREME, "PyTorch", "TFLite", notes=_NOTE), steps=1),
    _operator("maximum", _facts(_EXTREME, "PyTorch", "TFLite", notes=_NOTE), steps=1),
)
