"""Sum and difference of two tensors with scales of their own, broadcast, or with a constant."""

from __future__ import annotations

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


def _make(rng: np.random.Generator, operator: str, spec: Spec) -> Case:
    return pair_case(rng, operator, spec, torch.sub if operator == "subtract" else torch.add)


def _relax(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    join = relax.op.subtract if case.operator == "subtract" else relax.op.add
    return build.emit(join(*relax_operands(build, case, sources, quantized)))


def _torch(case: Case, sources: list[Any]) -> Any:
    a, b = torch_operands(case, sources)
    return a - b if case.operator == "subtract" else a + b


def _quantized(case: Case, inputs: list[Any]) -> Any:
    run = torch.ops.quantized.add_relu if case.spec.relu else torch.ops.quantized.add
    return run(*expanded(case, inputs), float(case.scale), case.zero)


def _facts(*exact: str, notes: str = "") -> Facts:
    return Facts(
        types="two int8 or uint8 activations, or one and a constant",
        limits=BROADCAST,
        instructions=("load", "store", "add"),
        roundings=("qnnpack", "fp32", "tflite", "onnxruntime"),
        exact=exact,
        notes=notes,
    )


OPERATORS = (
    Operator(
        "add",
        _facts("PyTorch qnnpack", "TFLite"),
        pair_edges,
        draw_pair,
        _make,
        relax=_relax,
        torch=_torch,
        quantized=_quantized,
        legal=legal_pair,
        spec=PairSpec,
    ),
    Operator(
        "subtract",
        _facts("TFLite", notes="PyTorch has no quantized difference: its float kernel at ties"),
        pair_edges,
        draw_pair,
        _make,
        relax=_relax,
        torch=_torch,
        steps=1,
        legal=legal_pair,
        spec=PairSpec,
    ),
)
