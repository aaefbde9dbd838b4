"""Small `.tflite` files, and ways to change them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from accelsim.peers.litert_model import TfliteTensor, tflite_model

Change = Callable[[Any], None]


def plain(fused: int = 1) -> bytes:
    """A convolution of 1×6×5×3 to 1×6×5×4 with a bias and a ReLU."""
    rng = np.random.default_rng(5)
    weight = rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
    bias = rng.integers(-500, 500, 4).astype(np.int32)
    return tflite_model(
        "CONV_2D",
        [
            TfliteTensor((1, 6, 5, 3), (0.05,), 3),
            TfliteTensor(weight.shape, (0.01, 0.02, 0.03, 0.04), values=weight),
            TfliteTensor((4,), (0.0005, 0.001, 0.0015, 0.002), 0, "int32", values=bias),
        ],
        [TfliteTensor((1, 6, 5, 4), (0.2,), -5)],
        "Conv2DOptions",
        version=3,
        padding=0,
        strideH=1,
        strideW=1,
        dilationHFactor=1,
        dilationWFactor=1,
        fusedActivationFunction=fused,
    )


def changed(data: bytes, change: Change) -> bytes:
    """The file after a change of its objects."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
    change(model)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def saved(folder: Path, data: bytes) -> str:
    """The path of a file with these bytes."""
    path = folder / "net.tflite"
    path.write_bytes(data)
    return str(path)
