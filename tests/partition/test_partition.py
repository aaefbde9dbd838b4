"""Regions carry what the network computes, under the user's names, in the NPU's layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from tvm import relax
from tvm.relax.transform import FuseOpsByPattern

from accelsim.artifacts import Add, Conv2d, Pool2d, QuantizedModel, Region
from accelsim.errors import ModelError
from accelsim.legalize import legalize
from accelsim.partition import CODEGEN, partition, regions_of
from accelsim.partition.patterns import reject_wrong_boundaries
from accelsim.quantize import layer_members
from tests.legalize.networks import CASES, LogSoftmax, Residual, quantized


def regions(model: QuantizedModel) -> tuple[Region, ...]:
    legalized = legalize(model)
    merged = partition(legalized).merged
    return regions_of(merged, legalized.layers, layer_members(model.qdq))


class Fork(nn.Module):
    """Two results from one stem."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.left = nn.Conv2d(8, 4, 1)
        self.right = nn.MaxPool2d(2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(n, 3, h, w) → two maps."""
        y = self.stem(x)
        return self.left(y), self.right(y)


def test_residual_network_is_one_region() -> None:
    (region,) = regions(quantized(Residual(), (1, 3, 8, 8)))
    assert [layer.name for layer in region.layers] == [
        *("stem", "relu", "left", "relu_1", "right", "add")
    ]
    add = region.layers[-1]
    assert isinstance(add.compute, Add)
    assert add.inputs == ("relu", "right")
    assert region.inputs == ("x",) and region.outputs == ("add",)


class Twice(nn.Module):
    """Two layers that compute the same."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.one = nn.MaxPool2d(3, 1, 1)
        self.other = nn.MaxPool2d(3, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, 3, h, w) → (n, 8, h - 2, w - 2)."""
        y: torch.Tensor = self.other(self.one(self.stem(x)))
        return y


def test_layers_that_compute_the_same_keep_their_names() -> None:
    (region,) = regions(quantized(Twice(), (1, 3, 8, 8)))
    assert [layer.name for layer in region.layers] == ["stem", "one", "other"]


def test_members_of_fused_layers_are_listed_in_order() -> None:
    make, shape = CASES["conv and batch norm and relu"]
    (region,) = regions(quantized(make(), shape))
    assert region.layers[0].members == ("0", "1", "2")


def test_absorbed_clamp_and_flatten_are_members() -> None:
    (clamped,) = regions(quantized(*_made("relu6")))
    assert [layer.members for layer in clamped.layers] == [("0", "1"), ("2",)]
    (flattened,) = regions(quantized(*_made("flattened map")))
    assert flattened.layers[1].members == ("1", "2")


def test_shapes_are_nhwc_with_the_batch() -> None:
    (region,) = regions(quantized(*_made("flattened map")))
    shapes = [tensor.shape for tensor in region.tensors.values()]
    assert shapes == [(2, 6, 7, 3), (2, 4, 5, 8), (2, 1, 1, 10)]


def test_weights_of_a_flattening_linear_layer_are_in_nhwc_order() -> None:
    model = quantized(*_made("flattened map"))
    (region,) = regions(model)
    linear = region.layers[1].compute
    assert isinstance(linear, Conv2d)
    weights = [
        argument.value.numpy()
        for binding in model.qdq["main"].body.blocks[0].bindings
        for argument in getattr(binding.value, "args", ())
        if hasattr(argument, "value") and hasattr(argument.value, "numpy")
    ]
    (rows,) = [value for value in weights if value.shape == (10, 160)]
    for output, row, column, channel in ((0, 0, 0, 0), (3, 1, 4, 5), (9, 3, 4, 7)):
        expected = rows[output, (channel * 4 + row) * 5 + column]
        assert linear.weight[output, row, column, channel] == expected


def test_region_holds_numpy_arrays_of_the_contract_types() -> None:
    (region,) = regions(quantized(Residual(), (1, 3, 8, 8), per_channel=True))
    convolution = region.layers[0].compute
    assert isinstance(convolution, Conv2d)
    assert convolution.weight.dtype == np.int8 and convolution.weight.shape == (12, 3, 3, 3)
    assert convolution.bias.dtype == np.int32 and convolution.bias.shape == (12,)
    multiplier = convolution.requantize.multiplier
    assert multiplier.dtype == np.float32 and multiplier.shape == (12,)


def test_average_pool_has_one_multiplier_for_all_channels() -> None:
    (region,) = regions(quantized(*_made("average pool")))
    pool = region.layers[1].compute
    assert isinstance(pool, Pool2d) and pool.requantize is not None
    assert pool.kind == "sum" and pool.requantize.multiplier.shape == (1,)


def test_host_operator_splits_the_network_into_two_regions() -> None:
    first, second = regions(quantized(LogSoftmax(), (1, 3, 8, 8)))
    assert (first.symbol, second.symbol) == ("accelsim_region_0", "accelsim_region_1")
    assert (first.inputs, first.outputs) == (("x",), ("before",))
    assert (second.inputs, second.outputs) == (("gate",), ("after",))


def test_region_may_have_several_outputs() -> None:
    (region,) = regions(quantized(Fork(), (1, 3, 8, 8)))
    assert set(region.outputs) == {"left", "right"}


def test_depthwise_convolution_is_marked() -> None:
    (region,) = regions(quantized(*_made("depthwise conv")))
    (layer,) = region.layers
    assert layer.op == "depthwise_conv2d"
    assert isinstance(layer.compute, Conv2d) and layer.compute.depthwise
    assert layer.compute.weight.shape == (16, 3, 3, 1)


def test_composite_with_a_float_boundary_is_refused() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([1, 3], "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(relax.op.nn.relu(x))
        builder.emit_func_output(y)
    pattern = relax.dpl.is_op("relax.nn.relu")(relax.dpl.wildcard())
    matched = FuseOpsByPattern([(f"{CODEGEN}.relu", pattern)])(builder.get())
    with pytest.raises(ModelError, match="only int8"):
        reject_wrong_boundaries(matched)


def _made(case: str) -> tuple[Any, tuple[int, ...]]:
    make, shape = CASES[case]
    return make(), shape
