"""Task accuracy: float, PyTorch int8 and every backend on the model's labelled test split."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from accelsim.artifacts import I8, Backend, QuantizedModel, SourceModel
from accelsim.codegen import set_backend
from accelsim.reference import Reference
from accelsim.verify.inputs import balanced
from accelsim.verify.library import Library
from accelsim.verify.options import Progress


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Share of right answers and samples by source; final outputs that differ by backend."""

    share: Mapping[str, float]
    samples: Mapping[str, int]
    wrong_outputs: Mapping[str, int] = field(default_factory=dict)  # against the reference
    compared: Mapping[str, int] = field(default_factory=dict)  # output elements compared


def measure(
    source: SourceModel,
    quantized: QuantizedModel,
    reference: Reference,
    library: Library,
    backends: Mapping[str, Backend],
    limits: Mapping[str, int],
    seed: int,
    progress: Progress,
    check_time: Callable[[], None],
) -> Accuracy | None:
    """Accuracies; None where the model has no labelled test split or more than one input.

    Every output of every backend is compared with the integer reference, bit for bit.
    """
    if source.test_inputs is None or source.test_labels is None or len(quantized.input_names) != 1:
        return None
    labels = source.test_labels
    share, samples = _frameworks(source, quantized, source.test_inputs, labels)
    wrong, compared = {}, {}
    expected: dict[int, I8] = {}
    for name, backend in backends.items():
        chosen = balanced(labels, min(limits[name], len(labels)), seed)
        set_backend(backend)
        right = bad = elements = 0
        for done, index in enumerate(chosen):
            if done % 50 == 0:
                progress(f"accuracy on {name}: image {done} of {len(chosen)}")
                check_time()
            image = source.test_inputs[index : index + 1]
            (output,) = library.run([image])
            if int(index) not in expected:
                expected[int(index)] = _reference_output(quantized, reference, image)
            bad += int((output != expected[int(index)]).sum())
            elements += output.size
            right += int(output.reshape(-1).argmax() == labels[index])
        share[name], samples[name] = right / len(chosen), len(chosen)
        wrong[name], compared[name] = bad, elements
    return Accuracy(share, samples, wrong, compared)


def _frameworks(
    source: SourceModel, quantized: QuantizedModel, images: np.ndarray, labels: np.ndarray
) -> tuple[dict[str, float], dict[str, int]]:
    """Accuracy of the float model and of PyTorch's int8 model."""
    import torch

    from accelsim.quantize import qnnpack_engine

    share, samples = {}, {}
    x = torch.from_numpy(np.ascontiguousarray(images))
    batch = quantized.input_shapes[0][0]
    models = {"float": source.float_module, "torch_int8": quantized.torch_int8}
    for name, model in models.items():
        if model is None:
            continue
        with torch.no_grad(), qnnpack_engine():
            outputs = [model(x[i : i + batch]) for i in range(0, len(x), batch)]
        predicted = torch.cat(outputs).reshape(len(labels), -1).argmax(1).numpy()
        share[name], samples[name] = float((predicted == labels).mean()), len(labels)
    return share, samples


def _reference_output(quantized: QuantizedModel, reference: Reference, image: np.ndarray) -> I8:
    inputs = reference.quantize_inputs({quantized.input_names[0]: image})
    return reference.dequantize_outputs(reference.run(inputs))[0]
