"""Functions of PyTorch's in terms of simpler ones, where PyTorch's decomposition is no help.

What comes in: a function's arguments. What goes out: the same result by functions that have a
converter. It must not know Relax or graphs.

A rule also stands in for a converter of TVM's that is wrong: it forgets the alpha of a sum, takes a
number of a narrow for an end, divides a standard deviation by the count, and joins several indices
otherwise than PyTorch does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

Tensor = torch.Tensor
Rule = Callable[..., Any]

RANDOM = frozenset(
    {"bernoulli.p", "bernoulli.default", "exponential.default", "randn.default"}
    | {"randn_like.default", "rand.default", "rand_like.default"}
)
"""Functions of chance, for which TVM's importer puts constants."""


def rule_of(name: str, kwargs: Mapping[str, Any], args: Sequence[Any]) -> Rule | None:
    """The rule of a function (its name with the overload) that needs one with these arguments."""
    if name in ("add.Tensor", "sub.Tensor") and kwargs.get("alpha", 1) == 1:
        return None
    if name == "index.Tensor" and sum(one is not None for one in args[1]) == 1:
        return None
    if name == "scatter.src" and _shape(args[2]) == _shape(args[3]):
        return None
    return _RULES.get(name)


def _shape(node: Any) -> tuple[int, ...]:
    return tuple(node.meta["val"].shape)


def _add(x: Any, other: Any, *, alpha: float = 1) -> Tensor:
    return torch.as_tensor(x + other * alpha)


def _sub(x: Any, other: Any, *, alpha: float = 1) -> Tensor:
    return torch.as_tensor(x - other * alpha)


def _std(x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Tensor:
    return torch.var(x, dim, correction=correction, keepdim=keepdim).sqrt()


def _min_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    values, places = torch.max(-x, dim, keepdim)
    return -values, places


def _var_mean(
    x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    mean = torch.mean(x, dim, keepdim)
    return torch.var(x, dim, correction=correction, keepdim=keepdim), mean


def _narrow(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    start = start % x.shape[dim] if start < 0 else start
    taken: Tensor = torch.ops.aten.slice.Tensor(x, dim, start, start + length)
    return taken


def _index(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """Several index tensors: the axes that they index become one, with one index."""
    given = [(axis, one) for axis, one in enumerate(indices) if one is not None]
    axes = [axis for axis, _ in given]
    if any(one.dtype == torch.bool for _, one in given):
        raise NotImplementedError("a mask's result has no fixed size")
    adjacent = axes == list(range(axes[0], axes[0] + len(axes)))
    place = axes[0] if adjacent else 0
    rest = [axis for axis in range(x.dim()) if axis not in axes]
    order = [*rest[:place], *axes, *rest[place:]]
    joined: Any = 0
    for axis, one in given:
        size = x.shape[axis]
        joined = joined * size + torch.where(one < 0, one + size, one)
    before, after = [x.shape[a] for a in rest[:place]], [x.shape[a] for a in rest[place:]]
    flat = x.permute(order).reshape([*before, math.prod(x.shape[a] for a in axes), *after])
    taken = flat.index_select(place, joined.reshape(-1))
    return taken.reshape([*before, *joined.shape, *after])


def _unfold(x: Tensor, dim: int, size: int, step: int) -> Tensor:
    dim = dim % x.dim()
    count = (x.shape[dim] - size) // step + 1
    starts = torch.arange(count)[:, None] * step
    places = (starts + torch.arange(size)[None, :]).reshape(-1)
    taken = x.index_select(dim, places)
    split = taken.reshape([*x.shape[:dim], count, size, *x.shape[dim + 1 :]])
    return split.permute(*(a for a in range(split.dim()) if a != dim + 1), dim + 1)


def _rms_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    axes = list(range(-len(shape), 0))
    epsilon = torch.finfo(x.dtype).eps if eps is None else eps
    normal = x * torch.rsqrt((x * x).mean(axes, keepdim=True) + epsilon)
    return normal if weight is None else normal * weight


def _scatter(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    for axis, size in enumerate(index.shape):
        src = torch.ops.aten.slice.Tensor(src, axis, 0, size)
    return torch.scatter(x, dim, index, src)


def _nan_to_num(x: Tensor, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Tensor:
    most = torch.finfo(x.dtype).max
    low, high = (-most if neginf is None else neginf), (most if posinf is None else posinf)
    known = torch.where(x != x, torch.full_like(x, 0.0 if nan is None else nan), x)
    return known.clamp(low, high)


def _logit(x: Tensor, eps: float | None = None) -> Tensor:
    inside = x if eps is None else x.clamp(eps, 1 - eps)
    return torch.log(inside / (1 - inside))


def _sinc(x: Tensor) -> Tensor:
    angle = x * math.pi
    return torch.where(x == 0, torch.ones_like(x), torch.sin(angle) / angle)


def _lstm_cell(x: Tensor, state: Sequence[Tensor], *weights: Any) -> tuple[Tensor, Tensor]:
    hidden, cell = state
    own, back, offset, offset_back = (*weights, None, None)[:4]
    linear = torch.nn.functional.linear
    gates = linear(x, own, offset) + linear(hidden, back, offset_back)
    keep_new, keep_old, new, shown = gates.chunk(4, 1)
    cell = torch.sigmoid(keep_old) * cell + torch.sigmoid(keep_new) * torch.tanh(new)
    return torch.sigmoid(shown) * torch.tanh(cell), cell


def _gru_cell(x: Tensor, hidden: Tensor, *weights: Any) -> Tensor:
    own, back, offset, offset_back = (*weights, None, None)[:4]
    linear = torch.nn.functional.linear
    given = linear(x, own, offset).chunk(3, 1)
    before = linear(hidden, back, offset_back).chunk(3, 1)
    reset = torch.sigmoid(given[0] + before[0])
    update = torch.sigmoid(given[1] + before[1])
    new = torch.tanh(given[2] + reset * before[2])
    return new + update * (hidden - new)


_RULES: Mapping[str, Rule] = {
    "add.Tensor": _add,
    "sub.Tensor": _sub,
    "std.correction": _std,
    "min.dim": _min_dim,
    "var_mean.correction": _var_mean,
    "narrow.default": _narrow,
    "index.Tensor": _index,
    "take.default": lambda x, index: x.reshape(-1)[index],
    "_unsafe_index.Tensor": _index,
    "unfold.default": _unfold,
    "rms_norm.default": _rms_norm,
    "scatter.src": _scatter,
    "nan_to_num.default": _nan_to_num,
    "logit.default": _logit,
    "lstm_cell.default": _lstm_cell,
    "gru_cell.default": _gru_cell,
    "sinc.default": _sinc,
    "exp2.default": lambda x: torch.exp(x * math.log(2)),
    "erfc.default": lambda x: 1 - torch.erf(x),
    "hypot.default": lambda x, y: torch.sqrt(x * x + y * y),
    "fmax.default": lambda x, y: torch.maximum(x, y),
    "fmin.default": lambda x, y: torch.minimum(x, y),
    "clamp_min.default": lambda x, low: torch.clamp(x, min=low),
    "clamp_max.default": lambda x, high: torch.clamp(x, max=high),
    "clamp_min_.default": lambda x, low: torch.clamp(x, min=low),
    "clamp_max_.default": lambda x, high: torch.clamp(x, max=high),
    "threshold.default": lambda x, at, value: torch.where(x > at, x, torch.full_like(x, value)),
    "rrelu.default": lambda x, lower=1 / 8, upper=1 / 3, *rest: torch.nn.functional.leaky_relu(
        x, (lower + upper) / 2
    ),
}
