"""Conversion of exported operators that take elements at constant places.

What comes in: nodes of an exported program. What goes out: Relax calls whose places count from the
start of an axis. It must not know layers or names.

PyTorch's `x[:, -1]` means the last element. TVM's importer hands the -1 to `take`, whose code reads
whatever memory stands before the tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import fx
from tvm import relax

from accelsim.quantize.constants import Constants

Converter = Callable[[fx.Node, Any], Any]
INTEGERS = (torch.int64, torch.int32)


def index_converters() -> dict[str, Converter]:
    """By the names of exported operators."""
    return {"select.int": _select}


def _shape(node: Any) -> list[int]:
    return [int(extent) for extent in node.meta["val"].shape]


def _select(node: fx.Node, importer: Any) -> Any:
    source, axis, place = node.args[:3]
    at = relax.const(place % _shape(source)[axis], "int64")  # type: ignore[operator,index]
    return importer.block_builder.emit(relax.op.take(importer.env[source], at, axis))


def index_from_start(node: fx.Node, importer: Any, constants: Constants) -> Any:
    """An `index.Tensor` as TVM converts it, on places that count from the start where known."""
    given: Any = node.args[1]
    before = {place: importer.env[place] for place in given if place is not None}
    for place, extent in zip(given, _shape(node.args[0]), strict=False):
        value = None if place is None else constants.find(place)
        if value is not None and value.dtype in INTEGERS and extent:
            importer.env[place] = relax.const(np.asarray(value.numpy()) % extent)
    try:
        return importer._index_tensor(node)
    finally:
        importer.env.update(before)
