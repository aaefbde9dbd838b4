"""Cases as TVM Relax modules: one branch a case, in QDQ form or in plain float32.

What comes in: cases. What goes out: IRModules with `main`. It must not know torch, and takes no
arithmetic from the compiler or the reference: it states operators only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax

from accelsim.ops.case import Case

op = relax.op


def real_limits(case: Case) -> tuple[float, float]:
    """Limits of a clamp as reals: those of relu and relu6 are absolute, others count scales."""
    assert case.spec.limits is not None
    low, high = case.spec.limits
    if case.operator == "relu6":
        return low, high
    scale = case.inputs[0].scale
    return float(np.float32(low) * scale), float(np.float32(high) * scale)


def qdq_module(cases: Sequence[Case]) -> Any:
    """Quantize, dequantize, the operator, quantize, dequantize; spans carry the cases' names."""
    build = _Builder()
    results = []
    for case in cases:
        sources = []
        for side, one in enumerate(case.inputs):
            x = build.input(case.input_name(side), one.values.shape)
            sources.append(build.requantized(x, case.input_name(side), one.scale, one.zero))
        value = _operator(build, case, sources)
        results.append(build.requantized(value, case.name, case.scale, case.zero))
    return build.module(results)


def float_module(cases: Sequence[Case]) -> Any:
    """The operator alone on float32 inputs."""
    build = _Builder()
    results = []
    for case in cases:
        names = [case.input_name(side) for side in range(len(case.inputs))]
        sources = [
            build.input(name, one.values.shape)
            for name, one in zip(names, case.inputs, strict=True)
        ]
        results.append(_operator(build, case, sources, quantized=False))
    return build.module(results)


class _Builder:
    """Collects bindings of `main`."""

    def __init__(self) -> None:
        self.builder = relax.BlockBuilder()
        self.inputs: list[Any] = []
        self.bindings: list[Any] = []

    def input(self, name: str, shape: tuple[int, ...]) -> Any:
        safe = name.replace("/", "_")
        self.inputs.append(relax.Var(safe, relax.TensorType(shape, "float32")))
        return self.inputs[-1]

    def emit(self, call: Any, name: str | None = None) -> Any:
        if name is not None:
            span = tvm.ir.Span(tvm.ir.SourceName(name), 0, 0, 0, 0)
            call = relax.Call(call.op, call.args, call.attrs, call.ty_args, span)
        call = self.builder.normalize(call)
        variable = relax.Var(f"lv{len(self.bindings)}", call.ty)
        self.bindings.append(relax.VarBinding(variable, call))
        return variable

    def requantized(self, value: Any, name: str, scale: np.float32, zero: int) -> Any:
        """Quantize under a name, and dequantize."""
        parameters = (constant(scale, "float32"), constant(zero, "int32"))
        stored = self.emit(op.quantize(value, *parameters, axis=0, out_dtype="uint8"), name)
        return self.emit(op.dequantize(stored, *parameters, axis=0))

    def module(self, results: Sequence[Any]) -> Any:
        result = self.emit(relax.Tuple(list(results)))
        body = relax.SeqExpr([relax.BindingBlock(self.bindings)], result)
        function = relax.Function(self.inputs, body, ret_ty=result.ty)
        module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
        return relax.transform.Normalize()(module)


def constant(value: Any, dtype: str) -> Any:
    """A Relax constant of exactly this dtype."""
    return relax.const(np.asarray(value, dtype=dtype), dtype)


def _operator(build: _Builder, case: Case, sources: list[Any], quantized: bool = True) -> Any:
    value = _KERNELS[case.operator](build, case, sources, quantized)
    return build.emit(op.nn.relu(value)) if case.spec.relu else value


def _weight(build: _Builder, case: Case, quantized: bool) -> Any:
    assert case.weight is not None
    if not quantized:
        return constant(case.weight.reals, "float32")
    scale, zero = case.weight.scale, case.weight.zero
    if scale.size == 1:
        scale, zero = scale.reshape(()), zero.reshape(())
    return build.emit(
        op.dequantize(
            constant(case.weight.values, "int8"),
            constant(scale, "float32"),
            constant(zero, "int32"),
            axis=0,
        )
    )


def _conv(build: _Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec = case.spec
    assert case.weight is not None
    result = build.emit(
        op.nn.conv2d(
            sources[0],
            _weight(build, case, quantized),
            strides=list(spec.stride),
            padding=[*spec.padding, *spec.padding],
            dilation=list(spec.dilation),
            groups=groups_of(case),
        )
    )
    return build.emit(op.add(result, constant(case.weight.bias.reshape(1, -1, 1, 1), "float32")))


def groups_of(case: Case) -> int:
    """Groups of a convolution."""
    return case.spec.channels if case.operator == "depthwise_conv2d" else 1


def _linear(build: _Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    assert case.weight is not None
    value = sources[0]
    if case.operator == "flatten":
        value = build.emit(op.reshape(value, (case.spec.batch, case.weight.values.shape[1])))
    turned = build.emit(op.permute_dims(_weight(build, case, quantized)))
    result = build.emit(op.matmul(value, turned))
    return build.emit(op.add(result, constant(case.weight.bias, "float32")))


def _add(build: _Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    return build.emit(op.add(*sources))


def _clamp(build: _Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    low, high = real_limits(case)
    if high == float("inf"):
        return build.emit(op.nn.relu(sources[0]))
    return build.emit(op.clip(sources[0], low, high))


def _max_pool(build: _Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    spec = case.spec
    padding = [*spec.padding, *spec.padding]
    window = (list(spec.kernel), list(spec.stride), padding)
    return build.emit(op.nn.max_pool2d(sources[0], *window))


def _mean(build: _Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    return build.emit(op.mean(sources[0], [2, 3], keepdims=True))


_KERNELS: dict[str, Callable[[_Builder, Case, list[Any], bool], Any]] = {
    "conv2d": _conv,
    "depthwise_conv2d": _conv,
    "linear": _linear,
    "flatten": _linear,
    "add": _add,
    "max_pool2d": _max_pool,
    "global_avg_pool2d": _mean,
    **dict.fromkeys(("relu", "relu6", "clip", "quantize", "dequantize"), _clamp),
}
