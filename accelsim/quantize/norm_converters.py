"""Conversion of exported normalizations, with gains of 1 and offsets of 0 where there are none.

What comes in: nodes of an exported program and its constants. What goes out: Relax calls. It must
not know layers or names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import fx
from tvm import relax

from accelsim.errors import ModelError
from accelsim.quantize.constants import Constants
from accelsim.quantize.node_arguments import argument, shape_of

nn = relax.op.nn
Converter = Callable[[fx.Node, Any], Any]


def norm_converters(constants: Any) -> dict[str, Converter]:
    """By the names of exported operators; they look up `constants` when they are called."""
    return {
        "batch_norm.default": partial(_batch_norm, constants=constants),
        "layer_norm.default": partial(_layer_norm, constants=constants),
        "group_norm.default": partial(_group_norm, constants=constants),
        "instance_norm.default": partial(_instance_norm, constants=constants),
    }


def _batch_norm(node: fx.Node, importer: Any, constants: Constants) -> Any:
    if node.args[5] or node.args[3] is None or node.args[4] is None:
        raise ModelError(
            f"model {constants.model} has a batch norm in training mode at '{node.name}'; call "
            "eval() before exporting"
        )
    return _fixed_norm(node, importer, constants)


def _fixed_norm(node: fx.Node, importer: Any, constants: Constants) -> Any:
    """By the means and variances that the node is given."""
    given = {place: node.args[place] for place in range(1, 5)}
    channels = [shape_of(node.args[0])[1]]
    ends = [
        _end(given[place], missing, channels, importer, constants)
        for place, missing in enumerate((torch.ones, torch.zeros, torch.zeros, torch.ones), 1)
    ]
    normal = nn.batch_norm(
        importer.env[node.args[0]],
        *ends,
        axis=1,
        epsilon=float(argument(node, 7, "eps", 1e-5)),
        training=False,
    )
    return importer.block_builder.emit(relax.TupleGetItem(importer.block_builder.emit(normal), 0))


def _layer_norm(node: fx.Node, importer: Any, constants: Constants) -> Any:
    given: Any = node.args[1]
    shape = [int(extent) for extent in given]
    normal = nn.layer_norm(
        importer.env[node.args[0]],
        *_affine(node, (2, 3), shape, importer, constants),
        axes=list(range(-len(shape), 0)),
        epsilon=float(argument(node, 4, "eps", 1e-5)),
    )
    return importer.block_builder.emit(normal)


def _group_norm(node: fx.Node, importer: Any, constants: Constants) -> Any:
    shape = shape_of(node.args[0])
    normal = nn.group_norm(
        importer.env[node.args[0]],
        *_affine(node, (2, 3), shape[1:2], importer, constants),
        num_groups=int(argument(node, 1, "num_groups", 1)),
        channel_axis=1,
        axes=list(range(2, len(shape))),
        epsilon=float(argument(node, 4, "eps", 1e-5)),
    )
    return importer.block_builder.emit(normal)


def _instance_norm(node: fx.Node, importer: Any, constants: Constants) -> Any:
    if not node.args[5]:  # running statistics are used: a batch norm
        return _fixed_norm(node, importer, constants)
    shape = shape_of(node.args[0])
    normal = nn.instance_norm(
        importer.env[node.args[0]],
        *_affine(node, (1, 2), shape[1:2], importer, constants),
        channel_axis=1,
        axes=list(range(2, len(shape))),
        epsilon=float(argument(node, 7, "eps", 1e-5)),
    )
    return importer.block_builder.emit(normal)


def _affine(
    node: fx.Node,
    places: tuple[int, int],
    shape: Sequence[int],
    importer: Any,
    constants: Constants,
) -> list[Any]:
    """Gains and offsets."""
    gains, offsets = (
        argument(node, place, name, None)
        for place, name in zip(places, ("weight", "bias"), strict=True)
    )
    return [
        _end(gains, torch.ones, shape, importer, constants),
        _end(offsets, torch.zeros, shape, importer, constants),
    ]


def _end(
    given: Any,
    missing: Callable[..., torch.Tensor],
    shape: Sequence[int],
    importer: Any,
    constants: Constants,
) -> Any:
    """A parameter as a constant, or as what computes it."""
    value = missing(tuple(shape)) if given is None else constants.find(given)
    if value is None:
        return importer.env[given]
    return relax.const(value.to(torch.float32).numpy(), "float32")
