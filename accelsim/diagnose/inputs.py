"""The input that is diagnosed: one batch of a file, what its quantize makes of it, known traps.

What comes in: a file, or the model's own data. What goes out: a batch, facts about its ranges, and
sentences about what would make it right. It must not know the NPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from accelsim.artifacts import QuantizedModel, SourceModel
from accelsim.diagnose.noise import clipped_share, range_of
from accelsim.diagnose.record import DiagnoseOptions, InputFacts
from accelsim.errors import InputError
from accelsim.reference import Network, QuantizedTensor
from accelsim.reference.boundary import quantize_floats
from accelsim.verify.input_files import Signature, arrays_of, read_samples
from accelsim.verify.inputs import Batch, batch_of, batches, choose_input

Array = np.ndarray
_SCALES: tuple[tuple[str, Callable[[Array], Array]], ...] = (
    ("divided by 255 (0..255 was given for 0..1)", lambda x: x / 255),
    ("multiplied by 255 (0..1 was given for 0..255)", lambda x: x * 255),
    ("as x / 127.5 - 1 (0..255 was given for -1..1)", lambda x: x / 127.5 - 1),
    ("as 2 x - 1 (0..1 was given for -1..1)", lambda x: 2 * x - 1),
    ("as (x + 1) / 2 (-1..1 was given for 0..1)", lambda x: (x + 1) / 2),
)


def chosen_input(options: DiagnoseOptions, source: SourceModel, quantized: QuantizedModel) -> Batch:
    """The batch that the options ask for, with its first sample's class where that is known.

    Raises InputError with the likely slip where a file does not fit the model.
    """
    path = options.verify.input
    if path is None:
        if options.sample:
            raise InputError("--sample chooses from a file; add --input")
        return choose_input(source, quantized, None, options.verify.seed)
    signature = Signature.of(quantized)
    try:
        samples = read_samples(path, signature)
    except InputError as error:
        raise InputError(f"{error}{_slip(options, signature)}") from None
    shapes = dict(zip(signature.names, signature.shapes, strict=True))
    count = batches(samples, shapes)
    one, many = ("batch", "batches") if _batched(signature) else ("sample", "samples")
    if options.sample >= count:
        has = f"{count} {one if count == 1 else many}"
        raise InputError(f"input {path} has {has}, and --sample is {options.sample}")
    tensors = batch_of(samples, signature, options.sample)
    label = None
    labels = samples.labels
    if labels is not None and labels.ndim == 1 and labels.dtype.kind in "iu":
        label = int(labels[options.sample * (len(labels) // count)])
    origin = str(path) if count == 1 else f"{one} {options.sample} of {path}"
    return Batch(tensors, origin, label)


def _batched(signature: Signature) -> bool:
    """Whether the model takes several samples at once."""
    return any(shape and shape[0] > 1 for shape in signature.shapes)


def _slip(options: DiagnoseOptions, signature: Signature) -> str:
    """What a file that does not fit looks like, to be put behind the error; "" if like nothing."""
    path = options.verify.input
    assert path is not None
    try:
        arrays = arrays_of(path, signature)
    except InputError:
        return ""
    for name, shape, dtype in zip(signature.names, signature.shapes, signature.dtypes, strict=True):
        given = arrays[name].shape
        if given == shape[1:]:
            return "; the batch axis is missing"
        if len(given) == len(shape) == 4 and given[1:] == (*shape[2:], shape[1]):
            return "; preprocessing: this is NHWC, and the model takes NCHW"
        if len(given) == len(shape) == 4 and given[1:] == (shape[3], *shape[1:3]):
            return "; preprocessing: this is NCHW, and the model takes NHWC"
        if given[1:] == shape[1:] and arrays[name].dtype.kind in "iu" and dtype == "float32":
            return (
                "; preprocessing: integers were given for real numbers; scale them as in training"
            )
    return ""


def input_facts(
    network: Network, inputs: Mapping[str, Array], exact: Mapping[str, Array]
) -> list[InputFacts]:
    """What is known of each input at its quantize.

    `exact` may have the floats of tensors that are quantized behind float operators on the inputs.
    """
    given = {name: (inputs[name], t) for name, t in network.inputs if name not in network.direct}
    behind = {
        one.tensor: (exact[one.tensor], one.tensor)
        for one in network.prepared
        if one.tensor in exact
    }
    found = []
    for name, (values, tensor_name) in {**given, **behind}.items():
        tensor = network.tensors[tensor_name]
        low, high = range_of(tensor)
        found.append(
            InputFacts(
                name=name,
                low=float(values.min(initial=np.inf)),
                high=float(values.max(initial=-np.inf)),
                range_low=low,
                range_high=high,
                clipped=clipped_share(values, tensor),
                levels=len(np.unique(quantize_floats(values.astype(np.float32), tensor))),
            )
        )
    return found


def traps(
    network: Network,
    inputs: Mapping[str, Array],
    is_right: Callable[[Mapping[str, Array]], bool] | None,
) -> list[str]:
    """What would make an input right, one sentence each.

    Args:
        is_right: whether the float network gives the label on other inputs; None where there is no
            label, so that only a scale that fills the calibrated range is told.
    """
    found = []
    for name, tensor_name in network.inputs:
        if name in network.direct:
            continue
        tensor = network.tensors[tensor_name]
        if is_right is None and _fills(inputs[name], tensor):
            continue
        for title, changed in _candidates(inputs[name], tensor.axis):
            fits = _fills(changed, tensor)
            scale = title.startswith(("divided", "multiplied", "as "))
            if scale and not fits:
                continue
            if is_right is None and scale:
                found.append(f"input {name} would fill the calibrated range {title}")
            elif is_right is not None and is_right({**inputs, name: changed}):
                found.append(f"with input {name} {title}, the float model gives the label")
    return found


def _candidates(values: Array, axis: int) -> Iterator[tuple[str, Array]]:
    """Other forms of an input with channels on an axis, and how they come about."""
    for title, function in _SCALES:
        yield title, function(values).astype(values.dtype)
    if values.ndim != 4:
        return
    count, *extents = values.shape
    first, middle, last = extents
    reversed_title = "with its channels reversed (RGB was given for BGR)"
    if axis == 1:
        channels, sides = first, (middle, last)
        order = values.reshape(count, middle, last, first).transpose(0, 3, 1, 2)
        title, swapped, mirrored = "turned from NHWC into NCHW", (0, 1, 3, 2), values[:, ::-1]
    else:
        channels, sides = last, (first, middle)
        order = values.reshape(count, last, first, middle).transpose(0, 2, 3, 1)
        title, swapped, mirrored = "turned from NCHW into NHWC", (0, 2, 1, 3), values[..., ::-1]
    if channels > 1:
        yield title, np.ascontiguousarray(order)
    if channels == 3:
        yield reversed_title, np.ascontiguousarray(mirrored)
    if sides[0] == sides[1]:
        yield "with height and width swapped", np.ascontiguousarray(values.transpose(swapped))


def _fills(values: Array, tensor: QuantizedTensor) -> bool:
    """Whether values lie in a tensor's range and reach through at least a quarter of it."""
    low, high = range_of(tensor)
    spread = float(np.ptp(values)) if values.size else 0.0
    return clipped_share(values, tensor) < 0.01 and spread >= (high - low) / 4
