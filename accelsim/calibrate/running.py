"""Running a network over samples, in batches that it takes.

What comes in: a callable network and samples. What goes out: its outputs. It must not know whether
the network is float or quantized.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from accelsim.artifacts import SourceModel
from accelsim.errors import InputError, ModelError
from accelsim.importer.reasons import reason

Batch = tuple[np.ndarray, ...]
BATCH_BYTES = 1 << 24  # of the first input: larger batches save no time, and cost memory


def batch_size(source: SourceModel) -> int:
    """Samples to run at once: some 64 where the model takes any number, else its own batch."""
    example = source.example_inputs[0]
    own = len(example)
    doubled = tuple(np.concatenate([array, array]) for array in source.example_inputs)
    try:
        once = outputs_of(source.float_module, [source.example_inputs], source.name)
        twice = outputs_of(source.float_module, [doubled], source.name)
    except ModelError:
        return own
    for one, two in zip(once, twice, strict=True):
        alike = two.shape == (2 * len(one), *one.shape[1:]) and len(one) == own
        if not alike or not np.allclose(two, np.concatenate([one, one]), 1e-3, 1e-4):
            return own
    fitting = BATCH_BYTES // max(1, example.nbytes // own)
    return max(own, min(64, fitting) // own * own)


def batches(inputs: Sequence[np.ndarray], size: int, own: int) -> list[Batch]:
    """Samples in batches of `size`; of a remainder, whole multiples of the model's own batch.

    Raises InputError where there is not one batch.
    """
    count = len(inputs[0]) // own * own
    if count == 0:
        raise InputError(
            f"there are {len(inputs[0])} samples, and the model takes {own} at once; give at least "
            "as many"
        )
    return [
        tuple(array[start : min(start + size, count)] for array in inputs)
        for start in range(0, count, size)
    ]


def outputs_of(
    network: Callable[..., Any], given: Sequence[Batch], model: str
) -> tuple[np.ndarray, ...]:
    """Outputs over all batches, float32 (samples, …), one array for each output.

    Raises ModelError where the network fails or returns something else than tensors.
    """
    found = [tensors_of(result, model) for result in results_of(network, given, model)]
    return tuple(
        np.concatenate([one.numpy() for one in parts]) for parts in zip(*found, strict=True)
    )


def results_of(network: Callable[..., Any], given: Sequence[Batch], model: str) -> Iterator[Any]:
    """What the network returns for each batch, as it is. Raises ModelError where it fails."""
    called = network
    if isinstance(network, torch.nn.Module):  # an fx.GraphModule's own call prints a traceback
        called = functools.partial(torch.nn.Module.__call__, network)
    for number, batch in enumerate(given):
        try:
            with torch.no_grad():
                result = called(*(torch.from_numpy(np.ascontiguousarray(a)) for a in batch))
        except (Exception, SystemExit) as error:  # the user's forward runs here
            raise ModelError(
                f"model {model} failed on batch {number} of shape {tuple(batch[0].shape)}: "
                f"{reason(error)}"
            ) from error
        yield result


def tensors_of(result: Any, model: str) -> tuple[torch.Tensor, ...]:
    """The tensors that a network returned, dequantized. Raises ModelError for anything else."""
    found = tuple(result) if isinstance(result, tuple | list) else (result,)
    if not found or not all(isinstance(one, torch.Tensor) for one in found):
        raise ModelError(f"model {model} returned a {type(result).__name__}; tensors are due")
    return tuple(one.dequantize() if one.is_quantized else one for one in found)
