"""Layers that run on the NPU: partition → schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from accelsim.artifacts.arrays import Shape4
from accelsim.artifacts.compute import LayerOp


@dataclass(frozen=True, slots=True)
class Tensor:
    """An int8 activation that crosses a layer boundary."""

    name: str
    shape: Shape4
    zero_point: int  # int8 domain
    scale: float  # for reports only: no arithmetic uses it
    layout: str = "nchw"  # axes of the graph's tensor: "nc", "ncw", "nwc", "nchw" or "nhwc"


@dataclass(frozen=True, slots=True)
class Layer:
    """One fused layer of a region: what the user calls it, what it reads, writes and computes."""

    name: str  # the user's name of the layer whose output this is; unique in the network
    op: str  # "conv2d" | "depthwise_conv2d" | "linear" | "add" | "max_pool2d" | "avg_pool2d" | …
    members: tuple[str, ...]  # every user layer fused into this one, in order
    inputs: tuple[str, ...]  # tensor names
    output: str
    compute: LayerOp


@dataclass(frozen=True, slots=True)
class Region:
    """A partition that runs on the NPU: layers in execution order over named tensors."""

    symbol: str  # the global symbol of the partitioned function
    tensors: Mapping[str, Tensor]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    layers: tuple[Layer, ...]
