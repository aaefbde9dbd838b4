"""A team's own pieces: an operator for the NPU, a converter, a pass and a host function.

accelsim verify examples/extension.py:make --waive examples/extension_waivers.toml
nox -s ops -- mirror --extend examples/extension.py

The network mirrors its features by a custom operator of PyTorch's, `team::mirror`, whose converter
makes `relax.flip` of it, which the NPU then computes; and it normalises them by `team::contrast`,
which runs on the host as a NumPy function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from tvm import relax

from accelsim.artifacts import Assemble, Piece
from accelsim.errors import ModelError
from accelsim.extend import (
    register_converter,
    register_host_operator,
    register_operator,
    register_pass,
)
from accelsim.legalize import Operator as LegalizeOperator
from accelsim.legalize.expressions import Arguments, output, output_shape
from accelsim.legalize.frame import Frame, leaf_of, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.layout import nhwc
from accelsim.ops import Case, Facts, Spec
from accelsim.ops import Operator as Proof
from accelsim.ops.edges import common_edges
from accelsim.ops.values import activation, drawn
from accelsim.reference.flow import UNLIMITED, Claim, Island, Source
from accelsim.reference.flow import Node as Value
from accelsim.reference.kernels import Emitter, Kernel, Values
from accelsim.reference.operators import Operator as ReferenceOperator
from accelsim.reference.site import Site
from accelsim.spec.config import Config

# ---------------------------------------------------------------------- legalize: read as integers


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """A flip of a map's columns as one piece whose columns are taken from the last to the first."""
    leaf = leaf_of(frame, node.args[0])
    if leaf is None or leaf.layout != "nchw" or int(node.value.attrs.axis) % 4 != 3:
        return None
    if not leaf.quantization.same_levels(frame.quantization) or frame.clipped:
        return Rejection("it is quantized in another way behind the mirror than in front of it")
    rows = [np.arange(size, dtype=np.int32) for size in nhwc(leaf.shape, leaf.layout)]
    take = (rows[0], rows[1], rows[2][::-1].copy(), rows[3])
    piece = Piece(input=0, take=take, place=(rows[0], rows[1], rows[2], rows[3]))
    return operator_of(frame, "mirror", (leaf,), Assemble((piece,)))


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """The same for a CPU."""
    (x,) = arguments.activations
    last = output_shape(op)[2] - 1
    return output(op, lambda n, h, w, c: x(n, h, last - w, c), "mirror")


# --------------------------------------------------------- reference: the same integers, on its own


@dataclass(frozen=True, slots=True)
class Mirrored:
    """The columns of a map in reverse order, so many times: passes have not run here."""

    times: int


def recognise(island: Island) -> Claim | None:
    """A source, flipped along its last axis any number of times, nothing else."""
    value, times = island.last, 0
    while isinstance(value, Value) and value.operator == "relax.flip":
        if len(value.shape) != 4 or int(value.attrs.axis) % 4 != 3:
            return None
        value, times = value.operands[0], times + 1
    if not times or not isinstance(value, Source):
        return None
    return Claim("mirror", Mirrored(times), (value,), value.shape, UNLIMITED)


def kernel(site: Site) -> Kernel:
    """Moves alone. ModelError where input and output have other levels."""
    if not site.same_levels:
        raise ModelError(f"layer '{site.layer.name}' changes the scale of what it mirrors")
    return Kernel(emit_mirrored, {}, geometry=site.layer.core.times % 2)


def emit_mirrored(emit: Emitter, x: list[Any], values: Values) -> Any:
    """The output's columns from the last to the first, or as they are."""
    last = emit.shapes.core_output[3] - 1

    def body(t: Any, i: Any) -> Any:
        column = last - i[3] if emit.geometry else i[3]
        return t[0][i[0], i[1], i[2], column]

    return emit.compute(emit.shapes.core_output, body, emit.load(x[0]))


# ------------------------------------------------------------------------------ ops: its regression


