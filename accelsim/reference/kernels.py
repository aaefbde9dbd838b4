"""Each layer's exact integer definition as a Relax function for TVM's own CPU code.

What comes in: a `Kernel`, which holds shapes and geometry but no values. What goes out: a function
in a `BlockBuilder`. It must not know the simulator's or the specification's arithmetic: every
rounding is written anew here, and tests tie the two.

All values (weights, zero points, multipliers) are run-time arguments, so that layers of one
geometry share one function. A float product and the sum that reads it are separate loop nests with
memory between them, so that no processor can fuse the two into one rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import relax, te

from accelsim.artifacts import Shape4
from accelsim.reference.network import Add, Affine, Padding, Pair, Pool, ReferenceLayer, Shape

op = relax.op

Values = dict[str, Any]
Types = tuple[tuple[str, Shape, str], ...]

# Every kernel takes its activations, then the values of `parameters_of`, which end with a clamp.
CLAMP: Types = (("zero_point", (), "int32"), ("low", (), "float32"), ("high", (), "float32"))


@dataclass(frozen=True, slots=True)
class Kernel:
    """What a compiled function depends on. `kind` names a builder of this module."""

    kind: str
    inputs: tuple[Shape4, ...]
    core_shapes: tuple[Shape, ...]
    core_output: Shape
    output_logical: Shape
    weight: Shape = ()
    kernel: Pair = (1, 1)
    stride: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1

    @property
    def symbol(self) -> str:
        """A name for the compiled function, the same for equal kernels only."""
        fields = (self.kind, *self.inputs, *self.core_shapes, self.core_output)
        fields += (self.output_logical, self.weight, self.kernel, self.stride, self.padding)
        fields += (self.dilation, (self.groups,))
        return "_".join(
            part if isinstance(part, str) else "x".join(str(extent) for extent in part) or "none"
            for part in fields
        )


def kernel_of(layer: ReferenceLayer, output_logical: Shape, rounding: str, same: bool) -> Kernel:
    """The kernel of a layer. `same`: input and output have one scale and zero point."""
    kind, geometry = "move" if same else "rescale", {}
    core = layer.core
    if isinstance(core, Affine):
        kind = "linear" if core.weight.ndim == 2 else "conv2d"
        geometry = {
            "weight": tuple(core.weight.shape),
            "stride": core.stride,
            "padding": core.padding,
            "dilation": core.dilation,
            "groups": core.groups,
        }
    elif isinstance(core, Add):
        kind = f"add_{rounding}"
    elif isinstance(core, Pool):
        kind = f"{core.kind}_pool"
        geometry = {"kernel": core.kernel, "stride": core.stride, "padding": core.padding}
    return Kernel(
        kind=kind,
        inputs=layer.input_shapes,
        core_shapes=layer.core_shapes,
        core_output=layer.core_output_shape,
        output_logical=output_logical,
        **geometry,  # type: ignore[arg-type]
    )


class Emitter:
    """Emits into one Relax function; methods name steps that several kernels share."""

    def __init__(self, builder: Any, kernel: Kernel) -> None:
        self.builder = builder
        self.kernel = kernel

    def __call__(self, expression: Any) -> Any:
        return self.builder.emit(expression)

    def compute(self, shape: Shape, body: Callable[..., Any], *operands: Any) -> Any:
        """One stored loop nest: `body(tensors, indices)` for every element of `shape`."""

        def nest(*tensors: Any) -> Any:
            return te.compute(shape, lambda *index: body(tensors, index))

        return self.builder.emit_te(nest, *operands)

    def load(self, value: Any, side: int = 0) -> Any:
        """int8 (n, h, w, c) → int8 in the logical shape that the core sees."""
        n, h, w, c = self.kernel.inputs[side]
        shape = self.kernel.core_shapes[side]
        value = self(op.permute_dims(value, [0, 3, 1, 2]))
        return value if shape == (n, c, h, w) else self(op.reshape(value, shape))

    def centred(self, value: Any, zero_point: Any, side: int = 0, dtype: str = "int16") -> Any:
        """q - zero point in the logical shape, exact: at most 9 bits."""
        shape = self.kernel.core_shapes[side]
        return self.compute(
            shape, lambda t, i: t[0][i].astype(dtype) - t[1][()], self.load(value, side), zero_point
        )

    def requantized(self, accumulator: Any, bias: Any, p: Values) -> Any:
        """(int32 + bias) → float32, half to even; times multiplier; rounded and clamped.

        Nothing here adds floats, so nothing can be fused into the multiplication.
        """

        def body(t: Any, i: Any) -> Any:
            channel = i[1] if len(t[1].shape) and int(t[1].shape[0]) > 1 else 0
            total = t[0][i] + t[1][channel]
            return _rounded(total.astype("float32") * t[2][channel], *t[3:])

        ends = (p["low"], p["high"], p["zero_point"])
        return self.compute(
            self.kernel.core_output, body, accumulator, bias, p["multiplier"], *ends
        )

    def clamped(self, value: Any, p: Values) -> Any:
        """Limits on an integer that is already in output steps."""
        return self.compute(
            self.kernel.core_output,
            lambda t, i: te.min(te.max(t[0][i], t[1][()]), t[2][()]).astype("int8"),
            value,
            p["low"],
            p["high"],
        )

    def store(self, value: Any) -> Any:
        """int8 in the core's logical shape → int8 (n, h, w, c)."""
        logical = self.kernel.output_logical
        if logical != self.kernel.core_output:
            value = self(op.reshape(value, logical))
        if len(logical) == 2:
            return self(op.reshape(value, (logical[0], 1, 1, logical[1])))
        return self(op.permute_dims(value, [0, 2, 3, 1]))


