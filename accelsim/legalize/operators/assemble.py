"""Tensors put together from others: pad, concat, slice, split, shuffles, tiles, nearest resizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import te, tirx

from accelsim.artifacts import I8, Assemble, Piece, Requantize, Seen, Shape4
from accelsim.legalize.expressions import Activation, Arguments, Element, output, requantized
from accelsim.legalize.frame import Frame, Leaf, hide, leaf_of, operator_of
from accelsim.legalize.graph import Node
from accelsim.legalize.integer_op import IntegerOp, Rejection
from accelsim.legalize.layout import nhwc
from accelsim.legalize.movement import STARTS, Move, UnknownMoveError, UnmovedError, move_of
from accelsim.legalize.operators import Operator
from accelsim.legalize.operators.transpose import renames
from accelsim.legalize.pieces import MOST_PIECES, Part, TooManyPiecesError, parts_of
from accelsim.legalize.rescale import joined_table, rescaling, table_of, unchanged
from accelsim.legalize.seen import seen_index, seen_parts, transposition_of

_NAMES = {
    "relax.nn.pad": "pad",
    "relax.concat": "concat",
    "relax.stack": "concat",
    "relax.strided_slice": "slice",
    "relax.take": "slice",
    "tuple_element": "split",
    "relax.permute_dims": "permute",
    "relax.nn.pixel_shuffle": "pixel_shuffle",
    "relax.image.resize2d": "resize_nearest",
    "relax.tile": "tile",
    "relax.repeat": "tile",
    "relax.broadcast_to": "tile",
    "relax.flip": "flip",
    "relax.dequantize": "requantize_by_table",
}
UNCHANGED = (None, None)
MANY_PIECES = 32  # beyond it TVM's code for a map takes long to compile


def read(frame: Frame, node: Node) -> IntegerOp | Rejection | None:
    """An island that moves elements of quantized tensors, and quantizes them anew if need be.

    The module `requantize` takes a change of scale alone where one multiplier expresses it.
    """
    if node.op == "relax.dequantize" and _has_multiplier(frame, node):
        return None
    reason = ""
    for absorb in (True, False):
        try:
            move = move_of(frame, node, absorb=absorb)
            if not move.leaves:
                raise UnmovedError("it moves elements of constants only")
            same = unchanged(move.leaves[0].quantization, frame.quantization, frame.int8_limits)
            if same and renames(move) and move.leaves[0].var in frame.operators:
                return None  # of another module
            return _assembled(frame, node, move)
        except UnknownMoveError:
            return None
        except UnmovedError as found:
            reason = reason or str(found)
        except TooManyPiecesError:
            if transposition_of(move) is not None:
                return None
            reason = f"its elements move in more than {MOST_PIECES} separable pieces"
    return Rejection(reason)


def _has_multiplier(frame: Frame, node: Node) -> bool:
    leaf = leaf_of(frame, node.var)
    if leaf is None:
        return True
    change = _change(frame, leaf, node.op)
    return change[1] is None


def _assembled(frame: Frame, node: Node, move: Move) -> IntegerOp:
    """Raises UnmovedError for several constants, TooManyPiecesError."""
    changes = [_change(frame, leaf, node.op) for leaf in move.leaves]
    parts, seen = _parts(move)
    if len(parts) > 1 and changes[0] is UNCHANGED and transposition_of(move) is not None:
        raise TooManyPiecesError
    pieces = []
    for part in parts:
        zero_point = move.leaves[part.input].quantization.int8_zero_point
        pieces.append(Piece(part.input, part.take, part.place, zero_point, *changes[part.input]))
    compute = Assemble(tuple(pieces), _fill(frame, move), seen)
    name = _NAMES.get(node.op, "reshape_copy")
    hide(frame, move.hidden)
    return operator_of(frame, name, move.leaves, compute, absorbed=move.absorbed)


def _parts(move: Move) -> tuple[tuple[Part, ...], Seen | None]:
    """Pieces over the shapes of the tensors, or over others where those are many.

    Raises TooManyPiecesError.
    """
    parts: tuple[Part, ...] | None = None
    try:
        parts = parts_of(move.codes, [nhwc(leaf.shape, leaf.layout) for leaf in move.leaves])
    except TooManyPiecesError:
        if transposition_of(move) is not None:
            raise
    if parts is not None and len(parts) <= MANY_PIECES:
        return parts, None
    try:
        found = seen_parts(move)
    except TooManyPiecesError:
        if parts is None:
            raise
        return parts, None
    return (parts, None) if parts is not None and len(parts) <= len(found[0]) else found


def _change(frame: Frame, leaf: Leaf, op: str) -> tuple[Requantize | None, I8 | None]:
    """How a leaf's levels become those of the output: by a multiplier, or else by a table."""
    source, target = leaf.quantization, frame.quantization
    if unchanged(source, target, frame.int8_limits):
        return UNCHANGED
    if frame.rounding == "tflite" and op == "relax.concat" and source.dtype == "uint8":
        return None, joined_table(source, target, frame.int8_limits)
    found = rescaling(source, target, frame.rounding, frame.int8_limits)
    if isinstance(found, Requantize):
        return found, None
    return None, table_of(source, target, frame.rounding, frame.int8_limits)


