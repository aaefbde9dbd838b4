"""A trained DS-CNN that knows ten spoken words, quantized by PT2E: torchao's int8 flow.

accelsim verify examples/keyword_spotting.py:pt2e

Weights and ten real inputs (49 frames of 10 MFCCs) come from the folder that the environment
variable ACCELSIM_PEER_DATA names; they are not part of this repository. Needs `accelsim[pt2e]`.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from accelsim.artifacts import SourceModel


class Separable(nn.Module):
    """Depthwise 3×3, then pointwise, each with batch norm and ReLU."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
        self.depthwise_bn = nn.BatchNorm2d(channels)
        self.pointwise = nn.Conv2d(channels, channels, 1, bias=False)
        self.pointwise_bn = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        hidden = functional.relu(self.depthwise_bn(self.depthwise(x)))
        return functional.relu(self.pointwise_bn(self.pointwise(hidden)))


class KeywordSpotter(nn.Module):
    """(n, 1, 49, 10) MFCCs → (n, 12) scores: silence, unknown and ten words."""

    def __init__(self) -> None:
        super().__init__()
        self.feature_extractor = nn.Sequential(
            nn.Conv2d(1, 64, (10, 4), stride=2, padding=(5, 1), bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.Dropout(0.2),
            *(Separable(64) for _ in range(4)),
        )
        self.classifier = nn.Linear(64, 12)

    def forward(self, mfcc: Tensor) -> Tensor:
        hidden = functional.avg_pool2d(self.feature_extractor(mfcc), (24, 5))
        scores: Tensor = self.classifier(torch.flatten(hidden, 1))
        return scores


def data() -> Path:
    """The folder with weights and inputs."""
    return Path(os.environ.get("ACCELSIM_PEER_DATA", "../shared/data")) / "torch"


def trained() -> tuple[KeywordSpotter, np.ndarray, np.ndarray]:
    """The network in eval mode, ten inputs (10, 1, 49, 10) and their classes."""
    module = KeywordSpotter().eval()
    module.load_state_dict(torch.load(data() / "executorch_kws_dscnn.pth", weights_only=True))
    with np.load(data() / "executorch_kws_10mfcc.npz") as stored:
        return module, stored["x"], stored["y"]


def pt2e() -> SourceModel:
    """Static int8: activations per tensor, weights symmetric per channel, as XNNPACK takes them."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.testing.pt2e._xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )

    module, inputs, labels = trained()
    example = torch.from_numpy(inputs[:1])
    exported = torch.export.export(module, (example,)).module()
    config = get_symmetric_quantization_config(is_per_channel=True)
    prepared = prepare_pt2e(exported, XNNPACKQuantizer().set_global(config))
    for row in inputs:
        prepared(torch.from_numpy(row[None]))
    return SourceModel(
        name="keyword-spotting",
        float_module=convert_pt2e(prepared),
        example_inputs=(inputs[:1],),
        input_names=("mfcc",),
        test_inputs=inputs,
        test_labels=labels,
    )
