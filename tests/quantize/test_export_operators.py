"""Each operator that is written as ONNX: ONNX Runtime computes what PyTorch does with the program.

Every branch of `Branches` is an output of its own, so that a wrong attribute shows where it is.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.errors import ModelError
from accelsim.quantize import quantize
from accelsim.quantize.export import export_onnx

X = (1, 6, 9, 8)


class Branches(nn.Module):
    """(1, 6, 9, 8) → one tensor for each operator."""

    def __init__(self) -> None:
        super().__init__()
        self.strided = nn.Conv2d(6, 8, (3, 2), (2, 1), (1, 0), groups=2)
        self.dilated = nn.Conv2d(6, 5, 3, padding=(2, 3), dilation=(2, 3))
        self.up = nn.ConvTranspose2d(6, 4, 3, (2, 3), 1, (1, 0))
        self.average = nn.AvgPool2d(3, 2, 1)
        self.uncounted = nn.AvgPool2d(3, 2, 1, count_include_pad=False)
        self.ceil = nn.MaxPool2d(3, (2, 3), ceil_mode=True)
        self.spread = nn.MaxPool2d(2, 1, dilation=(3, 2))
        self.thirds = nn.AdaptiveAvgPool2d((3, 4))
        self.clipped = nn.Hardtanh(-0.5, 0.75)
        self.leaky, self.prelu = nn.LeakyReLU(0.3), nn.PReLU(6)
        self.gelu, self.tanh_gelu = nn.GELU(), nn.GELU(approximate="tanh")
        self.norm = nn.LayerNorm(8, eps=0.5)
        self.rows = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y = torch.relu(x) + 0.5
        return (
            *(self.strided(x), self.dilated(x), self.up(x), self.average(x), self.uncounted(x)),
            *(self.ceil(x), self.spread(x), self.thirds(x), self.clipped(x), self.leaky(x)),
            *(self.prelu(x), self.gelu(x), self.tanh_gelu(x), self.norm(x), self.rows(x)),
            *(functional.silu(x), torch.softmax(x, 1), torch.log_softmax(x, 2)),
            *(x.mean((1, 3)), x.sum(2, keepdim=True), torch.amax(x, 3), torch.tanh(x)),
            *(x - y, x / y, torch.minimum(x, y - 1), torch.maximum(x, y - 1)),
            *(torch.exp(x), torch.erf(x), torch.rsqrt(y), x.permute(0, 2, 3, 1)),
            *(functional.pad(x, (1, 0, 2, 3), value=0.5), x[:, 1:5:2, -4:, :7]),
            *(functional.interpolate(x, scale_factor=2.0), torch.cat([x, y], 2)),
            functional.interpolate(x, size=(13, 20), mode="bilinear"),
            functional.interpolate(x, size=(17, 15), mode="bilinear", align_corners=True),
        )


NAMES = (
    *("strided", "dilated", "up", "average", "uncounted", "ceil", "spread", "thirds", "clipped"),
    *("leaky", "prelu", "gelu", "tanh_gelu", "norm", "rows", "silu", "softmax", "log_softmax"),
    *("mean", "sum", "amax", "tanh", "sub", "div", "minimum", "maximum", "exp", "erf", "rsqrt"),
    *("permute", "pad", "slice", "nearest", "cat", "bilinear", "corners"),
)


def images(count: int) -> np.ndarray:
    return np.random.default_rng(6).normal(size=(count, *X[1:])).astype(np.float32)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[QuantizedModel, Path, dict]:
    """The model, its file, and (ONNX Runtime's, PyTorch's) output of each branch."""
    torch.manual_seed(1)
    module = Branches().eval()
    with torch.no_grad():
        module.prelu.weight.copy_(torch.linspace(0.1, 0.8, 6))
    source = SourceModel("branches", module, (images(1),), ("x",), calibration=(images(8),))
    model = quantize(source)
    path = export_onnx(model, tmp_path_factory.mktemp("onnx") / "m.onnx")
    image = images(9)[8:]
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    found = onnxruntime.InferenceSession(str(path), options).run(None, {"x": image})
    with torch.no_grad():
        wanted = [one.numpy() for one in model.exported.module()(torch.from_numpy(image))]
    return model, path, dict(zip(NAMES, zip(found, wanted, strict=True), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_a_branch_is_within_a_step(run: tuple, name: str) -> None:
    found, wanted = run[2][name]
    assert found.shape == wanted.shape
    levels = np.unique(wanted)
    # Of averages that lie between two levels some fall to the other side, and by one step.
    step = min(gap for gap in np.diff(levels) if gap > 1e-4)
    apart = np.abs(found - wanted)
    assert len(levels) > 4 and apart.max() <= 1.5 * step
    assert (apart > 1e-5).mean() < 0.1


def test_both_kinds_of_gelu_are_told_apart(run: tuple) -> None:  # by less than a step of int8
    nodes = [one for one in onnx.load(run[1]).graph.node if one.op_type == "Gelu"]
    found = {one.name: onnx.helper.get_attribute_value(one.attribute[0]) for one in nodes}
    assert found == {"gelu": b"none", "tanh_gelu": b"tanh"}


def test_an_average_over_windows_of_two_sizes_is_refused(tmp_path: Path) -> None:
    module = nn.Sequential(nn.AdaptiveAvgPool2d((4, 4))).eval()
    source = SourceModel("uneven", module, (images(1),), ("x",), calibration=(images(8),))
    with pytest.raises(ModelError, match="adaptive_avg_pool2d, which accelsim cannot write"):
        export_onnx(quantize(source), tmp_path / "m.onnx")
