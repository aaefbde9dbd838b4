"""Product, minimum and maximum of two activations, or of one and a constant.

What comes in: an island, or a layer's site. What goes out: its claim, kernel and PyTorch golden.
It must not know other families.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from tvm import te

from accelsim.reference.derive import checked, ends_of
from accelsim.reference.flow import Claim, Island, Node
from accelsim.reference.kernels import Emitter, Kernel, Values, finished
from accelsim.reference.multipliers import fixed_point, quotient_scaling
from accelsim.reference.operators import Operator, TorchKernel
from accelsim.reference.pairs import at, pair_of, pair_tensors, pair_values, scales_of
from accelsim.reference.scaling import MODES, Scaling
from accelsim.reference.site import Site
from accelsim.reference.torch_tensor import torch_target

_NAMES = {"relax.multiply": "multiply", "relax.minimum": "minimum", "relax.maximum": "maximum"}


def recognise(island: Island) -> Claim | None:
    """Two operands, one of them perhaps a constant."""
    node = island.ending.value
    if not isinstance(node, Node) or node.operator not in _NAMES:
        return None
    found = pair_of(node)
    if found is None:
        return None
    pair, sources = found
    return Claim(_NAMES[node.operator], pair, sources, node.shape, island.ending.limits)


def kernel(site: Site) -> Kernel:
    """A requantized product; or the extreme of both operands in output steps."""
    values = {**pair_values(site), **ends_of(site)}
    scales = scales_of(site)
    operator = site.layer.core.operator
    if operator == "relax.multiply":
        scaling = _product_scaling(site, *scales)
        values |= {"bias": np.zeros(1, np.int32), **scaling.values()}
        return Kernel(_emit_product, values, scaling.mode)
    modes = []
    for side, scale in enumerate(scales):
        parameters, mode = _step_change(site, scale)
        values |= {f"{name}_of_{side}": value for name, value in parameters.items()}
        modes.append(mode)
    return Kernel(_emit_extreme, values, (operator, tuple(modes)))


def _product_scaling(site: Site, a: np.float32, b: np.float32) -> Scaling:
    """float32 throughout: PyTorch multiplies by 1 / output scale, the others divide by it."""
    if site.rounding == "tflite":
        return fixed_point(float((a * b) / site.output.scale))
    divided = site.rounding == "onnxruntime"
    inverse = np.float32(1) / site.output.scale
    factor = (a * b) / site.output.scale if divided else (a * b) * inverse
    return checked(site, Scaling("fp32", np.array([factor], np.float32)))


def _step_change(site: Site, scale: np.float32) -> tuple[dict[str, np.ndarray], str]:
    """How steps of `scale` become output steps: parameters and the name of the way."""
    output = site.output.scale
    if site.rounding == "tflite":
        scaling = quotient_scaling(scale, output, False)
        return scaling.values(), scaling.mode
    inverse = np.float32(1) / output
    if site.rounding == "onnxruntime":
        return {"scale": np.array([scale], np.float32), "by": np.array([output], np.float32)}, "/"
    return {"scale": np.array([scale], np.float32), "by": np.array([inverse], np.float32)}, "*"


def _emit_product(emit: Emitter, x: list[Any], p: Values) -> Any:
    product = emit.compute(
        emit.shapes.core_output,
        lambda t, i: at(t[0], i) * at(t[1], i),
        *pair_tensors(emit, x, p),
    )
    return emit.requantized(product, p, emit.geometry)


def _emit_extreme(emit: Emitter, x: list[Any], p: Values) -> Any:
    """Each operand in output steps without zero point, within what int8 can hold; then one."""
    operator, modes = emit.geometry
    steps = [
        _in_output_steps(emit, p, term, side, mode)
        for side, (term, mode) in enumerate(zip(pair_tensors(emit, x, p), modes, strict=True))
    ]
    choose = te.min if operator == "relax.minimum" else te.max

    def body(t: Any, i: Any) -> Any:
        a, b, zero_point, low, high = t
        return finished(choose(at(a, i), at(b, i)), zero_point, low, high)

    ends = (p["zero_point"], p["low"], p["high"])
    return emit.compute(emit.shapes.core_output, body, *steps, *ends)


def _in_output_steps(emit: Emitter, p: Values, term: Any, side: int, mode: str) -> Any:
    shape = tuple(int(size) for size in term.ty.shape)
    if mode in MODES:
        words = [p[f"{name}_of_{side}"] for name in Scaling.names(mode)]
        return emit.compute(
            shape,
            lambda t, i: MODES[mode](t[0][i], *(one[0] for one in t[1:])).astype("float32"),
            *(term, *words),
        )
    reals = emit.compute(
        shape, lambda t, i: t[0][i].astype("float32") * t[1][0], term, p[f"scale_of_{side}"]
    )

    def scaled(t: Any, i: Any) -> Any:
        return te.nearbyint(t[0][i] / t[1][0] if mode == "/" else t[0][i] * t[1][0])

    return emit.compute(shape, scaled, reals, p[f"by_of_{side}"])


def _covers(site: Site) -> bool:
    """PyTorch multiplies quantized tensors of equal shape."""
    pair = site.layer.core
    shapes = {tensor.shape for tensor in (*site.inputs, site.output)}
    whole = pair.constant is None and len(shapes) == 1
    return whole and pair.operator == "relax.multiply" and site.rounding in ("qnnpack", "fp32")


def _run(site: Site, operands: list[Any]) -> Any:
    return torch.ops.quantized.mul(*operands, *torch_target(site.output))


OPERATOR = Operator(
    "binary",
    recognise,
    kernel,
    TorchKernel(_covers, _run),
    tensor_ranks=frozenset(range(1, 5)),
)
