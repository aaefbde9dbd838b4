"""A QDQ island as ONNX Runtime's integer operator on the same numbers.

What comes in: the nodes between the integer inputs of a layer and its integer output. What goes
out: nodes of the QOperator form. Without optimisation the island itself would compute in float32;
with it, ONNX Runtime itself puts these operators in its place. It must not know what the integer
reference computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.importer.onnx import OnnxModel, OnnxNode
from accelsim.importer.onnx.model import MICROSOFT

Array = NDArray[Any]
OPSETS = {"": 17, MICROSOFT: 1}
EXACT = ("QLinearConv", "QLinearMatMul", "QGemm", "MaxPool", "GlobalMaxPool", "ConvInteger")
"""Kernels whose results are one rounding of an exact sum, or a choice."""

MOVES = (
    *("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Split", "Gather"),
    *("Identity", "Concat", "DepthToSpace", "SpaceToDepth", "Tile", "Expand"),
)
CHOICES = (*MOVES, "MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin", "Resize")


@dataclass(frozen=True, slots=True)
class Quantized:
    """An integer tensor with the names of its scale and zero point."""

    value: str
    scale: str
    zero: str

    @property
    def names(self) -> tuple[str, str, str]:
        """As operators of the QOperator form list them."""
        return (self.value, self.scale, self.zero)


@dataclass(frozen=True, slots=True)
class Kernel:
    """Nodes that give the layer's integers, with constants of their own."""

    nodes: tuple[OnnxNode, ...]
    constants: Mapping[str, Array]
    opsets: Mapping[str, int]
    operator: str  # the one that computes


class _Island:
    """The island of one layer, read from its quantize backwards."""

    def __init__(self, model: OnnxModel, nodes: Sequence[OnnxNode], output: str) -> None:
        self.model = model
        self.made = {name: node for node in nodes for name in node.outputs if name}
        self.constants: dict[str, Array] = {}
        self.output = output
        self.count = len(nodes)

    def quantized(self, name: str) -> Quantized | None:
        """What a float tensor dequantizes, per tensor or as a constant."""
        node = self.made.get(name)
        if node is None or node.operator != "DequantizeLinear":
            return None
        return Quantized(node.input(0), node.input(1), self.zero(node))

    def zero(self, node: OnnxNode) -> str:
        """The zero point of a quantize or dequantize; one that is left out is made."""
        if node.input(2):
            return node.input(2)
        scale = self.model.constants[node.input(1)]
        source = self.model.constants.get(node.input(0))
        kind = source.dtype if source is not None and node.operator[0] == "D" else np.uint8
        return self.constant(f"zero of {node.name}", np.zeros(scale.shape, kind))

    def constant(self, name: str, value: Array) -> str:
        """A constant of the kernel's own."""
        self.constants[name] = value
        return name

    def known(self, name: str) -> Array:
        """A constant of the kernel's or of the model."""
        return self.constants[name] if name in self.constants else self.model.constants[name]


def kernel_of(model: OnnxModel, nodes: Sequence[OnnxNode], output: str) -> Kernel | None:
    """The integer operator of an island; None where ONNX Runtime has none."""
    island = _Island(model, nodes, output)
    quantize = island.made[output]
    if quantize.operator != "QuantizeLinear":
        return None
    target = Quantized(output, quantize.input(1), island.zero(quantize))
    core, clamps = _core(island, quantize.input(0))
    if core is None:
        return None
    if core.operator in MOVES:
        return _move(island, core, target, clamps)
    rule = _RULES.get(core.operator)
    made = None if rule is None or core.domain else rule(island, core, target)
    if made is None:
        return None
    following = _clamped(island, made, target, clamps)
    return Kernel((*following,), island.constants, OPSETS, made.operator)


def _core(island: _Island, name: str) -> tuple[OnnxNode | None, list[OnnxNode]]:
    """The operator before the activations at the end, and these."""
    clamps = []
    node = island.made.get(name)
    while node is not None and node.operator in ("Relu", "Clip"):
        clamps.append(node)
        node = island.made.get(node.input(0))
    return node, clamps[::-1]


