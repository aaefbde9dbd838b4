"""A quantized model → regions, programs and an executable that can be exported.

What comes in: a `QuantizedModel` and a configuration. What goes out: a `CompiledModel`. Backends
are not known here: the process that runs the library chooses one.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relax

from accelsim.artifacts import Program, QuantizedModel, Region
from accelsim.codegen.byoc import run_codegen
from accelsim.codegen.placement import CompileRegion, place
from accelsim.emit import compile_region, program_to_bytes
from accelsim.errors import InputError, ToolError
from accelsim.files import whole_file, writing
from accelsim.legalize import HostOp
from accelsim.spec.config import Config

LEAST_FREE = 4 << 20  # bytes that the compiler and linker may need
TARGET = "llvm"
"""Baseline x86-64 without fused multiply-add, which would round host arithmetic differently."""


@dataclass(frozen=True, slots=True)
class CompiledModel:
    """A network for one configuration. `programs` are in the order of `regions`."""

    name: str
    config: Config
    regions: tuple[Region, ...]
    programs: tuple[Program, ...]
    host_ops: tuple[HostOp, ...]
    qdq_layers: Mapping[str, tuple[str, ...]]  # layer of a region → the QDQ layers fused into it
    module: Any  # the partitioned tvm.IRModule
    executable: Any  # relax executable; `export_library` turns it into a file that can be run


def compile_model(
    quantized: QuantizedModel,
    config: Config,
    dump_ir: Path | None = None,
    *,
    compile_one: CompileRegion = compile_region,
) -> CompiledModel:
    """Legalize, partition, compile every region and generate the host code.

    `dump_ir` is a folder for the module's text after each stage. Raises ModelError, naming the
    layer, where the model cannot be compiled.
    """
    # Here, so that a process that only runs libraries does not import torch.
    from accelsim.quantize import layer_members

    placed = place(quantized, config, layer_members(quantized.qdq), compile_one)
    dump = _Dump(dump_ir)
    dump.write("qdq", quantized.qdq)
    dump.write("legalized", placed.legalized.module)
    dump.write("matched", placed.stages.matched)
    dump.write("partitioned", placed.stages.merged)
    payloads = {
        region.symbol: program_to_bytes(program)
        for region, program in zip(placed.regions, placed.programs, strict=True)
    }
    generated = run_codegen(placed.stages.merged, payloads)
    dump.write("generated", generated)
    return CompiledModel(
        name=quantized.name,
        config=config,
        regions=placed.regions,
        programs=placed.programs,
        host_ops=placed.legalized.host_ops,
        qdq_layers=placed.legalized.layers,
        module=placed.stages.merged,
        executable=relax.build(generated, target=TARGET),
    )


def export_library(compiled: CompiledModel, path: Path) -> Path:
    """Write the network as one shared library.

    Raises InputError where the file cannot be written, ToolError where no C compiler works.
    """
    with writing(path), whole_file(path) as partial:
        try:
            compiled.executable.export_library(str(partial))
        except (RuntimeError, OSError) as error:
            if shutil.disk_usage(path.absolute().parent).free < LEAST_FREE:
                raise InputError(
                    f"cannot write {path}: its disk has less than {LEAST_FREE >> 20} MiB left"
                ) from error
            raise ToolError(f"Exporting {path.name} failed; is g++ installed? {error}") from error
    return path


def load_library(path: Path) -> Any:
    """A virtual machine that runs an exported network. Raises InputError for anything else.

    A copy is loaded: the dynamic loader would give a process that loaded an older file of the same
    name that one again.
    """
    try:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(shutil.copy(path, folder))
            return relax.VirtualMachine(tvm.runtime.load_module(str(copy)), tvm.cpu())
    except (RuntimeError, ValueError, OSError, AttributeError) as error:
        raise InputError(f"{path} is not a library that accelsim exported: {error}") from error


def run_library(machine: Any, inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Run a loaded network; `set_backend` chooses what its accelerated parts run on."""
    result = machine["main"](*[tvm.runtime.tensor(np.ascontiguousarray(value)) for value in inputs])
    fields = [result] if isinstance(result, tvm.runtime.Tensor) else list(result)
    return tuple(field.numpy() for field in fields)


class _Dump:
    """Writes numbered module texts, or nothing without a folder."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.count = 0
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"cannot write {folder}: {error.strerror}") from error

    def write(self, stage: str, module: Any) -> None:
        """Write `module` as NN-stage.txt. Constants are named, not printed."""
        self.count += 1
        if self.folder is not None:
            text = module.script(show_meta=False)
            path = self.folder / f"{self.count:02}-{stage}.txt"
            with writing(path), whole_file(path) as partial:
                partial.write_text(text, encoding="utf-8")
