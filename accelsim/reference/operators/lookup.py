"""Any elementwise function of one activation: a chain of float operators with numbers.

What comes in: an island, or a layer's site. What goes out: its claim and kernel. The function is
computed by TVM for each of the 256 values that an activation can have, in float32 operator by
operator (transcendental ones in float64, rounded to float32), and then looked up. Where qnnpack's
kernel of a function has another order of operations, or TFLite's has integers, that is computed
instead. It must not know other families.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from tvm import te, tirx

from accelsim.reference import tflite_functions
from accelsim.reference.derive import ends_of
from accelsim.reference.flow import Claim, Island, Node, Source
from accelsim.reference.functions import ATTRIBUTES, steps_of
from accelsim.reference.kernels import Emitter, Kernel, Values, finished
from accelsim.reference.operators import Operator, TorchKernel
from accelsim.reference.site import Site
from accelsim.reference.torch_tensor import torch_target

Step = tuple[str, tuple[int, ...], tuple[float, ...]]  # operator, earlier values, attributes
QUINT8 = 128  # from an int8 zero point to that of qnnpack's tensors
FARTHEST = 2.0**20  # steps: beyond every limit, and whole numbers in float32


@dataclass(frozen=True, slots=True)
class Elementwise:
    """Steps in order; value 0 is the activation, value -1 - k is number k."""

    steps: tuple[Step, ...]
    numbers: tuple[float, ...]


@dataclass(slots=True)
class _Reader:
    """Steps read so far."""

    shape: tuple[int, ...]
    source: Source | None = None
    steps: list[Step] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)

    def place(self, value: Any) -> int | None:
        """Where a value stands, or None if it is no elementwise value of one source."""
        if isinstance(value, np.ndarray):
            if value.size != 1:
                return None
            self.numbers.append(float(value.reshape(())))
            return -len(self.numbers)
        if isinstance(value, Source):
            known = self.source is None or self.source.tensor.name == value.tensor.name
            if not known or value.shape != self.shape:
                return None
            self.source = value
            return 0
        if not isinstance(value, Node) or value.shape != self.shape:
            return None
        if id(value) not in self.places:
            if value.operator not in steps_of():
                return None
            operands = [self.place(operand) for operand in value.operands]
            found = tuple(operand for operand in operands if operand is not None)
            if len(found) != len(operands):
                return None
            names = ATTRIBUTES.get(value.operator, ())
            attributes = tuple(float(getattr(value.attrs, name)) for name in names)
            self.steps.append((value.operator, found, attributes))
            self.places[id(value)] = len(self.steps)
        return self.places[id(value)]


HARD = (("relax.add", (0, -1), ()), ("relax.clip", (1, -2, -3), ()), ("relax.divide", (2, -4), ()))
RELUS = (("relax.exp", (0,), ()), ("relax.subtract", (-2, 1), ()), ("relax.nn.relu", (2,), ()))
SOFT = (("relax.nn.softplus", (0,), (1.0, 20.0)), ("relax.tanh", (1,), ()))
NAMED: Mapping[Elementwise, str] = {
    Elementwise(HARD, (3.0, 0.0, 6.0, 6.0)): "hard_sigmoid",
    Elementwise((*HARD, ("relax.multiply", (0, 3), ())), (3.0, 0.0, 6.0, 6.0)): "hard_swish",
    Elementwise(
        (
            *(*RELUS, ("relax.multiply", (-1, 3), ())),
            *(("relax.nn.relu", (0,), ()), ("relax.add", (4, 5), ())),
        ),
        (-1.0, 1.0),
    ): "elu",
    Elementwise((*SOFT, ("relax.multiply", (0, 2), ())), ()): "mish",
}
"""Chains that PyTorch exports in place of one operator."""


def name_of(core: Elementwise) -> str:
    """What the function is called: by its name, its only operator, or "lookup"."""
    if core in NAMED:
        return NAMED[core]
    operator, operands, _ = core.steps[-1]
    alone = len(core.steps) == 1 and len(operands) == 1
    return operator.removeprefix("relax.").removeprefix("nn.") if alone else "lookup"


def recognise(island: Island) -> Claim | None:
    """Elementwise operators, clamps at the end left to the limits, on one source and numbers."""
    node = island.ending.value
    if not isinstance(node, Node):
        return None
    reader = _Reader(node.shape)
    if reader.place(node) is None or reader.source is None:
        return None
    core = Elementwise(tuple(reader.steps), tuple(reader.numbers))
    name = name_of(core)
    if island.rounding == "tflite" and name not in {*tflite_functions.FLOATS, *FIXED_POINT}:
        return None
    return Claim(name, core, (reader.source,), node.shape, island.ending.limits)


def kernel(site: Site) -> Kernel:
    """The 256 results, then a lookup."""
    core: Elementwise = site.layer.core
    source = site.inputs[0]
    name = name_of(core)
    values = {
        "input_zero_point": np.array(source.zero_point, np.int32),
        "scale": np.array(source.scale, np.float32),
        "numbers": np.array(core.numbers or (0.0,), np.float32),
        "output_scale": np.array(site.output.scale, np.float32),
        **ends_of(site),
    }
    geometry: Hashable = (core.steps, site.rounding == "onnxruntime")
    emit = _emit
    if site.rounding == "tflite":
        emit, geometry = _emit_tflite, name
        if name in _WORDS:
            values |= _WORDS[name](source.scale, site.output.scale)
        elif name in FIXED_POINT:
            slope = (*core.steps[0][2], 1.0)[0]
            values |= tflite_functions.rescale_values(source.scale, site.output.scale, slope)
    elif site.rounding == "qnnpack" and name == "hard_swish":
        emit, geometry = _emit_hard_swish, None
    return Kernel(emit, values, geometry)


FIXED_POINT: Mapping[str, Callable[[Emitter, Any, Values], Any]] = {
    "leakyrelu": tflite_functions.emit_leaky,
    "abs": tflite_functions.emit_absolute,
    "hard_swish": tflite_functions.emit_hard_swish,
    "sqrt": tflite_functions.emit_root,
    "rsqrt": tflite_functions.emit_inverse_root,
}
_WORDS: Mapping[str, Callable[..., dict[str, np.ndarray]]] = {
    "hard_swish": tflite_functions.hard_swish_values,
    "sqrt": tflite_functions.root_values,
    "rsqrt": tflite_functions.inverse_root_values,
}


def _start(emit: Emitter, p: Values) -> Any:
    """The 256 real values that an activation can have."""
    return emit.compute(
        (256,),
        lambda t, i: (i[0] - 128 - t[0][()]).astype("float32") * t[1][()],
        *(p["input_zero_point"], p["scale"]),
    )


def _emit(emit: Emitter, x: list[Any], p: Values) -> Any:
    """Each step is a loop nest of its own: nothing is fused into one rounding."""
    steps, quotient = emit.geometry
    known = [_start(emit, p)]
    for operator, operands, attributes in steps:
        known.append(_emit_step(emit, p, (operator, operands, attributes), known))

    def scaled(t: Any, i: Any) -> Any:
        return t[0][i] / t[1][()] if quotient else t[0][i] * t[2][()]

    quotients = emit.compute((256,), scaled, known[-1], p["output_scale"], _inverse(emit, p))
    return _looked_up(emit, x, p, quotients, te.nearbyint)


def _emit_hard_swish(emit: Emitter, x: list[Any], p: Values) -> Any:
    """qnnpack's: x times the gate, by 6, to steps, plus the quint8 zero point; then rounded."""
    reals = _start(emit, p)

    def gated(t: Any, i: Any) -> Any:
        three, none, six = (tirx.const(value, "float32") for value in (3.0, 0.0, 6.0))
        return t[0][i] * te.min(te.max(t[0][i] + three, none), six) / six

    def steps(t: Any, i: Any) -> Any:
        return t[0][i] * t[1][()]

    def rounded(t: Any, i: Any) -> Any:
        zero_point = (t[1][()] + QUINT8).astype("float32")
        return te.nearbyint(t[0][i] + zero_point) - zero_point

    product = emit.compute((256,), steps, emit.compute((256,), gated, reals), _inverse(emit, p))
    whole = emit.compute((256,), rounded, product, p["zero_point"])
    return _looked_up(emit, x, p, whole, lambda value: value)


