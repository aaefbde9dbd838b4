"""Random bilinear resizes of LiteRT, whose coordinates are whole numbers of 1/1024.

What comes in: a random generator. What goes out: a `Trial` with LiteRT's output.
"""

from __future__ import annotations

import numpy as np

from accelsim.artifacts import Requantize
from accelsim.peers.bilinear import upscale
from accelsim.peers.case import Trial
from accelsim.peers.draws import Generator, Maker
from accelsim.peers.litert_draw import Graph, int8s, scale, trial, zero
from accelsim.peers.litert_model import TfliteTensor, constant, tflite_model
from accelsim.spec.arithmetic import reciprocal


def resize_bilinear(rng: Generator) -> Trial:
    """Any size whose weights, in 1/1024 here, reduce to what the NPU has."""
    drawn = upscale(rng, ("half_pixel", "align_corners", "asymmetric"), tflite=True)
    s, z = scale(rng), zero(rng)
    model = tflite_model(
        "RESIZE_BILINEAR",
        [TfliteTensor(drawn.shape, (s,), z), constant(drawn.target)],
        [TfliteTensor(drawn.output, (s,), z)],
        "ResizeBilinearOptions",
        version=3,
        alignCorners=drawn.mode == "align_corners",
        halfPixelCenters=drawn.mode == "half_pixel",
    )
    mantissa, shift = (np.array([word], np.int32) for word in reciprocal(drawn.total))
    end = Requantize(mantissa, 0, -128, 127, "half_away", shift)
    graph = Graph(((s, z),), (s, z), drawn.body("NHWC"))
    return trial(int8s(rng, *drawn.shape), model, drawn.layer(0, end), drawn.output, graph)


RESIZES: dict[str, Maker] = {"resize_bilinear": resize_bilinear}
