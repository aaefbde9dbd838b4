"""The whole network on many samples: the float model, its framework and every backend.

What comes in: samples, with labels or without. What goes out: how often each is right, how often a
backend says what the framework says, and every layer of every sample against the integer reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from accelsim.artifacts import I8, Launch, QuantizedModel, RunResult, SourceModel
from accelsim.codegen import set_backend
from accelsim.emit import read_tensor
from accelsim.metrics import Metric, load_metric
from accelsim.verify.golden_file import GoldenCount, classes_of
from accelsim.verify.input_files import Samples
from accelsim.verify.inputs import balanced, batches
from accelsim.verify.layers import LayerCheck
from accelsim.verify.library import Library
from accelsim.verify.record import Accuracy
from accelsim.verify.verification import Verification

STEP = 50  # samples between two lines of progress
Inputs = dict[str, np.ndarray]
Outputs = tuple[np.ndarray, ...]


@dataclass(slots=True)
class _Count:
    """What one backend did."""

    compared: int = 0
    wrong: int = 0
    place: str = ""  # the first layer that is wrong in the first sample that has one
    same: int = 0
    asked: int = 0  # samples whose class the framework gave
    golden: GoldenCount = field(default_factory=GoldenCount)
    outputs: list[Outputs] = field(default_factory=list)  # batch by batch
    group: list[int] = field(default_factory=list)  # the samples, in this order


def measure(
    source: SourceModel,
    quantized: QuantizedModel,
    check: LayerCheck,
    library: Library,
    run: Verification,
    samples: Samples,
) -> Accuracy:
    """All samples on every backend.

    Every layer and output of every backend is compared with the integer reference, bit for bit. The
    reference is judged itself too, on all samples that have labels.
    Samples are run in batches of the model's own size; a remainder is left out.
    """
    shapes = dict(zip(quantized.input_names, quantized.input_shapes, strict=True))
    batch = next((shape[0] for shape in shapes.values() if shape), 1)
    total = batches(samples, shapes) * batch
    consecutive = [np.arange(i, i + batch) for i in range(0, total, batch)]
    others = {
        "float": _float_outputs(source, samples, consecutive),
        "framework": _framework_outputs(check, samples, shapes, consecutive),
    }
    classes = _classes(others["framework"], batch)
    theirs = _first_outputs(others["framework"], batch)
    groups = {
        name: _groups(samples.labels, total, batch, limit, run.options.seed)
        for name, limit in (("sim", run.options.test_images), ("rtl", run.options.rtl_images))
        if name in check.backends
    }
    counts = {name: _Count() for name in groups}
    seen: dict[str, tuple[int, int]] = {}  # least and greatest value of each layer's golden
    judged = [] if samples.labels is None else [tuple(map(int, one)) for one in consecutive]
    integer: dict[tuple[int, ...], Outputs] = {}
    every = list(dict.fromkeys([*(one for chosen in groups.values() for one in chosen), *judged]))
    for done, group in enumerate(every):
        run.check_time()
        if done * batch % STEP < batch:
            run.progress(f"{samples.origin}: sample {done * batch} of {len(every) * batch}")
        inputs = _chosen(samples, shapes, np.asarray(group))
        expected = _Expected.of(check, inputs)
        integer[group] = expected.outputs
        for name, values in expected.tensors.items():
            low, high = seen.get(name, (127, -128))
            seen[name] = (
                min(low, int(values.min(initial=127))),
                max(high, int(values.max(initial=-128))),
            )
        for name, chosen in groups.items():
            if group in chosen:
                outputs = _run(name, check, library, inputs, expected, counts[name], group[0])
                _judge(counts[name], outputs, np.asarray(group), samples, classes, theirs)
    varied = frozenset(name for name, (low, high) in seen.items() if low < high)
    answers = {name: (found, np.arange(total)) for name, found in others.items() if found}
    answers["integer"] = ([integer[group] for group in judged], np.arange(total))
    answers |= {name: (one.outputs, np.asarray(one.group)) for name, one in counts.items()}
    metric = _metric(source, run.options.metric)
    return _accuracy(samples, answers, counts, varied, metric, batch)


def _groups(
    labels: np.ndarray | None, total: int, batch: int, limit: int, seed: int
) -> list[tuple[int, ...]]:
    """The samples that a backend runs, batch by batch; class-balanced where there are labels."""
    count = min(limit, total)
    chosen = np.arange(count)
    if labels is not None and labels.ndim == 1:
        chosen = balanced(labels[:total], count, seed)
    ends = range(0, len(chosen) - batch + 1, batch)
    return [tuple(int(i) for i in chosen[start : start + batch]) for start in ends]


def _chosen(samples: Samples, shapes: Mapping[str, tuple[int, ...]], group: np.ndarray) -> Inputs:
    """The inputs of some samples. An input whose batch is not the model's is taken by batches."""
    found = {}
    for name, shape in shapes.items():
        values = samples.inputs[name]
        if not shape:
            found[name] = values
        elif shape[0] == len(group):
            found[name] = values[group]
        else:
            start = int(group[0]) // len(group) * shape[0]
            found[name] = values[start : start + shape[0]]
    return found