def _emit_tflite(emit: Emitter, x: list[Any], p: Values) -> Any:
    """A function in float32, rounded half away from zero; or integers throughout."""
    name = emit.geometry
    if name in FIXED_POINT:
        centred = emit.compute((256,), lambda t, i: i[0] - 128 - t[0][()], p["input_zero_point"])
        return _looked_up(emit, x, p, FIXED_POINT[name](emit, centred, p), None)
    function = tflite_functions.FLOATS[name]
    reals = emit.compute((256,), lambda t, i: function(t[0][i]), _start(emit, p))
    quotients = emit.compute((256,), lambda t, i: t[0][i] * t[1][()], reals, _inverse(emit, p))

    def away(value: Any) -> Any:
        wide, half = value.astype("float64"), tirx.const(0.5, "float64")
        return te.if_then_else(wide < 0, te.ceil(wide - half), te.floor(wide + half))

    return _looked_up(emit, x, p, quotients, away)


def _inverse(emit: Emitter, p: Values) -> Any:
    return emit.compute((), lambda t, i: tirx.const(1.0, "float32") / t[0][()], p["output_scale"])


def _looked_up(emit: Emitter, x: list[Any], p: Values, steps: Any, rounding: Any) -> Any:
    """256 output steps, rounded (None: they are whole), as the table of an activation."""

    def level(t: Any, i: Any) -> Any:
        if rounding is None:
            return finished(t[0][i].astype("int64"), *t[1:])
        far = tirx.const(FARTHEST, "float32")
        return finished(rounding(te.max(te.min(t[0][i], far), -far)), *t[1:])

    table = emit.compute((256,), level, steps, p["zero_point"], p["low"], p["high"])
    return emit.compute(
        emit.shapes.core_output,
        lambda t, i: t[1][t[0][i].astype("int32") + 128],
        *(emit.load(x[0]), table),
    )