def _clamped(
    island: _Island, made: OnnxNode, target: Quantized, clamps: Sequence[OnnxNode]
) -> list[OnnxNode]:
    """The operator with its activations on integers: limits rounded before the zero point."""
    nodes, last = [], target.value
    scale, zero = (island.known(name).reshape(()) for name in (target.scale, target.zero))
    limits = np.iinfo(zero.dtype)
    for number, clamp in enumerate(reversed(clamps)):
        bounds = []
        for place, (key, limit) in enumerate((("min", limits.min), ("max", limits.max)), 1):
            real = _limit(island, clamp, key, place)
            level = limit if real is None else np.rint(np.float32(real) / scale) + int(zero)
            value = np.asarray(np.clip(level, limits.min, limits.max), zero.dtype)
            bounds.append(island.constant(f"{key} {number} of {clamp.name}", value))
        before = f"{clamp.name} of {last}"
        nodes.append(OnnxNode(clamp.name, "Clip", "", (before, *bounds), (last,)))
        last = before
    return [replace(made, outputs=(last,)), *reversed(nodes)]


def _limit(island: _Island, clamp: OnnxNode, key: str, place: int) -> float | None:
    if clamp.operator == "Relu":
        return 0.0 if key == "min" else None
    if clamp.input(place):
        return float(island.known(clamp.input(place)).reshape(-1)[0])
    return clamp.attributes.get(key)


def _move(
    island: _Island, core: OnnxNode, target: Quantized, clamps: Sequence[OnnxNode]
) -> Kernel | None:
    """The same operator on integers, where their levels stay and it is alone."""
    ends = ("QuantizeLinear", "DequantizeLinear")
    count = sum(node.operator not in ends for node in _all(island))
    inputs = []
    for name in core.inputs:
        source = island.quantized(name)
        if source is None:
            inputs.append(name)
            continue
        for one, other in ((source.scale, target.scale), (source.zero, target.zero)):
            if not np.array_equal(island.known(one), island.known(other)):
                return _concat(island, core, target) if core.operator == "Concat" else None
        inputs.append(source.value)
    if count != 1 or clamps:
        return None
    place = list(core.outputs).index(island.made[target.value].input(0))
    outputs = tuple(target.value if i == place else "" for i in range(len(core.outputs)))
    if any(not name for name in outputs):
        outputs = tuple(n or f"unused {i} of {core.name}" for i, n in enumerate(outputs))
    node = replace(core, inputs=tuple(inputs), outputs=outputs)
    return Kernel((node,), island.constants, island.model.opsets, core.operator)


def _all(island: _Island) -> list[OnnxNode]:
    return list({node.name: node for node in island.made.values()}.values())


def _concat(island: _Island, core: OnnxNode, target: Quantized) -> Kernel | None:
    sources = [island.quantized(name) for name in core.inputs]
    names = [name for one in sources if one is not None for name in one.names]
    if len(names) != 3 * len(sources):
        return None
    node = OnnxNode(
        core.name,
        "QLinearConcat",
        MICROSOFT,
        (target.scale, target.zero, *names),
        (target.value,),
        core.attributes,
    )
    return Kernel((node,), island.constants, OPSETS, node.operator)


def _two(island: _Island, core: OnnxNode) -> tuple[Quantized, Quantized] | None:
    a, b = (island.quantized(core.input(place)) for place in (0, 1))
    return None if a is None or b is None else (a, b)


def _bias(island: _Island, name: str, a: Quantized, b: Quantized, gain: float = 1.0) -> str | None:
    """The name of an int32 bias: the file's own, or a real one in steps of the accumulator."""
    source = island.quantized(name)
    if source is not None:
        values = island.known(source.value)
        step = island.known(a.scale) * island.known(b.scale) * np.float32(gain)
        same = np.allclose(island.known(source.scale).reshape(-1), step.reshape(-1), rtol=1e-6)
        flat = island.constant(f"{source.value} in a row", values.reshape(-1))
        return flat if values.dtype == np.int32 and same else None
    if name not in island.model.constants:
        return None
    exact = island.known(a.scale).astype(np.float64) * island.known(b.scale).astype(np.float64)
    steps = np.rint(island.known(name).reshape(-1).astype(np.float64) / (exact.reshape(-1) * gain))
    return island.constant(f"{name} in steps", steps.astype(np.int32))


def _conv(island: _Island, core: OnnxNode, target: Quantized) -> OnnxNode | None:
    pair = _two(island, core)
    if pair is None:
        return None
    names = [*pair[0].names, *pair[1].names, target.scale, target.zero]
    if core.input(2):
        bias = _bias(island, core.input(2), *pair)
        if bias is None:
            return None
        names.append(bias)
    kinds = tuple(island.known(one.zero).dtype.name for one in pair)
    if kinds == ("int8", "uint8"):
        return None  # ONNX Runtime has no such kernel
    return OnnxNode(core.name, "QLinearConv", "", tuple(names), (target.value,), core.attributes)


