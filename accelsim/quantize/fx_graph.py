"""Post-training quantization of a float module with torch.fx and the qnnpack configuration.

What comes in: a `SourceModel` with a float module. What goes out: the reference graph (decomposed
quantize and dequantize around float operators), the int8 graph that PyTorch's qnnpack engine runs,
and the user's layer names. It must not know Relax.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import fx

from accelsim.artifacts import SourceModel
from accelsim.errors import InputError, ModelError
from accelsim.importer.reasons import reason
from accelsim.quantize import names as naming
from accelsim.quantize.float_graph import count_axes_from_first, float_graph
from accelsim.quantize.fx_backend import (
    backend_config,
    leave_tuples,
    observe_alike,
    observe_floats_only,
    share_observers,
)
from accelsim.quantize.kept_float import keep_float
from accelsim.quantize.observers import activation_observer
from accelsim.quantize.recipe import Recipe
from accelsim.zoo.training import one_thread

ENGINE = "qnnpack"


@dataclass(frozen=True, slots=True)
class FxQuantized:
    """One quantization in two forms that share scales, zero points and weights."""

    reference: fx.GraphModule
    int8: fx.GraphModule
    names: naming.LayerNames


@contextmanager
def qnnpack_engine() -> Iterator[None]:
    """Select PyTorch's qnnpack engine; packing and running int8 modules needs it.

    Raises:
        ModelError: this PyTorch was built without qnnpack.
    """
    backend: Any = torch.backends.quantized
    if ENGINE not in backend.supported_engines:
        raise ModelError(f"this PyTorch has no {ENGINE} engine; install one that has it")
    before = backend.engine
    backend.engine = ENGINE
    try:
        yield
    finally:
        backend.engine = before


@dataclass(frozen=True, slots=True)
class Prepared:
    """A float network with observers, the graph that it was made from, and the user's names."""

    module: fx.GraphModule
    graph: fx.Graph
    user_names: dict[str, str]  # fx name of an operator → the user's
    model: str
    inputs: tuple[str, ...] = ()  # the user's names of inputs, in order


@contextmanager
def quantizing() -> Iterator[None]:
    """What preparing, calibrating and converting need: the engine, one thread, no warnings."""
    with warnings.catch_warnings(), qnnpack_engine(), one_thread(), torch.no_grad():
        warnings.simplefilter("ignore")
        yield


def quantize_fx(source: SourceModel, recipe: Recipe) -> FxQuantized:
    """Calibrate and convert, on one thread so that scales repeat everywhere.

    Args:
        source: `float_module` in eval mode; `calibration` batches, or the example inputs where
            there are none or where the model has several inputs.
        recipe: observers, and which layers stay in float.

    Raises:
        ModelError: the module cannot be traced, calibrated or converted.
        InputError: an unknown observer, or no data to calibrate with.
    """
    if source.drawn_examples and not source.calibration:
        raise InputError(
            f"model {source.name} is float and brings no data to calibrate with; use `accelsim "
            f"quantize {source.name} --data FILE.npz --out DIR`, and verify what it writes"
        )
    prepared = prepare(source, recipe)
    batches: tuple[tuple[np.ndarray, ...], ...] = (source.example_inputs,)
    if source.calibration and len(source.example_inputs) == 1:
        batches = tuple((batch,) for batch in source.calibration)
    calibrate(prepared, batches)
    return convert(prepared)


