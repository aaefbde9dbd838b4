"""Cases as TVM Relax modules: one branch a case, in QDQ form, in float32, or as raw products.

What comes in: cases. What goes out: IRModules with `main`. It must not know torch, and takes no
arithmetic from the compiler or the reference: it states operators only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax

from accelsim.ops.case import Activation, Case
from accelsim.ops.operators import operator_of

op = relax.op


class Builder:
    """Collects bindings of `main`."""

    def __init__(self) -> None:
        """Start with no inputs."""
        self.builder = relax.BlockBuilder()
        self.inputs: list[Any] = []
        self.bindings: list[Any] = []
        self.layer: str | None = None  # name of the calls that follow

    def input(self, name: str, shape: tuple[int, ...], dtype: str = "float32") -> Any:
        """A parameter of `main`."""
        safe = name.replace("/", "_")
        self.inputs.append(relax.Var(safe, relax.TensorType(shape, dtype)))
        return self.inputs[-1]

    def emit(self, call: Any, name: str | None = None) -> Any:
        """Bind a call; `name`, or that of the layer, becomes its span: the user's name of it."""
        name = self.layer if name is None else name
        if name is not None and isinstance(call, relax.Call):
            span = tvm.ir.Span(tvm.ir.SourceName(name), 0, 0, 0, 0)
            call = relax.Call(call.op, call.args, call.attrs, call.ty_args, span)
        call = self.builder.normalize(call)
        variable = relax.Var(f"lv{len(self.bindings)}", call.ty)
        self.bindings.append(relax.VarBinding(variable, call))
        return variable

    def requantized(
        self, value: Any, name: str, scale: np.float32, zero: int, dtype: str = "uint8"
    ) -> Any:
        """Quantize under a name, and dequantize."""
        parameters = (constant(scale, "float32"), constant(zero, "int32"))
        stored = self.emit(op.quantize(value, *parameters, axis=0, out_dtype=dtype), name)
        return self.emit(op.dequantize(stored, *parameters, axis=0))

    def weight(self, case: Case, quantized: bool) -> Any:
        """The case's weight: an integer constant behind a dequantize, or a float32 constant."""
        weight = case.weight
        assert weight is not None
        if not quantized:
            return constant(weight.reals, "float32")
        scale, zero = weight.scale, weight.zero
        if scale.size == 1:
            scale, zero = scale.reshape(()), zero.reshape(())
        parameters = (constant(scale, "float32"), constant(zero, "int32"))
        stored = constant(weight.values, "int8")
        return self.emit(op.dequantize(stored, *parameters, axis=weight.axis))

    def constant(self, one: Activation, quantized: bool) -> Any:
        """A constant operand, as `weight` gives weights."""
        if not quantized:
            return constant(one.reals, "float32")
        parameters = (constant(one.scale, "float32"), constant(one.zero, "int32"))
        stored = constant(one.values, str(one.values.dtype))
        return self.emit(op.dequantize(stored, *parameters, axis=0))

    def module(self, results: Sequence[Any]) -> Any:
        """The IRModule whose `main` returns a tuple of the results."""
        result = self.emit(relax.Tuple(list(results)))
        body = relax.SeqExpr([relax.BindingBlock(self.bindings)], result)
        function = relax.Function(self.inputs, body, ret_ty=result.ty)
        module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
        return relax.transform.Normalize()(module)


def constant(value: Any, dtype: str) -> Any:
    """A Relax constant of exactly this dtype."""
    return relax.const(np.asarray(value, dtype=dtype), dtype)


def qdq_module(cases: Sequence[Case]) -> Any:
    """Quantize, dequantize, the operator, quantize, dequantize; spans carry the cases' names."""
    build = Builder()
    results = []
    for case in cases:
        sources = []
        for side, one in enumerate(case.inputs):
            name, dtype = case.input_name(side), str(one.values.dtype)
            x = build.input(name, one.values.shape)
            build.layer = name
            sources.append(build.requantized(x, name, one.scale, one.zero, dtype))
        build.layer = case.name
        value = _operator(build, case, sources, quantized=True)
        results.append(build.requantized(value, case.name, case.scale, case.zero, case.dtype))
    return build.module(results)


def float_module(cases: Sequence[Case]) -> Any:
    """The operator alone on float32 inputs."""
    build = Builder()
    results = []
    for case in cases:
        sources = [
            build.input(case.input_name(side), one.values.shape)
            for side, one in enumerate(case.inputs)
        ]
        results.append(_operator(build, case, sources, quantized=False))
    return build.module(results)


def product_module(cases: Sequence[Case]) -> Any:
    """(Direct sum, sum of the four raw products) of each case, on int32 inputs of stored values.

    Σ(a - za)(b - zb) = Σab - zb·Σa - za·Σb + za·zb·Σ1, over the elements that meet: padding takes
    part in none of the sums.
    """
    build = Builder()
    results = []
    for case in cases:
        product = operator_of(case.operator).product
        assert product is not None
        sides = operands(case)
        values = [
            build.input(case.input_name(side), stored.shape, "int32")
            for side, (stored, _) in enumerate(sides)
        ]
        zeros = [constant(zero, "int32") for _, zero in sides]
        ones = [constant(np.ones(stored.shape), "int32") for stored, _ in sides]
        (a, b), (za, zb) = values, zeros
        moved = [build.emit(op.subtract(v, z)) for v, z in ((a, za), (b, zb))]
        results.append(product(build, case, *moved))
        raw = product(build, case, a, b)
        of_a = build.emit(op.multiply(product(build, case, a, ones[1]), zb))
        of_b = build.emit(op.multiply(product(build, case, ones[0], b), za))
        count = product(build, case, *ones)
        both = build.emit(op.multiply(build.emit(op.multiply(count, za)), zb))
        sums = build.emit(op.add(of_a, of_b))
        results.append(build.emit(op.add(build.emit(op.subtract(raw, sums)), both)))
    return build.module(results)


def operands(case: Case) -> list[tuple[np.ndarray[Any, Any], int]]:
    """The two factors of a product, stored values as int32 with their zero points."""
    first = case.inputs[0]
    if case.weight is None:
        second = case.inputs[1] if case.constant is None else case.constant
        factor = (second.values.astype(np.int32), second.zero)
    else:
        (zero,) = set(case.weight.zero.tolist())
        factor = (case.weight.values.astype(np.int32), int(zero))
    return [(first.values.astype(np.int32), first.zero), factor]


def _operator(build: Builder, case: Case, sources: list[Any], quantized: bool) -> Any:
    value = operator_of(case.operator).relax(build, case, sources, quantized)
    return build.emit(op.nn.relu(value)) if case.spec.relu else value
