"""A user's Python file whose function makes the model.

What comes in: path and function name. What goes out: a `SourceModel`. It must not know what the
function does.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from accelsim.artifacts import SourceModel
from accelsim.errors import AccelsimError, ModelError
from accelsim.importer.checks import check_source, input_arrays
from accelsim.importer.exported import from_program
from accelsim.importer.reasons import reason

_EXPECTED = "(module, inputs), a SourceModel or an ExportedProgram"


def load_script(path: Path, function: str, name: str) -> SourceModel:
    """Execute the file, call the function without arguments, and wrap what it returns.

    Raises:
        ModelError: no such file or function, an exception in either, or another return value.
        InputError: example, calibration or test data that does not fit the model.
    """
    if not path.is_file():
        raise ModelError(f"model file {path} does not exist")
    with importable(path.parent):
        maker = loaded_function(path, function)
        try:
            made = maker()
        except AccelsimError:
            raise
        except (Exception, SystemExit) as error:  # the user's code may raise anything
            raise ModelError(f"{name} raised {reason(error)}") from error
    source = _wrap(made, name)
    check_source(source)
    return source


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Let the file import its neighbours while it runs."""
    entry = str(folder.resolve())
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        sys.path.remove(entry)


def loaded_function(path: Path, function: str) -> Callable[..., Any]:
    """A function of a file, which is executed. Raises ModelError where it cannot be had."""
    module_name = f"accelsim_model_{path.stem}"
    specification = importlib.util.spec_from_file_location(module_name, path)
    if specification is None or specification.loader is None:
        raise ModelError(f"{path} cannot be imported as a Python file")
    module = importlib.util.module_from_spec(specification)
    sys.modules[module_name] = module
    try:
        specification.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        sys.modules.pop(module_name, None)
        raise ModelError(f"{path} cannot be executed: {reason(error)}") from error
    maker = getattr(module, function, None)
    if not callable(maker):
        raise ModelError(f"{path} has no function '{function}'")
    found: Callable[..., Any] = maker
    return found


def _wrap(made: Any, name: str) -> SourceModel:
    if isinstance(made, SourceModel):
        source = dataclasses.replace(made, name=name)
        if isinstance(source.float_module, torch.nn.Module):
            _to_eval(source.float_module)
        return source
    if isinstance(made, torch.export.ExportedProgram):
        return from_program(made, name)
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], torch.nn.Module)):
        raise ModelError(f"{name} returned a {type(made).__name__}; return {_EXPECTED}")
    module, inputs = made
    _to_eval(module)
    arrays = input_arrays(inputs, name)
    return SourceModel(
        name=name,
        float_module=module,
        example_inputs=arrays,
        input_names=_input_names(module, len(arrays), name),
        calibration=(arrays[0],) if len(arrays) == 1 else (),
    )


def _to_eval(module: torch.nn.Module) -> None:
    """Leave training mode; torchao's exported modules have none of their own, and say so."""
    with suppress(NotImplementedError):
        module.eval()


def _input_names(module: torch.nn.Module, count: int, name: str) -> tuple[str, ...]:
    names = tuple(inspect.signature(module.forward).parameters)
    if len(names) < count:
        raise ModelError(f"{name} gave {count} inputs for a forward of {len(names)}")
    return names[:count]