def _rounded(value: Any, low: Any, high: Any, zero_point: Any) -> Any:
    """Half to even, clamped while still a float (no int32 overflow), plus zero point."""
    steps = te.min(te.max(te.nearbyint(value), low[()]), high[()])
    return (steps.astype("int32") + zero_point[()]).astype("int8")


def parameters_of(kernel: Kernel) -> Types:
    """(name, shape, dtype) of every argument of a kernel after its activations, in order."""
    sides = range(len(kernel.inputs))
    if kernel.kind in ("conv2d", "linear"):
        channels = (kernel.weight[0],)
        return (
            ("centred_weight", kernel.weight, "int16"),
            ("input_zero_point", (), "int16"),
            ("bias", channels, "int32"),
            ("multiplier", channels, "float32"),
            *CLAMP,
        )
    if kernel.kind == "mean_pool":
        window: Types = (("ones", (1, 1, *kernel.kernel), "int16"), ("bias", (1,), "int32"))
        multiplier: Types = (("multiplier", (1,), "float32"),)
        return (("input_zero_point", (), "int16"), *window, *multiplier, *CLAMP)
    if kernel.kind in ("max_pool", "move"):
        return (("low", (), "int8"), ("high", (), "int8"))
    zero_points = tuple((f"zero_point_{side}", (), "int32") for side in sides)
    if kernel.kind == "add_qnnpack":
        factors = tuple((f"multiplier_{side}", (), "int32") for side in sides)
        shift: Types = (("shift", (), "int32"), ("half", (), "int32"), ("mask", (), "int32"))
        limits: Types = tuple((name, (), "int32") for name in ("zero_point", "low", "high"))
        return (*zero_points, *factors, *shift, *limits)
    scales = tuple((f"scale_{side}", (), "float32") for side in sides)
    return (*zero_points, *scales, ("inverse", (), "float32"), *CLAMP)


def _conv2d(emit: Emitter, kernel: Kernel, x: list[Any], p: Values) -> Any:
    accumulator = emit(
        op.nn.conv2d(
            emit.centred(x[0], p["input_zero_point"]),
            p["centred_weight"],
            strides=list(kernel.stride),
            padding=list(kernel.padding),
            dilation=list(kernel.dilation),
            groups=kernel.groups,
            out_dtype="int32",
        )
    )
    return emit.requantized(accumulator, p["bias"], p)


def _linear(emit: Emitter, kernel: Kernel, x: list[Any], p: Values) -> Any:
    data = emit.centred(x[0], p["input_zero_point"])
    turned = emit(op.permute_dims(p["centred_weight"]))
    product = emit(op.matmul(data, turned, out_dtype="int32"))
    return emit.requantized(product, p["bias"], p)


