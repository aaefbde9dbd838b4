"""Mean and sum over channels, perhaps over height and width too: `relax.mean` and `relax.sum`.

What comes in: an island, or a layer's site. What goes out: its claim and kernel. It must not know
other families.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax

from accelsim.errors import ModelError
from accelsim.reference.derive import checked, ends_of
from accelsim.reference.flow import Claim, Island, Node, Source
from accelsim.reference.kernels import Emitter, Kernel, Values
from accelsim.reference.multipliers import mean_scaling, product_scaling
from accelsim.reference.operators import Operator
from accelsim.reference.site import Site

op = relax.op
NEAR = 0.5 + 2.0**-10  # output steps from a sum's real result to its integer, at most


@dataclass(frozen=True, slots=True)
class Reduction:
    """The axes that are added, in the model's own order, and whether their number divides."""

    axes: tuple[int, ...]
    mean: bool
    keep: bool


def recognise(island: Island) -> Claim | None:
    """A reduction over channels, and not over images."""
    node = island.ending.value
    if not isinstance(node, Node) or node.operator not in ("relax.mean", "relax.sum"):
        return None
    source, rank = node.operands[0], len(getattr(node.operands[0], "shape", ()))
    if not isinstance(source, Source) or source.shape != source.tensor.shape:
        return None
    given = node.attrs.axis
    axes = tuple(range(rank)) if given is None else tuple(sorted(int(a) % rank for a in given))
    if 0 in axes or source.tensor.axis not in axes or node.shape != island.output.shape:
        return None
    core = Reduction(axes, node.operator == "relax.mean", bool(node.attrs.keepdims))
    return Claim("reduce_channels", core, (source,), node.shape, island.ending.limits)


def kernel(site: Site) -> Kernel:
    """Σ (x - zx), requantized by one multiplier."""
    core: Reduction = site.layer.core
    count = int(np.prod([site.layer.core_shapes[0][axis] for axis in core.axes]))
    if count * 255 >= 2**31:
        raise ModelError(f"layer '{site.layer.name}': an accumulator could leave int32")
    source, output = site.inputs[0].scale, site.output.scale
    if core.mean:
        scaling = mean_scaling(site.rounding, source, output, count)
    else:
        scaling = product_scaling(site.rounding, source, np.ones(1, np.float32), output)
    values: dict[str, np.ndarray] = {
        "input_zero_point": np.array(site.inputs[0].zero_point, np.int32),
        "bias": np.zeros(1, np.int32),
        **checked(site, scaling).values(),
        **ends_of(site),
    }
    return Kernel(_emit, values, (core, scaling.mode))


def _emit(emit: Emitter, x: list[Any], p: Values) -> Any:
    core, mode = emit.geometry
    centred = emit.centred(x[0], p["input_zero_point"], 0, "int32")
    total = emit(op.sum(centred, list(core.axes), keepdims=core.keep))
    return emit.requantized(total, p, mode)


OPERATOR = Operator(
    "reduce_channels",
    recognise,
    kernel,
    distance=lambda site: NEAR,
    tensor_ranks=frozenset({1, 2, 3, 4}),  # 1: of one image's mean over all its axes
)
