"""Small QDQ modules written by hand, in the form that accelsim.quantize documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import relax

op = relax.op


def constant(value: Any, dtype: str) -> Any:
    return relax.const(np.asarray(value, dtype=dtype), dtype)


class QdqModule:
    """Builds `main` step by step; every quantize carries the name it is given."""

    def __init__(self, **shapes: tuple[int, ...]) -> None:
        self.builder = relax.BlockBuilder()
        self.inputs = [
            relax.Var(name, relax.TensorType(shape, "float32")) for name, shape in shapes.items()
        ]
        self.steps: list[tuple[Any, Any]] = []
        self.qparams: dict[Any, tuple[Any, int]] = {}

    def emit(self, call: Any, name: str | None = None) -> Any:
        if name is not None:
            span = tvm.ir.Span(tvm.ir.SourceName(name), 0, 0, 0, 0)
            call = relax.Call(call.op, call.args, call.attrs, call.ty_args, span)
        call = self.builder.normalize(call)
        variable = relax.Var(f"lv{len(self.steps)}", call.ty)
        self.steps.append((variable, call))
        return variable

    def quantize(
        self,
        value: Any,
        name: str,
        scale: Any,
        zero_point: int,
        dtype: str = "uint8",
        limits: tuple[int, int] | None = None,
    ) -> Any:
        scale_, zero = constant(scale, "float32"), constant(zero_point, "int32")
        result = self.emit(op.quantize(value, scale_, zero, axis=0, out_dtype=dtype), name)
        if limits is not None:
            result = self.emit(op.clip(result, *limits))
        self.qparams[result] = (scale, zero_point)
        return result

    def dequantize(self, value: Any) -> Any:
        scale, zero_point = self.qparams[value]
        return self.emit(
            op.dequantize(value, constant(scale, "float32"), constant(zero_point, "int32"), axis=0)
        )

    def weight(self, values: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> Any:
        if scale.size == 1:
            scale, zero_point = scale.reshape(()), zero_point.reshape(())
        return self.emit(
            op.dequantize(
                constant(values, "int8"),
                constant(scale, "float32"),
                constant(zero_point, "int32"),
                axis=0,
            )
        )

    def conv2d(self, value: Any, weight: Any, bias: np.ndarray, **geometry: Any) -> Any:
        result = self.emit(op.nn.conv2d(value, weight, **geometry))
        return self.emit(op.add(result, constant(bias.reshape(1, -1, 1, 1), "float32")))

    def linear(self, value: Any, weight: Any, bias: np.ndarray) -> Any:
        turned = self.emit(op.permute_dims(weight))
        result = self.emit(op.matmul(value, turned))
        return self.emit(op.add(result, constant(bias, "float32")))

    def module(self, *results: Any) -> Any:
        bindings = [relax.VarBinding(variable, call) for variable, call in self.steps]
        result = results[0]
        if len(results) > 1:
            result = self.builder.normalize(relax.Tuple(list(results)))
        body = relax.SeqExpr([relax.BindingBlock(bindings)], result)
        function = relax.Function(self.inputs, body, ret_ty=result.ty)
        module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
        return relax.transform.Normalize()(module)
