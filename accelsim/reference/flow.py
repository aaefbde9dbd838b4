"""Float values between a dequantize and a quantize: what one operator makes of another.

What comes in: Relax calls and the values of their operands. What goes out: a `Flow` with at most
one core operator, or `Unknown`. It must not know layers, names or quantization.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accelsim.errors import ModelError
from accelsim.reference.network import Add, Affine, Core, Pool, Shape
from accelsim.reference.operators import Weight, operator_core


@dataclass(frozen=True, slots=True)
class Flow:
    """A float value: one core operator at most, then reshapes and clamps."""

    sources: tuple[str, ...]
    source_shapes: tuple[Shape, ...]
    shape: Shape
    core: Core | None = None
    limits: tuple[float, float] = (-math.inf, math.inf)
    core_shape: Shape = ()

    @property
    def plain(self) -> bool:
        """Nothing but a reshape since the dequantize."""
        return self.core is None and self.limits == (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that no integer layer can be made of: the layer that needs it is the host's."""

    operator: str


def shape_of(expression: Any) -> Shape:
    """Static shape of a Relax expression; `ModelError` where it is dynamic."""
    try:
        return tuple(int(extent) for extent in expression.ty.shape)
    except (TypeError, ValueError) as error:
        raise ModelError(f"a tensor of the model has a dynamic shape: {expression.ty}") from error


def constant_value(expression: Any) -> np.ndarray | None:
    """A constant as NumPy, or None where the expression is something else."""
    data = getattr(expression, "value", None)
    if data is None:
        return None
    return np.asarray(data.numpy() if hasattr(data, "numpy") else data)


def fold(operator: str, call: Any, value: np.ndarray) -> Any:
    """Shape changes and casts of constants."""
    if operator == "relax.reshape":
        return value.reshape(shape_of(call))
    if operator == "relax.permute_dims":
        return value.transpose([int(axis) for axis in call.attrs.axes])
    if operator == "relax.astype":
        return value.astype(str(call.attrs.dtype))
    return Unknown(operator)


def flow_of(operator: str, call: Any, operands: list[Any], shape: Shape) -> Any:
    """One float operator applied to a flow."""
    flow = operands[0] if isinstance(operands[0], Flow) else None
    if operator == "relax.add" and isinstance(operands[0], np.ndarray):
        return flow_of(operator, call, operands[::-1], shape)
    if flow is None:
        return Unknown(operator)
    if operator in ("relax.reshape", "relax.flatten", "relax.squeeze", "relax.expand_dims"):
        if flow.core is None and flow.limits == (-math.inf, math.inf):
            return replace(flow, shape=shape, source_shapes=(shape,))
        return replace(flow, shape=shape)
    if operator in ("relax.nn.relu", "relax.nn.relu6"):
        return _clamped(flow, 0.0, 6.0 if operator.endswith("6") else math.inf)
    if operator == "relax.clip":
        return _clamped(flow, *(float(call.args[index].value) for index in (1, 2)))
    return _cored(operator, call, operands, shape)


def _clamped(flow: Flow, low: float, high: float) -> Flow:
    below, above = flow.limits
    core_shape = flow.core_shape or flow.shape
    limits = (min(max(below, low), high), max(min(above, high), low))
    return replace(flow, limits=limits, core_shape=core_shape)


def _cored(operator: str, call: Any, operands: list[Any], shape: Shape) -> Any:
    """The core operator of a layer, or the bias of the one before."""
    flow = operands[0]
    if operator == "relax.add" and len(operands) == 2 and isinstance(operands[1], np.ndarray):
        return _biased(flow, operands[1]) or Unknown(operator)
    flows = [operand for operand in operands if isinstance(operand, Flow)]
    if not all(one.plain for one in flows):
        return Unknown(operator)
    weight = operands[1] if len(operands) > 1 and isinstance(operands[1], Weight) else None
    core = operator_core(operator, call, flows[0].shape, shape, weight)
    if core is None or len(flows) != (2 if isinstance(core, Add) else 1):
        return Unknown(operator)
    if isinstance(core, Add) and flows[0].shape != flows[1].shape:
        return Unknown("relax.add with broadcasting")
    window_shape = shape
    if isinstance(core, Pool) and len(shape) == 2:
        window_shape = (*shape, 1, 1)
    return Flow(
        sources=tuple(one.sources[0] for one in flows),
        source_shapes=tuple(one.shape for one in flows),
        shape=shape,
        core=core,
        core_shape=window_shape,
    )


def _biased(flow: Flow, bias: np.ndarray) -> Flow | None:
    """The flow with a bias per channel, or None where the constant is not one."""
    core = flow.core
    if not isinstance(core, Affine) or np.any(core.bias) or flow.shape != flow.core_shape:
        return None
    channels, trailing = core.weight.shape[0], (1,) * (core.weight.ndim - 2)
    fits = bias.shape in ((channels, *trailing), (1, channels, *trailing))
    if not fits or flow.limits != (-math.inf, math.inf):
        return None
    return replace(flow, core=replace(core, bias=bias.reshape(-1).astype(np.float32)))
