"""Task accuracy: float, PyTorch int8 and every backend on the model's labelled test split."""

from __future__ import annotations

import numpy as np

from accelsim.artifacts import I8, QuantizedModel, SourceModel
from accelsim.codegen import set_backend
from accelsim.verify.inputs import balanced
from accelsim.verify.layers import LayerCheck
from accelsim.verify.library import Library
from accelsim.verify.record import Accuracy
from accelsim.verify.verification import Verification

STEP = 50  # samples between two lines of progress


def measure(
    source: SourceModel,
    quantized: QuantizedModel,
    check: LayerCheck,
    library: Library,
    run: Verification,
) -> Accuracy | None:
    """Accuracies; None where the model has no labelled test split or more than one input.

    Every output of every backend is compared with the integer reference, bit for bit. A test split
    is run in batches of the model's own size; a remainder is left out.
    """
    images, labels = source.test_inputs, source.test_labels
    if images is None or labels is None or len(quantized.input_names) != 1:
        return None
    batch = quantized.input_shapes[0][0]
    limits = {"sim": run.options.test_images, "rtl": run.options.rtl_images}
    share, samples = _frameworks(source, quantized, images, labels)
    wrong, compared = {}, {}
    expected: dict[tuple[int, ...], I8] = {}
    for name, backend in check.backends.items():
        chosen = balanced(labels, min(limits[name], len(labels)), run.options.seed)
        groups = [chosen[i : i + batch] for i in range(0, len(chosen) - batch + 1, batch)]
        right = bad = elements = 0
        set_backend(backend)
        for done, group in enumerate(groups):
            run.check_time()
            if done * batch % STEP < batch:
                run.progress(f"accuracy on {name}: sample {done * batch} of {len(chosen)}")
            (output,) = library.run([images[group]])
            key = tuple(int(i) for i in group)
            if key not in expected:
                expected[key] = _reference_output(quantized, check, images[group])
            bad += int((output != expected[key]).sum())
            elements += output.size
            right += int((output.reshape(batch, -1).argmax(1) == labels[group]).sum())
        count = batch * len(groups)
        share[name], samples[name] = right / max(count, 1), count
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
            outputs = [model(x[i : i + batch]) for i in range(0, len(x) - batch + 1, batch)]
        predicted = torch.cat(outputs).reshape(len(outputs) * batch, -1).argmax(1).numpy()
        share[name] = float((predicted == labels[: len(predicted)]).mean())
        samples[name] = len(predicted)
    return share, samples


def _reference_output(quantized: QuantizedModel, check: LayerCheck, images: np.ndarray) -> I8:
    reference = check.goldens.reference
    inputs = reference.quantize_inputs({quantized.input_names[0]: images})
    return reference.dequantize_outputs(reference.run(inputs))[0]