def prepare(source: SourceModel, recipe: Recipe) -> Prepared:
    """Put observers into a copy of a float module.

    Raises:
        ModelError: the module cannot be traced or prepared.
        InputError: an unknown observer, or a layer to keep that there is not.
    """
    from torch.ao import quantization
    from torch.ao.quantization.quantize_fx import prepare_fx

    dtype = torch.qint8 if recipe.signed else torch.quint8
    activations = activation_observer(recipe.activations, recipe.percentile, dtype)
    weights = (
        quantization.default_per_channel_weight_observer
        if recipe.per_channel
        else quantization.default_weight_observer
    )
    default: Any = quantization.get_default_qconfig_mapping(ENGINE)
    if recipe.signed:  # functions of fixed scale are quint8 there, and stay in float here
        default = quantization.QConfigMapping()
    mapping = default.set_global(
        quantization.QConfig(  # type: ignore[no-untyped-call]
            activation=activations, weight=weights
        )
    )
    observe_alike(mapping, activations)
    with quantizing():
        module = copy.deepcopy(source.float_module).eval()
        module, graph, user_names = float_graph(module, source.name)
        if recipe.keep_float:
            keep_float(mapping, module, user_names, recipe.keep_float, source.name)
        leave_tuples(mapping, module)
        examples = tuple(torch.from_numpy(array) for array in source.example_inputs)
        try:
            count_axes_from_first(module, examples)
            prepared: fx.GraphModule = prepare_fx(
                module, mapping, examples, backend_config=backend_config()
            )
            observe_floats_only(prepared, examples)
            share_observers(prepared)
        except Exception as error:  # torch raises many kinds here
            raise ModelError(f"model {source.name} cannot be quantized: {reason(error)}") from error
    return Prepared(prepared, graph, user_names, source.name, source.input_names)


def calibrate(prepared: Prepared, batches: Sequence[tuple[np.ndarray, ...]]) -> None:
    """Show batches (one array for each input) to the observers.

    Raises:
        InputError: NaN or infinity in a batch.
        ModelError: the module fails on a batch.
    """
    for number, batch in enumerate(batches):
        if not all(array.dtype.kind != "f" or np.isfinite(array).all() for array in batch):
            raise InputError(f"calibration batch {number} of {prepared.model} has NaN or infinity")
        try:
            with quantizing():
                prepared.module(*(torch.from_numpy(array) for array in batch))
        except Exception as error:  # the user's forward runs here
            raise ModelError(
                f"model {prepared.model} failed on calibration batch {number} of shape "
                f"{tuple(batch[0].shape)}: {reason(error)}"
            ) from error


def _circular(module: torch.nn.Module) -> str:
    """The first convolution that pads in a circle; "" where none does."""
    for name, layer in module.named_modules():
        if getattr(layer, "padding_mode", "") == "circular":
            return str(name)
    return ""


def convert(prepared: Prepared) -> FxQuantized:
    """Both quantized forms of a calibrated network, which it replaces.

    Raises ModelError where PyTorch cannot convert it.
    """
    from torch.ao.quantization import quantize_fx as api

    graph, user_names = prepared.graph, prepared.user_names
    try:
        with quantizing():
            config = backend_config()
            reference = api._convert_to_reference_decomposed_fx(
                copy.deepcopy(prepared.module), backend_config=config
            )
            int8 = api.convert_fx(prepared.module, backend_config=config)
    except Exception as error:  # torch raises many kinds here
        circular = _circular(prepared.module) if "circular" in str(error) else ""
        if circular:
            raise ModelError(
                f"layer '{circular}' of model {prepared.model} pads in a circle, which PyTorch's "
                "quantized convolutions lack; pad in front of it with torch.nn.functional.pad"
            ) from error
        raise ModelError(f"model {prepared.model} cannot be converted: {reason(error)}") from error
    kept = [node.name for node in reference.graph.nodes]
    members = naming.fused_members(graph, user_names, kept)
    layer_names = naming.group_names(
        reference.graph,
        reference,
        lambda node: node.op == "get_attr",
        lambda node: user_names.get(node.name, node.name),
        lambda node: members.get(node.name, [user_names.get(node.name, node.name)]),
    )
    own = [node.name for node in reference.graph.nodes if node.op == "placeholder"]
    inputs = dict(zip(own, prepared.inputs, strict=False))
    return FxQuantized(reference, int8, naming.with_inputs(layer_names, inputs))
