"""Observers that a user calibrated: what must hold of them before a module is converted.

What comes in: an observer or a fake quantizer, of torch.ao or of torchao, and the name of the layer
that it watches. What goes out: nothing, or a `ModelError` that names the layer. It must not know
how modules are converted.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from accelsim.errors import ModelError

_BYTES = (torch.quint8, torch.qint8, torch.uint8, torch.int8)


def is_observer(module: nn.Module) -> bool:
    """Whether a module watches values: an observer or a fake quantizer."""
    kinds = {kind.__name__ for kind in type(module).__mro__}
    return bool(kinds & {"ObserverBase", "FakeQuantizeBase", "AffineQuantizedObserverBase"})


def has_observers(module: nn.Module) -> bool:
    """Whether a module was prepared for quantization, and not converted yet."""
    return any(is_observer(one) for one in module.modules())


def observers_by_layer(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Path of each module of an eager network → the observer of its output."""
    for path, one in module.named_modules():
        layer, _, last = path.rpartition(".")
        watches = last == "activation_post_process" and is_observer(one) and bool(layer)
        if watches and not is_observer(module.get_submodule(layer)):
            yield layer, one


def never_saw_data(observer: nn.Module) -> bool:
    """Whether an observer that finds ranges has none yet."""
    inner: Any = getattr(observer, "activation_post_process", observer)
    low, high = getattr(inner, "min_val", None), getattr(inner, "max_val", None)
    if not isinstance(low, torch.Tensor) or not isinstance(high, torch.Tensor):
        return False
    return low.numel() == 0 or bool((low > high).any())


def check_observer(observer: nn.Module, layer: str, model: str) -> None:
    """Check one observer of activations.

    Raises:
        ModelError: activations of other than 8 bits, an observer that saw no data, one that saw NaN
            or infinity, or a scale that is not a positive number.
    """
    check_width(observer, layer, model)
    if never_saw_data(observer):
        raise ModelError(
            f"the observer of layer '{layer}' of {model} never saw data; run the prepared model on "
            "calibration batches before it is converted"
        )
    inner: Any = getattr(observer, "activation_post_process", observer)
    for end in ("min_val", "max_val"):
        seen = getattr(inner, end, None)
        if isinstance(seen, torch.Tensor) and not bool(torch.isfinite(seen).all()):
            raise ModelError(
                f"the observer of layer '{layer}' of {model} saw NaN or infinity; look for the "
                "calibration batch or the weight that makes them"
            )
    calculate = getattr(inner, "calculate_qparams", None)
    if calculate is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scale = torch.as_tensor(calculate()[0])
    if not bool((torch.isfinite(scale) & (scale > 0)).all()):
        raise ModelError(
            f"the observer of layer '{layer}' of {model} gives the scale {float(scale.min()):g}; a "
            "positive number is needed"
        )


def check_width(observer: nn.Module, layer: str, model: str) -> None:
    """Raises ModelError, naming the layer, for activations of other than 8 bits."""
    dtype = getattr(observer, "dtype", None)
    inner: Any = getattr(observer, "activation_post_process", observer)
    low, high = getattr(inner, "quant_min", None), getattr(inner, "quant_max", None)
    if getattr(observer, "is_dynamic", False):
        raise ModelError(
            f"layer '{layer}' of {model} is quantized dynamically; only static quantization is "
            "supported"
        )
    levels = high - low if isinstance(low, int) and isinstance(high, int) else 0
    if levels > 255 or (dtype is not None and dtype not in _BYTES and _is_integer(dtype)):
        kind = str(dtype).removeprefix("torch.")
        raise ModelError(
            f"layer '{layer}' of {model} has {kind} activations of {levels + 1:,} levels; the NPU "
            "takes 8 bits: use a quint8 or qint8 observer"
        )


def _is_integer(dtype: Any) -> bool:
    return not dtype.is_floating_point and not dtype.is_complex