@dataclass(frozen=True, slots=True)
class _Expected:
    """What the integer reference makes of one batch."""

    tensors: Mapping[str, I8]
    outputs: tuple[np.ndarray, ...]

    @staticmethod
    def of(check: LayerCheck, inputs: Inputs) -> _Expected:
        reference = check.goldens.reference
        tensors = reference.run(reference.quantize_inputs(inputs), inputs)
        return _Expected(tensors, reference.dequantize_outputs(tensors, inputs))


def _run(
    name: str,
    check: LayerCheck,
    library: Library,
    inputs: Inputs,
    expected: _Expected,
    count: _Count,
    sample: int,
) -> tuple[np.ndarray, ...]:
    """One batch on one backend, compared layer by layer."""

    def observe(launch: Launch, result: RunResult) -> None:
        if result.error_code:
            return
        for layer in launch.program.layers:
            actual = read_tensor(launch.program, result.dram, layer.output)
            wrong = int(np.count_nonzero(actual != expected.tensors[layer.output]))
            count.compared += actual.size
            count.wrong += wrong
            if wrong and not count.place:
                count.place = (
                    f"layer {layer.name} in sample {sample}: {wrong:,} of {actual.size:,} elements"
                )

    set_backend(check.backends[name], observer=observe)
    outputs = library.run(list(inputs.values()))
    for output, right in zip(outputs, expected.outputs, strict=True):
        count.compared += output.size
        count.wrong += int(np.count_nonzero(output != right))
    return outputs


def _judge(
    count: _Count,
    outputs: tuple[np.ndarray, ...],
    group: np.ndarray,
    samples: Samples,
    framework: np.ndarray | None,
    outputs_there: np.ndarray | None,
) -> None:
    """Keep what a backend answered; count the framework's answers and the golden's of the file."""
    count.outputs.append(outputs)
    count.group += [int(place) for place in group]
    found = classes_of(outputs[0], len(group))
    if framework is not None and found is not None:
        count.asked += len(group)
        count.same += int((found == framework[group]).sum())
    if samples.golden is not None:
        theirs = None if outputs_there is None else outputs_there[group]
        count.golden.add(outputs[0], samples.golden[group], theirs, len(group))


def _classes(batches: list[Outputs] | None, batch: int) -> np.ndarray | None:
    """The class of every sample by the first output."""
    found = [classes_of(outputs[0], batch) for outputs in batches or []]
    known = [one for one in found if one is not None]
    return np.concatenate(known) if known and len(known) == len(found) else None


def _first_outputs(batches: list[Outputs] | None, batch: int) -> np.ndarray | None:
    """The first output of every sample in a row (samples, elements)."""
    rows = [outputs[0].reshape(batch, -1) for outputs in batches or []]
    return np.concatenate(rows) if rows else None


def _float_outputs(
    source: SourceModel, samples: Samples, groups: list[np.ndarray]
) -> list[Outputs] | None:
    """What the float model makes of all samples, batch by batch; None where there is none."""
    import torch
    from torch.utils import _pytree as pytree

    module = source.float_module
    if not isinstance(module, torch.nn.Module) or len(samples.inputs) != 1:
        return None
    (values,) = samples.inputs.values()
    found = []
    with torch.no_grad():
        for group in groups:
            output = module(torch.from_numpy(np.ascontiguousarray(values[group])))
            found.append(tuple(leaf.numpy() for leaf in pytree.tree_leaves(output)))
    return found


def _framework_outputs(
    check: LayerCheck,
    samples: Samples,
    shapes: Mapping[str, tuple[int, ...]],
    groups: list[np.ndarray],
) -> list[Outputs] | None:
    """The same of the framework; None where it cannot run the whole network."""
    found = []
    for group in groups:
        outputs = check.goldens.framework.outputs(_chosen(samples, shapes, group))
        if outputs is None:
            return None
        found.append(outputs)
    return found


def _metric(source: SourceModel, asked: str | None) -> Metric:
    """What the user asked for, or else the model's own, or top-1."""
    if asked is None and source.metric is not None:
        return Metric(source.name, source.metric)
    return load_metric() if asked is None else load_metric(asked)


def _accuracy(
    samples: Samples,
    answers: Mapping[str, tuple[list[Outputs], np.ndarray]],
    counts: Mapping[str, _Count],
    varied: frozenset[str],
    metric: Metric,
    batch: int,
) -> Accuracy:
    share, asked, title = {}, {}, ""
    for name, (found, order) in answers.items():
        if samples.labels is None or not found:
            continue
        whole = tuple(
            np.concatenate([one if len(one) == batch else one.reshape(batch, -1) for one in parts])
            for parts in zip(*found, strict=True)
        )
        numbers = metric.measure(whole, samples.labels[order])
        title, share[name] = next(iter(numbers.items()))
        asked[name] = len(order)
    return Accuracy(
        origin=samples.origin,
        metric=title,
        share=share,
        samples=asked,
        wrong={name: count.wrong for name, count in counts.items()},
        compared={name: count.compared for name, count in counts.items()},
        agreement={name: (one.same, one.asked) for name, one in counts.items() if one.asked},
        varied=varied,
        places={name: count.place for name, count in counts.items() if count.place},
        golden={name: one.golden for name, one in counts.items() if samples.golden is not None},
    )
