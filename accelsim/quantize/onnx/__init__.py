"""An ONNX graph as a QDQ module.

What comes in: a `SourceModel` with an `OnnxModel`. What goes out: a `QuantizedModel` in the form
that `accelsim.quantize` documents, NCHW. It must not know the hardware.

QDQ files have quantize and dequantize around float operators already. An operator of the QOperator
form (QLinearConv, …) becomes the same: dequantize, the float operator, quantize; its int32 bias is
a dequantized constant in steps of the accumulator. So both forms of one network are one form here,
and ONNX Runtime's rounding ("onnxruntime") says what its integers are.
"""

from __future__ import annotations

from typing import Any

from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.errors import AccelsimError, ModelError
from accelsim.importer.onnx import OnnxModel, OnnxNode
from accelsim.importer.reasons import reason
from accelsim.quantize.onnx.emitter import ACTIVATIONS, Emitter, Lazy, Stored
from accelsim.quantize.onnx.layers import Named, named_module
from accelsim.quantize.onnx.masks import with_quantized_masks
from accelsim.quantize.onnx.moved import with_moves_apart
from accelsim.quantize.onnx.operators import Converters, converters, key_of

__all__ = ["named_layers", "quantize_onnx"]


def quantize_onnx(source: SourceModel) -> QuantizedModel:
    """The QDQ module of a quantized ONNX model.

    Raises ModelError naming the layer that has no form here, or the file where nothing is
    quantized.
    """
    assert isinstance(source.float_module, OnnxModel)
    model = with_moves_apart(with_quantized_masks(source.float_module))
    named = named_layers(model)
    return QuantizedModel(
        name=source.name,
        exported=None,
        qdq=named.module,
        torch_int8=None,
        layer_names=named.layers,
        input_names=tuple(value.name for value in model.inputs),
        input_shapes=tuple(value.shape for value in model.inputs),
        input_dtypes=tuple(value.dtype for value in model.inputs),
        rounding="onnxruntime",
        framework="onnx",
        original=model,
        output_names=model.outputs,
    )


def named_layers(model: OnnxModel) -> Named:
    """The module, with the ONNX nodes of each layer."""
    g, known = Emitter(model), converters()
    for value in model.inputs:
        variable = g.parameter(value.name, value.shape, value.dtype)
        integer = value.dtype in ACTIVATIONS
        g.values[value.name] = Stored(variable, None) if integer else variable
    stored: dict[Any, str] = {}
    for node in model.nodes:
        g.node = node
        results = _converted(g, known, node)
        outputs = results if isinstance(results, tuple) else (results,)
        for name, result in zip(node.outputs, outputs, strict=False):
            if name:
                g.values[name] = result
            if name and isinstance(result, Stored):
                stored.setdefault(result.var, name)
    results = []
    for name in model.outputs:
        value = g.value(name)
        results.append(value.var if isinstance(value, Stored) else g.operand(value))
    return named_module(g.bindings, g.parameters, results, stored)


def _converted(g: Emitter, known: Converters, node: OnnxNode) -> Any:
    """The results of one node."""
    converter = known.of(node)
    if converter is None:
        raise ModelError(
            f"layer '{node.name}' of {g.model.name} is of the operator {key_of(node)}, which "
            "accelsim does not know"
        )
    first = g.values.get(node.input(0))
    try:
        if node.operator in known.renaming and isinstance(first, Lazy):
            return Lazy(lambda: converter(g, node), node)
        result = converter(g, node)
        read = [g.values.get(name) for name in node.inputs]
        stored = [value for value in read if isinstance(value, Stored)]
        if not stored or node.domain or node.operator not in known.moves:
            return result
        levels = g.levels(stored[0])
        if not all(g.levels(value).same(levels) for value in stored):
            raise g.fail("joins integers of different scales")
        parts = result if isinstance(result, tuple) else (result,)
        moved = tuple(g.quantize(part, levels) for part in parts)
        return moved if isinstance(result, tuple) else moved[0]
    except AccelsimError:
        raise
    except Exception as error:  # TVM raises many kinds for shapes that do not fit
        raise g.fail(f"cannot be converted: {reason(error)}") from error
