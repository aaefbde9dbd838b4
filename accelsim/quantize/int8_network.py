"""Post-training quantization that PyTorch has finished: packed FX and eager modules.

What comes in: a `SourceModel` whose module is int8 already. What goes out: the same network in the
forms that quantization here gives, with the user's module, packed for qnnpack, as the golden of
every layer. It must not know Relax.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import torch
from torch import fx

from accelsim.artifacts import SourceModel
from accelsim.errors import ModelError
from accelsim.importer.reasons import reason
from accelsim.quantize.fx_graph import FxQuantized, qnnpack_engine
from accelsim.quantize.golden import label_nodes, make_clamps_contiguous, record
from accelsim.quantize.int8_modules import packed_weights, trace_int8
from accelsim.quantize.int8_reference import int8_reference
from accelsim.quantize.names import group_names


def read_int8(source: SourceModel, unseen: frozenset[str] = frozenset()) -> FxQuantized:
    """Read scales, zero points and weights out of an int8 module.

    Args:
        source: `float_module` converted by convert_fx or torch.ao.quantization.convert, for any
            engine.
        unseen: the user's names of layers whose observers never saw data.

    Raises:
        ModelError: a layer of `unseen` that is used, a module that cannot be traced, does not run
            on the qnnpack engine, quantizes nothing, or holds an operator without float form.
    """
    with warnings.catch_warnings(), qnnpack_engine(), torch.no_grad():
        warnings.simplefilter("ignore")
        traced, names = trace_int8(source.float_module, source.name)
        _refuse_unseen(names, unseen, source.name)
        for node in traced.graph.nodes:
            _check_scales(traced, node, names.get(node.name, [node.name])[0], source.name)
        make_clamps_contiguous(traced)
        values = _values(traced, source)
        reference = int8_reference(traced, names, values, source.name)
    layers = group_names(
        reference.module.graph,
        reference.module,
        lambda node: node.op == "get_attr",
        lambda node: str(node.meta.get("user_names", [node.name])[0]),
        lambda node: node.meta.get("user_names", [node.name]),
    )
    if not reference.quantized:
        raise ModelError(f"int8 model {source.name} quantizes no activation")
    pairs = zip(reference.quantized.values(), layers.quantized, strict=True)
    label_nodes({node: layer.name for node, layer in pairs})
    return FxQuantized(reference.module, traced, layers)


def _refuse_unseen(names: dict[str, list[str]], unseen: frozenset[str], model: str) -> None:
    for own, *_ in names.values():
        if own in unseen:
            raise ModelError(
                f"the observer of layer '{own}' of {model} never saw data; run the prepared model "
                "on calibration batches before it is converted"
            )


def _check_scales(traced: fx.GraphModule, node: fx.Node, name: str, model: str) -> None:
    """Raises ModelError, naming the layer, where a kernel's scale is not a positive number."""
    found: list[Any] = [node.kwargs.get("scale")]
    if node.op == "call_module":
        found.append(getattr(traced.get_submodule(str(node.target)), "scale", None))
    for source in node.all_input_nodes:
        if source.op == "get_attr" and re.search(r"_scale_\d+$", str(source.target)):
            owner, _, attribute = str(source.target).rpartition(".")
            found.append(getattr(traced.get_submodule(owner), attribute))
    weights = packed_weights(traced, node)
    if weights is not None:
        channel = weights.weight.qscheme() != torch.per_tensor_affine
        found.append(weights.weight.q_per_channel_scales() if channel else weights.weight.q_scale())
    for scale in found:
        if not isinstance(scale, int | float | torch.Tensor):
            continue
        scales = torch.as_tensor(scale).float()
        if not bool((torch.isfinite(scales) & (scales > 0)).all()):
            raise ModelError(
                f"layer '{name}' of {model} has the scale {float(scales.min()):g}; a positive "
                "number is needed"
            )


def _values(traced: fx.GraphModule, source: SourceModel) -> dict[fx.Node, Any]:
    try:
        return record(traced, source.example_inputs)
    except Exception as error:  # torch raises many kinds here
        raise ModelError(
            f"PyTorch cannot run int8 model {source.name} on its qnnpack engine: {reason(error)}; "
            "an eager module needs a QuantStub before its first quantized layer and a DeQuantStub "
            "before every float one"
        ) from error
