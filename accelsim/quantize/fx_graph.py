"""Post-training quantization of a float module with torch.fx and the qnnpack configuration.

What comes in: a `SourceModel` with a float module. What goes out: the reference graph (decomposed
quantize and dequantize around float operators), the int8 graph that PyTorch's qnnpack engine runs,
and the user's layer names. It must not know Relax.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import fx, nn

from accelsim.artifacts import SourceModel
from accelsim.errors import InputError, ModelError
from accelsim.importer.reasons import reason
from accelsim.quantize import names as naming
from accelsim.quantize.float_graph import float_graph
from accelsim.quantize.fx_backend import backend_config, share_observers
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


def quantize_fx(source: SourceModel, per_channel: bool, observer: str) -> FxQuantized:
    """Calibrate and convert, on one thread so that scales repeat everywhere.

    Args:
        source: `float_module` in eval mode; `calibration` batches, or the example inputs where
            there are none or where the model has several inputs.
        per_channel: one weight scale for each output channel instead of one for the tensor.
        observer: "histogram" or "minmax", for activations.

    Raises:
        ModelError: the module cannot be traced, calibrated or converted.
        InputError: an unknown observer.
    """
    with warnings.catch_warnings(), qnnpack_engine(), one_thread(), torch.no_grad():
        warnings.simplefilter("ignore")
        module = copy.deepcopy(source.float_module).eval()
        module, graph, user_names = float_graph(module, source.name)
        examples = tuple(torch.from_numpy(array) for array in source.example_inputs)
        prepared = _prepare(module, examples, source.name, per_channel, observer)
        _calibrate(prepared, source, examples)
        return _convert(prepared, graph, user_names, source.name)


def _prepare(
    module: nn.Module,
    examples: tuple[torch.Tensor, ...],
    model: str,
    per_channel: bool,
    observer: str,
) -> fx.GraphModule:
    from torch.ao import quantization
    from torch.ao.quantization.quantize_fx import prepare_fx

    activations: dict[str, Any] = {
        "histogram": quantization.HistogramObserver.with_args(reduce_range=False),
        "minmax": quantization.MinMaxObserver.with_args(reduce_range=False),
    }
    if observer not in activations:
        raise InputError(f"observer '{observer}' is unknown; use histogram or minmax")
    weights = (
        quantization.default_per_channel_weight_observer
        if per_channel
        else quantization.default_weight_observer
    )
    mapping = quantization.get_default_qconfig_mapping(ENGINE).set_global(
        quantization.QConfig(  # type: ignore[no-untyped-call]
            activation=activations[observer], weight=weights
        )
    )
    try:
        prepared: fx.GraphModule = prepare_fx(
            module, mapping, examples, backend_config=backend_config()
        )
        share_observers(prepared)
    except Exception as error:  # torch raises many kinds here
        raise ModelError(f"model {model} cannot be quantized: {reason(error)}") from error
    return prepared


def _calibrate(
    prepared: fx.GraphModule, source: SourceModel, examples: tuple[torch.Tensor, ...]
) -> None:
    batches: list[tuple[torch.Tensor, ...]] = [examples]
    if source.calibration and len(examples) == 1:
        batches = [(torch.from_numpy(batch),) for batch in source.calibration]
    for number, batch in enumerate(batches):
        if not all(np.isfinite(tensor.numpy()).all() for tensor in batch):
            raise InputError(f"calibration batch {number} of {source.name} has NaN or infinity")
        try:
            prepared(*batch)
        except Exception as error:  # the user's forward runs here
            raise ModelError(
                f"model {source.name} failed on calibration batch {number} of shape "
                f"{tuple(batch[0].shape)}: {reason(error)}"
            ) from error


def _convert(
    prepared: fx.GraphModule, graph: fx.Graph, user_names: dict[str, str], model: str
) -> FxQuantized:
    from torch.ao.quantization import quantize_fx as api

    try:
        config = backend_config()
        reference = api._convert_to_reference_decomposed_fx(
            copy.deepcopy(prepared), backend_config=config
        )
        int8 = api.convert_fx(prepared, backend_config=config)
    except Exception as error:  # torch raises many kinds here
        raise ModelError(f"model {model} cannot be converted: {reason(error)}") from error
    kept = [node.name for node in reference.graph.nodes]
    members = naming.fused_members(graph, user_names, kept)
    layer_names = naming.group_names(
        reference.graph,
        reference,
        lambda node: node.op == "get_attr",
        lambda node: user_names.get(node.name, node.name),
        lambda node: members.get(node.name, [user_names.get(node.name, node.name)]),
    )
    return FxQuantized(reference, int8, layer_names)
