"""A QDQ module as an ONNX file in QDQ form.

What comes in: a `QuantizedModel`, whatever file it came from. What goes out: an ONNX file that ONNX
Runtime runs and accelsim reads back. It must not know the hardware.

Convolutions and linear layers get an integer bias in steps of the accumulator where that is what
the integers of the network are; it is rounded half to even, as PyTorch's qnnpack and ONNX Runtime
round it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from tvm import ir, relax
from tvm.ir.expr import GenericConst

from accelsim.artifacts import QuantizedModel
from accelsim.errors import ModelError
from accelsim.files import whole_file, writing
from accelsim.quantize.export.onnx_graph import OnnxGraph, serialized
from accelsim.quantize.export.onnx_operators import OPERATORS, Writer
from accelsim.quantize.spans import span_name


def export_onnx(quantized: QuantizedModel, path: Path) -> Path:
    """Write the network.

    Raises:
        ModelError: an operator that ONNX has no form for here, naming the layer.
        ToolError: the onnx package is missing.
        InputError: the file cannot be written.
    """
    data = onnx_bytes(quantized)
    with writing(path), whole_file(path) as partial:
        partial.write_bytes(data)
    return path


def onnx_bytes(quantized: QuantizedModel) -> bytes:
    """The file's content. Raises as `export_onnx` does, InputError apart."""
    function = quantized.qdq["main"]
    graph = OnnxGraph()
    writer = Writer(graph, _bindings(function), function.body.body, quantized.rounding)
    inputs = []
    for parameter in function.params:
        name = graph.tensors.take(str(parameter.name))
        writer.values[parameter] = [name]
        inputs.append((name, *_kind(parameter)))
    for variable, value in writer.bindings.items():
        writer.values[variable] = _written(writer, variable, value, quantized.name)
    results = _results(writer, function.body.body)
    outputs = []
    for number, (name, expr) in enumerate(results):
        given = quantized.output_names[number : number + 1]
        plain = "output" if len(results) == 1 else f"output_{number}"
        own = graph.tensors.take(given[0] if given else plain)
        last = next((node for node in graph.nodes if name in node.outputs), None)
        layer = last.layer if last is not None else own
        graph.nodes.append(_identity(name, own, layer))
        outputs.append((own, *_kind(expr)))
    return serialized(graph, inputs, outputs, re.sub(r"\W+", "_", quantized.name) or "network")


def _identity(source: str, target: str, layer: str) -> Any:
    from accelsim.quantize.export.onnx_graph import OnnxNode

    return OnnxNode("Identity", [source], [target], {}, layer)


def _bindings(function: Any) -> dict[Any, Any]:
    return {
        binding.var: binding.value for block in function.body.blocks for binding in block.bindings
    }


def _written(writer: Writer, variable: Any, value: Any, model: str) -> list[str]:
    if variable in writer.values:  # written together with what it reads
        return writer.values[variable]
    if isinstance(value, relax.Tuple):
        return [name for field in value.fields for name in writer.names(field)]
    if isinstance(value, relax.TupleGetItem):
        return [writer.names(value.tuple_value)[value.index]]
    if not isinstance(value, relax.Call):
        return writer.names(value)
    operator = str(getattr(value.op, "name", value.op))
    layer = span_name(value) or str(variable.name)
    emit = OPERATORS.get(operator)
    found = None if emit is None else emit(writer, variable, value, layer)
    if found is None:
        raise ModelError(
            f"layer '{layer}' of {model} has {operator.removeprefix('relax.')}, which accelsim "
            "cannot write as ONNX"
        )
    return found


def _results(writer: Writer, body: Any) -> list[tuple[str, Any]]:
    """The returned tensors: name in the graph, and an expression of its type."""
    value = writer.bindings.get(body, body)
    while isinstance(value, ir.Var) and value in writer.bindings:
        value = writer.bindings[value]
    if isinstance(value, relax.Tuple):
        return [(writer.names(field)[0], field) for field in value.fields]
    return [(writer.names(body)[0], body)]


def _kind(expr: Any) -> tuple[str, list[int]]:
    if isinstance(expr, GenericConst):
        array = expr.value.numpy()
        return str(array.dtype), list(np.shape(array))
    return str(expr.ty.dtype), [int(extent) for extent in expr.ty.shape]
