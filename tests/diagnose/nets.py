"""Networks to diagnose, for `tests/diagnose/nets.py:FUNCTION`."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from accelsim.artifacts import SourceModel

IMAGES = np.random.default_rng(8).random((40, 1, 6, 6)).astype(np.float32)


class Classifier(nn.Module):
    """(n, 1, 6, 6) → (n, 4): three layers. Biases make scores depend on how bright an image is."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3)
        self.second = nn.Conv2d(8, 8, 3)
        self.relu = nn.ReLU()
        self.fc = nn.Linear(32, 4)

    def forward(self, x: Tensor) -> Tensor:
        """The scores."""
        y: Tensor = self.fc(torch.flatten(self.relu(self.second(self.relu(self.first(x)))), 1))
        return y


def module() -> nn.Module:
    """The classifier with fixed weights."""
    torch.manual_seed(5)
    return Classifier().eval()


def labels() -> np.ndarray:
    """What the float classifier says of `IMAGES`."""
    with torch.no_grad():
        return module()(torch.from_numpy(IMAGES)).argmax(1).numpy()


def sound() -> SourceModel:
    """Nothing is wrong with it."""
    return SourceModel(
        name="sound",
        float_module=module(),
        example_inputs=(IMAGES[:1],),
        input_names=("x",),
        calibration=(IMAGES,),
        test_inputs=IMAGES,
        test_labels=labels(),
    )


def broken_scale() -> tuple[nn.Module, Tensor]:
    """Calibrated by its user, and then the range of the second convolution set far too small."""
    from torch.ao import quantization
    from torch.ao.quantization.quantize_fx import prepare_fx

    example = torch.from_numpy(IMAGES[:1])
    observer = quantization.MinMaxObserver.with_args(dtype=torch.quint8)
    weights = quantization.default_weight_observer
    settings = quantization.QConfigMapping().set_global(
        quantization.QConfig(activation=observer, weight=weights)
    )
    prepared = prepare_fx(module(), settings, (example,))
    with torch.no_grad():
        prepared(torch.from_numpy(IMAGES))
    for node in prepared.graph.nodes:
        source = node.args[0] if node.args else None
        if node.op == "call_module" and str(getattr(source, "name", "")) in ("second", "flatten"):
            watched = prepared.get_submodule(str(node.target))
            watched.max_val.fill_(0.001)
            watched.forward = lambda x: x  # it has seen its data
    return prepared, example