def edges(config: Config) -> tuple[Spec, ...]:
    """Maps of every form."""
    return common_edges(config, Spec("plain", channels=config.lanes), 1)


def case(rng: np.random.Generator, operator: str, spec: Spec) -> Case:
    """One input whose quantization the output keeps."""
    source = activation(rng, spec)
    return Case(operator, spec, (source,), source.scale, source.zero)


PROOF = Proof(
    "mirror",
    Facts(
        types="int8 or uint8 activations",
        limits=("maps, along their columns", "output quantized as the input is"),
        instructions=("load", "store"),
        roundings=("qnnpack", "fp32", "tflite", "onnxruntime"),
        exact=("PyTorch",),
    ),
    edges,
    lambda rng, config: Spec(**drawn(rng, config.lanes, 1)),
    case,
    relax=lambda build, case, sources, quantized: build.emit(relax.op.flip(sources[0], axis=3)),
    torch=lambda case, sources: torch.flip(sources[0], (3,)),
)

# --------------------------------------------------------------------------- what PyTorch exports


@torch.library.custom_op("team::mirror", mutates_args=())
def mirror(x: Tensor) -> Tensor:
    """Columns in reverse order."""
    return torch.flip(x, (3,))


@mirror.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def convert_mirror(node: Any, importer: Any) -> Any:
    """`team::mirror` as Relax."""
    return importer.block_builder.emit(relax.op.flip(importer.env[node.args[0]], axis=3))


def contrast_of(x: np.ndarray) -> np.ndarray:
    """Each image divided by its largest magnitude, or by 1 where that is less."""
    largest = np.abs(x).max(axis=(1, 2, 3), keepdims=True)
    return np.asarray(x / np.maximum(largest, 1), np.float32)


@torch.library.custom_op("team::contrast", mutates_args=())
def contrast(x: Tensor) -> Tensor:
    """The host function as PyTorch calls it."""
    return torch.from_numpy(contrast_of(x.numpy()))


@contrast.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


# ------------------------------------------------------------------------------------------- a pass


@relax.expr_functor.mutator
class _Mirrors(relax.PyExprMutator):  # type: ignore[misc]
    def visit_call_(self, call: Any) -> Any:
        call = self.visit_expr_post_order(call)
        inner = self.lookup_binding(call.args[0]) if _flips(call) else None
        if inner is None or not _flips(inner) or inner.attrs.axis != call.attrs.axis:
            return call
        return inner.args[0]


def _flips(call: Any) -> bool:
    return getattr(getattr(call, "op", None), "name", "") == "relax.flip"


def without_double_mirrors(module: Any) -> Any:
    """A mirror of a mirror becomes what it mirrors."""
    mutator = _Mirrors(module)
    mutator.builder_.update_func(module.get_global_var("main"), mutator.visit_expr(module["main"]))
    written = mutator.builder_.get()
    return written.with_attrs(module.attrs) if module.attrs else written


register_operator(
    legalize=LegalizeOperator(("mirror",), ("relax.flip",), Assemble, read, expression),
    reference=ReferenceOperator("mirror", recognise, kernel, rank=-1),
    proof=PROOF,
)
register_converter("mirror.default", convert_mirror)
register_host_operator("contrast.default", contrast_of)
register_pass(without_double_mirrors)


class Network(nn.Module):
    """(n, 3, 8, 8) → (n, 8, 2, 2)."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3)
        self.third = nn.Conv2d(8, 8, 1)
        self.last = nn.Conv2d(8, 8, 5)

    def forward(self, x: Tensor) -> Tensor:
        """Mirror, mirror twice, normalise on the host."""
        once = self.second(mirror(self.first(x)))
        twice = self.third(mirror(mirror(once)))
        result: Tensor = self.last(contrast(twice))
        return result


def make() -> tuple[nn.Module, Tensor]:
    """The network and an image."""
    torch.manual_seed(5)
    return Network(), torch.randn(1, 3, 8, 8)