def _mean_pool(emit: Emitter, kernel: Kernel, x: list[Any], p: Values) -> Any:
    """Sum over the window as a convolution with ones: padding adds nothing."""
    n, c, h, w = kernel.core_shapes[0]
    folded = emit(op.reshape(emit.centred(x[0], p["input_zero_point"]), (n * c, 1, h, w)))
    total = emit(
        op.nn.conv2d(
            folded,
            p["ones"],
            strides=list(kernel.stride),
            padding=list(kernel.padding),
            out_dtype="int32",
        )
    )
    total = emit(op.reshape(total, kernel.core_output))
    return emit.requantized(total, p["bias"], p)


def _max_pool(emit: Emitter, kernel: Kernel, x: list[Any], p: Values) -> Any:
    largest = op.nn.max_pool2d(
        emit.load(x[0]),
        pool_size=list(kernel.kernel),
        strides=list(kernel.stride),
        padding=list(kernel.padding),
    )
    return emit.clamped(emit(largest), p)


def _move(emit: Emitter, kernel: Kernel, x: list[Any], p: Values) -> Any:
    return emit.clamped(emit.load(x[0]), p)


def _scaled_sum(emit: Emitter, kernel: Kernel, x: list[Any], p: Values) -> Any:
    """rint(Σ (q - z)·s · (1/so)): one input changes scale, two are added.

    Each product is stored by a loop nest of its own before the sum reads it.
    """
    terms = [
        emit.compute(
            kernel.core_shapes[side],
            lambda t, i: t[0][i].astype("float32") * t[1][()],
            emit.centred(value, p[f"zero_point_{side}"], side, "int32"),
            p[f"scale_{side}"],
        )
        for side, value in enumerate(x)
    ]

    def body(t: Any, i: Any) -> Any:
        inverse, low, high, zero_point, *products = t
        total = products[0][i] if len(products) == 1 else products[0][i] + products[1][i]
        return _rounded(total * inverse[()], low, high, zero_point)

    ends = (p["inverse"], p["low"], p["high"], p["zero_point"])
    return emit.compute(kernel.core_output, body, *ends, *terms)


def _add_qnnpack(emit: Emitter, kernel: Kernel, x: list[Any], p: Values) -> Any:
    """Σ (q - z)·m in int32, divided by 2^shift with ties away from zero."""
    terms = [
        emit.centred(value, p[f"zero_point_{side}"], side, "int32") for side, value in enumerate(x)
    ]

    def body(t: Any, i: Any) -> Any:
        a, b, a_factor, b_factor, shift, half, mask, zero_point = t
        total = a[i] * a_factor[()] + b[i] * b_factor[()]
        remainder = (total & mask[()]) - te.if_then_else(total < 0, 1, 0)
        carry = te.if_then_else(remainder > half[()], 1, 0)
        return (total >> shift[()]) + carry + zero_point[()]

    names = ("multiplier_0", "multiplier_1", "shift", "half", "mask", "zero_point")
    value = emit.compute(kernel.core_output, body, *terms, *(p[name] for name in names))
    return emit.clamped(value, p)


_BUILDERS: dict[str, Callable[[Emitter, Kernel, list[Any], Values], Any]] = {
    "conv2d": _conv2d,
    "linear": _linear,
    "mean_pool": _mean_pool,
    "max_pool": _max_pool,
    "move": _move,
    "rescale": _scaled_sum,
    "add_fp32": _scaled_sum,
    "add_qnnpack": _add_qnnpack,
}


def emit_kernel(builder: Any, kernel: Kernel) -> None:
    """Add one kernel's function to a module under construction."""
    activations = [
        relax.Var(f"x{side}", relax.TensorType(shape, "int8"))
        for side, shape in enumerate(kernel.inputs)
    ]
    values = {
        name: relax.Var(name, relax.TensorType(shape, dtype))
        for name, shape, dtype in parameters_of(kernel)
    }
    emit = Emitter(builder, kernel)
    with builder.function(kernel.symbol, [*activations, *values.values()]):
        result = _BUILDERS[kernel.kind](emit, kernel, activations, values)
        builder.emit_func_output(emit.store(result))