def _matmul(island: _Island, core: OnnxNode, target: Quantized) -> OnnxNode | None:
    pair = _two(island, core)
    if pair is None:
        return None
    names = (*pair[0].names, *pair[1].names, target.scale, target.zero)
    return OnnxNode(core.name, "QLinearMatMul", "", names, (target.value,))


def _gemm(island: _Island, core: OnnxNode, target: Quantized) -> OnnxNode | None:
    pair = _two(island, core)
    alpha = float(core.attributes.get("alpha", 1.0))
    if pair is None or float(core.attributes.get("beta", 1.0)) != 1.0:
        return None
    bias: str | None = ""
    if core.input(2):
        bias = _bias(island, core.input(2), *pair, alpha)
    if bias is None:
        return None
    names = (*pair[0].names, *pair[1].names, bias, target.scale, target.zero)
    kept = {key: core.attributes[key] for key in ("transA", "transB") if key in core.attributes}
    attributes = {"alpha": alpha, **kept}
    return OnnxNode(core.name, "QGemm", MICROSOFT, names, (target.value,), attributes)


def _add(island: _Island, core: OnnxNode, target: Quantized) -> OnnxNode | None:
    """A sum of two quantized tensors, or a product of two axes with a bias."""
    for name, other in (core.inputs, core.inputs[::-1]):
        product = island.made.get(name)
        if product is not None and product.operator == "MatMul":
            pair = _two(island, product)
            shape = island.model.values.get(product.input(0))
            if pair is None or shape is None or len(shape.shape) != 2:
                return None
            bias = _bias(island, other, *pair)
            if bias is None:
                return None
            names = (*pair[0].names, *pair[1].names, bias, target.scale, target.zero)
            return OnnxNode(core.name, "QGemm", MICROSOFT, names, (target.value,), {"alpha": 1.0})
    return _pair("QLinearAdd")(island, core, target)


def _pair(operator: str) -> Callable[[_Island, OnnxNode, Quantized], OnnxNode | None]:
    def rule(island: _Island, core: OnnxNode, target: Quantized) -> OnnxNode | None:
        pair = _two(island, core)
        if pair is None or any(island.known(one.zero).dtype.itemsize != 1 for one in pair):
            return None
        names = (*pair[0].names, *pair[1].names, target.scale, target.zero)
        return OnnxNode(core.name, operator, MICROSOFT, names, (target.value,))

    return rule


def _one(
    operator: str, *kept: str, **fixed: Any
) -> Callable[[_Island, OnnxNode, Quantized], OnnxNode | None]:
    def rule(island: _Island, core: OnnxNode, target: Quantized) -> OnnxNode | None:
        source = island.quantized(core.input(0))
        if source is None:
            return None
        names = (*source.names, target.scale, target.zero)
        attributes = {key: core.attributes[key] for key in kept if key in core.attributes}
        return OnnxNode(core.name, operator, MICROSOFT, names, (target.value,), attributes | fixed)

    return rule


def _softmax(island: _Island, core: OnnxNode, target: Quantized) -> OnnxNode | None:
    return _one("QLinearSoftmax", "axis", opset=island.model.opsets[""])(island, core, target)


def _maximum(island: _Island, core: OnnxNode, target: Quantized) -> OnnxNode | None:
    """A maximum of integers, where their levels stay."""
    source = island.quantized(core.input(0))
    if source is None:
        return None
    for one, other in ((source.scale, target.scale), (source.zero, target.zero)):
        if not np.array_equal(island.known(one), island.known(other)):
            return None
    kept = {k: v for k, v in core.attributes.items() if k != "storage_order"}
    return OnnxNode(core.name, "MaxPool", "", (source.value,), (target.value,), kept)


_POOL = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
_RULES: dict[str, Callable[[_Island, OnnxNode, Quantized], OnnxNode | None]] = {
    "Conv": _conv,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Add": _add,
    "Mul": _pair("QLinearMul"),
    "AveragePool": _one("QLinearAveragePool", *_POOL),
    "GlobalAveragePool": _one("QLinearGlobalAveragePool"),
    "Sigmoid": _one("QLinearSigmoid"),
    "LeakyRelu": _one("QLinearLeakyRelu", "alpha"),
    "Softmax": _softmax,
    "MaxPool": _maximum,
}