def _emit_step(emit: Emitter, p: Values, step: Step, known: list[Any]) -> Any:
    operator, operands, attributes = step

    def body(t: Any, i: Any) -> Any:
        numbers, *tensors = t
        taken = iter(tensors)
        values = [next(taken)[i] if o >= 0 else numbers[-1 - o] for o in operands]
        return steps_of()[operator](*values, *attributes)

    return emit.compute((256,), body, p["numbers"], *(known[o] for o in operands if o >= 0))


_TORCH: Mapping[str, Callable[..., Any]] = {
    "sigmoid": lambda x, scale, zero: torch.sigmoid(x),
    "tanh": lambda x, scale, zero: torch.tanh(x),
    "hard_sigmoid": lambda x, scale, zero: torch.nn.functional.hardsigmoid(x),
    "hard_swish": torch.ops.quantized.hardswish,
    "leakyrelu": lambda x, scale, zero, slope: torch.ops.quantized.leaky_relu(
        x, slope, False, scale, zero
    ),
}
_FIXED = {"sigmoid": (2.0**-8, 0), "hard_sigmoid": (2.0**-8, 0), "tanh": (2.0**-7, 128)}
"""Outputs of kernels that have no other."""


def _torch_covers(site: Site) -> bool:
    """Functions of which qnnpack, or PyTorch for it, has a kernel with the same integers."""
    name, target = name_of(site.layer.core), torch_target(site.output)
    return site.rounding == "qnnpack" and name in _TORCH and _FIXED.get(name, target) == target


def _torch_run(site: Site, operands: list[Any]) -> Any:
    core: Elementwise = site.layer.core
    attributes = core.steps[0][2] if len(core.steps) == 1 else ()
    return _TORCH[name_of(core)](operands[0], *torch_target(site.output), *attributes)


def _distance(site: Site) -> float:
    """Half a step, and the error of float32 of the largest number that occurs."""
    source, output = site.inputs[0], site.output
    largest = 256 * max(float(source.scale), float(output.scale), 2.0**-8)
    return float(0.5 + 2.0**-20 * largest / float(output.scale))


OPERATOR = Operator(
    "lookup",
    recognise,
    kernel,
    TorchKernel(_torch_covers, _torch_run),
    distance=_distance,
    rank=1,
    tensor_ranks=frozenset(range(1, 5)),
)
