"""SourceModel → QuantizedModel.

What comes in: a float model to quantize, or an already quantized exported program. What goes out:
its three forms. It must not know the hardware."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.errors import ModelError
from accelsim.importer.input_names import keep_inputs
from accelsim.quantize.calibrated import has_observers
from accelsim.quantize.canonical import canonical
from accelsim.quantize.converters import to_relax
from accelsim.quantize.excluded import excluded_layers
from accelsim.quantize.export_program import export_program
from accelsim.quantize.exported_names import exported_names, keep_names
from accelsim.quantize.fx_graph import FxQuantized, quantize_fx
from accelsim.quantize.golden import label_layers, relabel
from accelsim.quantize.int8_modules import is_int8
from accelsim.quantize.int8_network import read_int8
from accelsim.quantize.kept_float import operators_of
from accelsim.quantize.names import LayerNames, with_inputs
from accelsim.quantize.prepared import (
    convert_prepared_eager,
    convert_prepared_fx,
    convert_to_int8,
    is_prepared_fx,
)
from accelsim.quantize.program_checks import check_program
from accelsim.quantize.pt2e import export_pt2e, is_pt2e
from accelsim.quantize.recipe import Recipe
from accelsim.quantize.spans import layer_members
from accelsim.quantize.split_layers import split_layers


def quantize(
    source: SourceModel,
    per_channel: bool = False,
    observer: str = "histogram",
    keep_float: tuple[str, ...] = (),
    signed: bool = False,
) -> QuantizedModel:
    """Quantize a model, or import one that already is.

    Args:
        source: from `accelsim.importer`. With `already_quantized`, `float_module` is the
            `torch.export.ExportedProgram` itself, and the options are not used; a file of another
            framework than PyTorch is read by that framework's own module of this room.
        per_channel: one weight scale for each output channel.
        observer: for activations, one of `observers.KINDS`.
        keep_float: layers that stay in float on the host, besides those of the source.
        signed: int8 activations instead of uint8. PyTorch has no int8 kernels for them, so each
            layer's golden is the kernel of the same levels shifted to uint8.

    Raises:
        ModelError: the model cannot be traced, calibrated, exported or imported.
        InputError: unusable calibration data, an unknown observer, or a layer to keep that there
            is not.
    """
    return quantize_forms(source, per_channel, observer, keep_float, signed)[0]


def quantize_forms(
    source: SourceModel,
    per_channel: bool = False,
    observer: str = "histogram",
    keep_float: tuple[str, ...] = (),
    signed: bool = False,
) -> tuple[QuantizedModel, FxQuantized | None]:
    """What `quantize` gives, and the FX network behind it where its weights came as floats."""
    if source.framework == "tflite":
        from accelsim.quantize.tflite import quantize_tflite

        return quantize_tflite(source), None
    if source.framework == "onnx":
        from accelsim.quantize.onnx import quantize_onnx

        return quantize_onnx(source), None
    if isinstance(source.float_module, torch.jit.ScriptModule):
        raise ModelError(
            f"model {source.name} is TorchScript, which has lost its modules; return the module "
            "that it was made from, or export that with torch.export.save and give the .pt2"
        )
    if source.already_quantized:
        return _exported(source, source.float_module), None
    if is_pt2e(source.float_module):
        return _exported(source, export_pt2e(source)), None
    if is_prepared_fx(source.float_module):
        return _prepared(source)
    if has_observers(source.float_module):
        return _labelled(source, convert_prepared_eager(source)), None
    if is_int8(source.float_module):
        return _labelled(source, read_int8(source)), None
    kept = (*source.keep_float, *keep_float)
    recipe = Recipe(observer, per_channel=per_channel, signed=signed, keep_float=kept)
    quantized = quantize_fx(source, recipe)
    return quantized_model(source, quantized, kept), quantized


def quantized_model(
    source: SourceModel, quantized: FxQuantized, kept: tuple[str, ...] = ()
) -> QuantizedModel:
    """The `QuantizedModel` of a network that FX has quantized, but for the layers of `kept`.

    Where PyTorch lacks an int8 kernel of it, its exported graph is the framework's golden. Raises
    ModelError where it cannot be exported or imported.
    """
    runs = label_layers(quantized, source.example_inputs)
    return _labelled(source, quantized, runs, kept)


def _prepared(source: SourceModel) -> tuple[QuantizedModel, FxQuantized | None]:
    """A network of prepare_fx; as its int8 form says where PyTorch cannot export the reference."""
    quantized = convert_prepared_fx(source)
    try:
        return quantized_model(source, quantized), quantized
    except ModelError as error:
        try:
            return _labelled(source, read_int8(convert_to_int8(source))), None
        except ModelError:
            raise error from None


def _exported(source: SourceModel, given: torch.export.ExportedProgram) -> QuantizedModel:
    program = split_layers(given)
    names = exported_names(program)
    if program is not given:
        keep_names(program, names)
    return _assemble(source, program, names, None)


def _labelled(
    source: SourceModel, quantized: FxQuantized, runs: bool = True, kept: tuple[str, ...] = ()
) -> QuantizedModel:
    program = export_program(quantized.reference, source)
    keep_names(program, quantized.names)
    int8 = quantized.int8 if runs else None
    return _assemble(source, program, quantized.names, int8, kept)


def _assemble(
    source: SourceModel,
    program: Any,
    names: LayerNames,
    int8: Any | None,
    kept: tuple[str, ...] = (),
) -> QuantizedModel:
    check_program(program, names, source.name)
    own = program.graph_signature.user_inputs
    inputs = source.input_names if len(source.input_names) == len(own) else tuple(own)
    given, names = names, with_inputs(names, dict(zip(own, inputs, strict=True)))
    if int8 is not None:
        pairs = zip(given.quantized, names.quantized, strict=True)
        relabel(int8, {old.name: new.name for old, new in pairs})
    keep_names(program, names)
    keep_inputs(program, inputs)
    module = canonical(to_relax(program, source.name), names, source.name, inputs)
    layers = [layer.name for layer in names.quantized if layer.members]
    if names.tail is not None:
        layers.append(names.tail.name)
    parameters = module["main"].params
    members = layer_members(module)
    return QuantizedModel(
        name=source.name,
        exported=program,
        qdq=module,
        torch_int8=int8,
        framework="torch",
        rounding="qnnpack",  # what PyTorch's kernel does, with or without an FX network
        layer_names=tuple(layers),
        input_names=tuple(str(parameter.name) for parameter in parameters),
        input_shapes=tuple(
            tuple(int(extent) for extent in parameter.ty.shape) for parameter in parameters
        ),
        input_dtypes=tuple(str(parameter.ty.dtype) for parameter in parameters),
        excluded=excluded_layers(module, members, _chosen(source, members, kept)),
    )


def _chosen(
    source: SourceModel, members: Mapping[str, Sequence[str]], kept: Sequence[str]
) -> dict[str, list[str]]:
    """Each exclusion as it was given → the user's names of its operators."""
    names = {one: one for operators in members.values() for one in operators}
    return {one: list(operators_of(one, source.float_module, names).values()) for one in kept}
