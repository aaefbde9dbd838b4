"""The suites by name: who discovers the cases of each, and what that needs.

What comes in: the data folder. What goes out: `PeerCase`s. A suite's module is imported only when
it is asked for, so that a missing peer stops a run with one sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from accelsim.errors import InputError, ToolError
from accelsim.peers.case import PeerCase

# By suite: a module of this room, with a function `discover(suite, folder)`.
SUITES = {
    "cmsis_nn": "cmsis",
    "litert": "litert",
    "onnxruntime": "ort",
    "qnnpack": "qnnpack",
    "onnx_node": "onnx_node",
    "tflite": "model_files",
    "onnx": "model_files",
}


def discover(suite: str, folder: Path) -> Iterator[PeerCase]:
    """The cases of a suite, in a fixed order.

    Raises ToolError where a package of the peer is missing, InputError for an unknown suite.
    """
    if suite not in SUITES:
        raise InputError(f"unknown suite {suite!r}: use {', '.join(SUITES)}")
    try:
        module = import_module(f"accelsim.peers.{SUITES[suite]}")
    except ModuleNotFoundError as error:
        if (error.name or "accelsim").split(".")[0] == "accelsim":
            raise
        raise ToolError(
            f"suite {suite} needs the package {error.name}: "
            "install accelsim with its extras peers and compile"
        ) from None
    cases: Iterator[PeerCase] = module.discover(suite, folder)
    return cases
