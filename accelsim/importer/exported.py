"""Programs of torch.export, float or already quantized.

What comes in: a `.pt2` file or an `ExportedProgram`. What goes out: a `SourceModel`. It must not
know how calibration works."""

from __future__ import annotations

import dataclasses
import io
import logging
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

import numpy as np
import torch

from accelsim.artifacts import SourceModel
from accelsim.errors import ModelError
from accelsim.importer.archive import LIMIT_BYTES, checked_archive, weights_only
from accelsim.importer.checks import DTYPES, check_source, input_arrays, one_of_dtypes
from accelsim.importer.input_names import input_names
from accelsim.importer.reasons import reason
from accelsim.importer.rebuild import rebuild
from accelsim.importer.test_split import ENTRY, unpack_split

_Specification = tuple[tuple[int, ...], str]  # shape and dtype of an input


def load_pt2(path: Path, name: str) -> SourceModel:
    """Read a file of `torch.export.save`, with the test split that `accelsim quantize` put there.

    Raises:
        ModelError: missing, unreadable, no such archive, one that would execute code or fill the
            memory, or a program that is not supported.
    """
    if not path.is_file():
        raise ModelError(f"model file {path} does not exist")
    if not zipfile.is_zipfile(path):
        raise ModelError(
            f"model file {path} is not a torch.export archive or is damaged; write it with "
            "torch.export.save"
        )
    archive = checked_archive(path)
    _register_quantized_decomposed()
    extra = {ENTRY: ""}
    try:
        with _silence(), weights_only():
            program = torch.export.load(archive, extra_files=extra)
    except Exception as error:  # torch raises many kinds for a broken archive
        raise ModelError(
            f"model file {path} cannot be loaded as a torch.export program: {reason(error)}"
        ) from error
    _check_extents(program, path)
    source = from_program(program, name)
    if not extra[ENTRY]:
        return source
    inputs, labels = unpack_split(extra[ENTRY], path)
    source = dataclasses.replace(source, test_inputs=inputs, test_labels=labels)
    check_source(source)
    return source


def _check_extents(program: torch.export.ExportedProgram, path: Path) -> None:
    """Raises ModelError where tensors claim more elements than the archive could hold."""
    nodes = [node.meta.get("val") for node in program.graph.nodes]
    stored = [*program.state_dict.values(), *program.constants.values(), *nodes]
    stored += torch.utils._pytree.tree_leaves(program.example_inputs)
    for tensor in stored:
        if isinstance(tensor, torch.Tensor) and tensor.numel() * tensor.itemsize > LIMIT_BYTES:
            raise ModelError(
                f"model file {path} has a tensor of shape {tuple(tensor.shape)}, more than "
                f"{LIMIT_BYTES:,} bytes"
            )


def from_program(program: torch.export.ExportedProgram, name: str) -> SourceModel:
    """Wrap a program.

    Raises:
        ModelError: dynamic shapes, inputs of an unsupported dtype, no example inputs.
    """
    specifications = _input_specifications(program, name)
    quantized = any(
        getattr(node.target, "namespace", "") == "quantized_decomposed"
        for node in program.graph.nodes
    )
    examples = _examples(program, name, specifications, required=not quantized)
    for (own, (shape, dtype)), array in zip(specifications.items(), examples, strict=False):
        if array.shape != shape:
            raise ModelError(
                f"the example for input '{own}' of {name} has shape {array.shape}, the program "
                f"takes {shape}"
            )
        if array.dtype != dtype:
            raise ModelError(
                f"the example for input '{own}' of {name} is {array.dtype}, the program takes "
                f"{dtype}"
            )
    source = SourceModel(
        name=name,
        float_module=program if quantized else rebuild(program, name),
        example_inputs=examples,
        input_names=tuple(specifications),
        calibration=(examples[0],) if len(examples) == 1 and not quantized else (),
        already_quantized=quantized,
    )
    check_source(source)
    return source


def _register_quantized_decomposed() -> None:
    import torch.ao.quantization.fx._decomposed  # noqa: F401  registers the operators


@contextmanager
def _silence() -> Iterator[None]:
    """Keep torch's warnings and log lines about broken archives out of the user's terminal."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _input_specifications(
    program: torch.export.ExportedProgram, name: str
) -> dict[str, _Specification]:
    """Input name → shape and dtype. Raises ModelError for what is no tensor of a fixed shape."""
    user_inputs = program.graph_signature.user_inputs
    called = dict(zip(user_inputs, input_names(program), strict=True))
    found: dict[str, _Specification] = {}
    for node in program.graph.nodes:
        if node.op != "placeholder" or node.name not in user_inputs:
            continue
        value, own = node.meta.get("val"), called[node.name]
        if not isinstance(value, torch.Tensor):
            raise ModelError(f"input '{own}' of {name} is not a tensor")
        if any(not isinstance(extent, int) for extent in value.shape):
            raise ModelError(
                f"input '{own}' of {name} has the dynamic shape {tuple(value.shape)}; "
                "export it without dynamic_shapes"
            )
        kind = str(value.dtype).removeprefix("torch.")
        if kind not in DTYPES:
            raise ModelError(f"input '{own}' of {name} is {kind}; {one_of_dtypes()}")
        found[own] = (tuple(value.shape), kind)
    if not found:
        raise ModelError(f"model {name} has no inputs")
    return found


def _examples(
    program: torch.export.ExportedProgram,
    name: str,
    specifications: dict[str, _Specification],
    required: bool,
) -> tuple[np.ndarray[Any, Any], ...]:
    stored = program.example_inputs
    if stored is None:
        if required:
            raise ModelError(
                f"model {name} holds no example inputs to calibrate with; keep them when exporting"
            )
        return tuple(np.zeros(shape, dtype) for shape, dtype in specifications.values())
    positional, keywords = stored
    return input_arrays((*positional, *keywords.values()), name)
