"""All operators of a TensorFlow Lite model, in order, as one QDQ module.

What comes in: a `SourceModel`. What goes out: a `QuantizedModel`. It must not know operators.
"""

from __future__ import annotations

from typing import Any

from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.errors import ModelError
from accelsim.importer.reasons import reason
from accelsim.importer.tflite.model import TfliteModel, TfliteOperator
from accelsim.quantize.spans import with_members
from accelsim.quantize.tflite.graph import Graph
from accelsim.quantize.tflite.operators import Converter, converter_of


def quantize_tflite(source: SourceModel) -> QuantizedModel:
    """Take a quantized model as it is.

    Raises ModelError naming the layer of an operator that is unknown or has wrong operands.
    """
    model: TfliteModel = source.float_module
    if not model.quantized:
        raise ModelError(
            f"model {source.name} is a TensorFlow Lite model of floats; convert it with int8 "
            "quantization"
        )
    graph = Graph(model)
    for operator in model.operators:
        convert = converter_of(operator, model.name)
        with graph.layer(operator):
            graph.finish(operator, _converted(graph, operator, convert))
    if not graph.layers:
        raise ModelError(f"model {model.name} has no quantized operator")
    module = with_members(graph.module(), {name: (name,) for name in graph.layers})
    inputs = [model.tensors[index] for index in model.inputs]
    return QuantizedModel(
        name=source.name,
        exported=None,
        qdq=module,
        torch_int8=None,
        layer_names=tuple(graph.layers),
        input_names=model.input_names,
        input_shapes=tuple(one.shape for one in inputs),
        input_dtypes=tuple(one.dtype for one in inputs),
        rounding="tflite",
        framework="tflite",
        original=model,
        output_names=tuple(model.tensors[index].name for index in model.outputs),
    )


def _converted(graph: Graph, operator: TfliteOperator, convert: Converter) -> Any:
    """An operator's results. Raises ModelError where Relax refuses its operands."""
    try:
        return convert(graph, operator)
    except (ModelError, KeyboardInterrupt):
        raise
    except Exception as error:  # TVM raises many kinds
        raise graph.wrong(f"has operands that do not fit: {reason(error)}") from None