def _fill(frame: Frame, move: Move) -> int:
    """The one level that stands where no leaf's element does."""
    target, (low, high) = frame.quantization, frame.int8_limits
    inverse = np.float32(1.0) / target.scale
    levels = {
        int(np.clip(np.rint(np.float32(v) * inverse) + target.int8_zero_point, low, high))
        for v in move.constants
    }
    if len(levels) > 1:
        raise UnmovedError("it fills places with several constants")
    return levels.pop() if levels else 0


def expression(op: IntegerOp, arguments: Arguments) -> Any:
    """The fill, then piece by piece over it: a stage of its own for each keeps conditions small."""
    values = arguments.values
    own = nhwc(op.shape, op.layout)
    shape = op.compute.seen[1] if op.compute.seen else own
    result = te.compute(shape, lambda *_: values.fill.astype("int8"), name="filled")
    for piece, mirrored in zip(op.compute.pieces, values.pieces, strict=True):
        source = _seen(arguments.activations[piece.input], op.compute.seen)
        result = _placed(shape, result, piece, mirrored, source)
    return output(op, lambda *index: result(*seen_index(index, own, shape)), op.op)


def _seen(source: Activation, seen: Seen | None) -> Element:
    """An input over the shape in which it is seen."""
    if seen is None:
        return source
    return lambda *index: source(*seen_index(index, seen[0], source.shape))


def _placed(shape: Shape4, before: Any, piece: Piece, mirrored: Any, source: Element) -> Any:
    """What was there before, with one piece over it, (n, h, w, c)."""
    finders = [
        _finder(own, given, size)
        for own, given, size in zip(piece.place, mirrored.place, shape, strict=True)
    ]

    def element(*index: Any) -> Any:
        places = [find(i) for find, i in zip(finders, index, strict=True)]
        inside = [condition for _, condition in places if condition is not None]
        found = source(
            *[
                _taken(own, given, place)
                for own, given, (place, _) in zip(piece.take, mirrored.take, places, strict=True)
            ]
        )
        if piece.requantize is not None:
            centred = found.astype("int32") - mirrored.input_zero_point
            found = requantized(centred, mirrored.requantize, 0)
        if piece.table is not None:
            found = mirrored.table(found.astype("int32") + 128)
        return tirx.if_then_else(tirx.all(*inside), found, before(*index)) if inside else found

    return te.compute(shape, element, name="placed")


def _affine(values: np.ndarray) -> tuple[int, int] | None:
    """(first, step) of an arithmetic progression."""
    step = int(values[1] - values[0]) if len(values) > 1 else 1
    expected = int(values[0]) + step * np.arange(len(values))
    return (int(values[0]), step) if np.array_equal(values, expected) else None


def _finder(own: np.ndarray, given: Any, size: int) -> Callable[[Any], tuple[Any, Any]]:
    """From an output index to its place in an index array, and whether it is there (None: always).

    Places outside are clamped into the array, so that what is not used is read nowhere else.
    """
    progression = _affine(own)
    count = len(own)
    if progression is not None and progression[1] > 0:
        first, step = progression

        def find(i: Any) -> tuple[Any, Any]:
            if count == size:
                return i, None
            place = tirx.floordiv(i - first, step)
            inside = tirx.all(i >= first, place < count, tirx.floormod(i - first, step) == 0)
            return tirx.max(tirx.min(place, count - 1), 0), inside

        return find
    k = te.reduce_axis((0, count), name="k")
    places = te.compute(
        (size,),
        lambda i: te.max(tirx.if_then_else(given(k) == i, k, -1), axis=k),
        name="places",
    )
    return lambda i: (tirx.max(places(i), 0), None if count == size else places(i) >= 0)


def _taken(own: np.ndarray, given: Any, place: Any) -> Any:
    """The index of a source at a place of an index array."""
    progression = _affine(own)
    if progression is None:
        return given(place)
    first, step = progression
    return place * step + first


OPERATOR = Operator(
    ops=(*dict.fromkeys(_NAMES.values()), "reshape_copy"),
    starts=(*STARTS, "relax.dequantize"),
    compute=Assemble,
    read=read,
    expression=expression,
)
