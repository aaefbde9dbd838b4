"""The inputs of a run: a file of the user's, or a seeded choice from the model's own data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.metrics.classification import top_k_share
from accelsim.verify.input_files import Samples, Signature, read_samples


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch by input name, where it came from, and its label where it has one.

    `samples` are all those that the whole network is run on, None where there are none beyond it.
    """

    tensors: Mapping[str, np.ndarray]
    origin: str
    label: int | None = None
    samples: Samples | None = None
    own_samples: bool = False  # whether they are those of a file that the user gave


def choose_input(
    source: SourceModel, quantized: QuantizedModel, path: Path | None, seed: int
) -> Batch:
    """The batch to verify layer by layer, and the samples to run the whole network on.

    Raises InputError naming the input and its limit.
    """
    own = _test_split(source, quantized)
    if path is not None:
        signature = Signature.of(quantized)
        samples = read_samples(path, signature)
        first = batch_of(samples, signature, 0)
        alone = all(len(first[name]) == len(value) for name, value in samples.inputs.items())
        if alone and samples.labels is None and samples.golden is None:
            return Batch(first, str(path), samples=own)
        return Batch(first, str(path), samples=samples, own_samples=True)
    if own is not None:
        (name,), batch = quantized.input_names, quantized.input_shapes[0][0]
        start = int(np.random.default_rng(seed).integers(len(own.inputs[name]) - batch + 1))
        label = None
        if own.labels is not None and own.labels.ndim == 1 and batch == 1:
            label = int(own.labels[start])
        values = own.inputs[name][start : start + batch]
        return Batch({name: values}, f"test image {start}", label, own)
    if source.example_inputs:
        tensors = dict(zip(quantized.input_names, source.example_inputs, strict=True))
        return Batch(tensors, "the model's example input")
    from accelsim.quantize.ranges import random_inputs

    return Batch(random_inputs(quantized.qdq, seed), f"random values of seed {seed}")


def classes_of_model(quantized: QuantizedModel) -> int | None:
    """How many classes the one output has scores of; None where it is no list of scores."""
    returned: Any = quantized.qdq["main"].ret_ty
    fields = list(getattr(returned, "fields", [returned]))
    if len(fields) != 1:
        return None
    shape = tuple(int(extent) for extent in fields[0].shape)
    scores = len(shape) > 1 and max(shape[1:]) == prod(shape[1:])
    batched = shape[:1] == tuple(quantized.input_shapes[0][:1])
    return prod(shape[1:]) if scores and batched else None


def check_labels(samples: Samples | None, quantized: QuantizedModel) -> None:
    """Raises InputError for labels that are no classes of the network, for a share of top-1."""
    classes = classes_of_model(quantized)
    if classes is not None and samples is not None and samples.labels is not None:
        scores = np.broadcast_to(np.float32(0), (len(samples.labels), classes))
        top_k_share(scores, samples.labels, 1)


def _test_split(source: SourceModel, quantized: QuantizedModel) -> Samples | None:
    """The model's own samples, of a model with one input."""
    if source.test_inputs is None or len(quantized.input_names) != 1:
        return None
    inputs = {quantized.input_names[0]: source.test_inputs}
    return Samples(inputs, "the test split", source.test_labels)


def batches(samples: Samples, shapes: Mapping[str, tuple[int, ...]]) -> int:
    """How many whole batches there are."""
    counts = [len(samples.inputs[name]) // shape[0] for name, shape in shapes.items() if shape]
    return min(counts, default=1)


def batch_of(samples: Samples, signature: Signature, number: int) -> dict[str, np.ndarray]:
    """One of the batches, by input name."""
    found = {}
    for name, shape in zip(signature.names, signature.shapes, strict=True):
        values = samples.inputs[name]
        found[name] = values[number * shape[0] :][: shape[0]] if shape else values
    return found


def balanced(labels: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Indices of `count` samples with class counts that differ by at most one, seeded."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    rank = np.zeros(len(labels), np.int64)
    for label in np.unique(labels):
        members = order[labels[order] == label]
        rank[members] = np.arange(len(members))
    by_rank = order[np.argsort(rank[order], kind="stable")]
    return np.sort(by_rank[:count])
