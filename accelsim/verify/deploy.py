"""A network outside verification: written as programs and a library, and run once on a backend.

What comes in: a model or a compiled library. What goes out: files, or outputs and cycles.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from accelsim.artifacts import Backend, Launch, Program, QuantizedModel, RunResult, SourceModel
from accelsim.codegen import CompiledModel, compile_model, set_backend
from accelsim.cosim.session import Cosim
from accelsim.emit import program_to_bytes
from accelsim.errors import InputError
from accelsim.files import check_writable, whole_folder, writing
from accelsim.importer import load_model
from accelsim.quantize import quantize
from accelsim.simulate import Simulator
from accelsim.spec.assembler import disassemble
from accelsim.spec.config import Config
from accelsim.verify import folder as run_folder
from accelsim.verify.input_files import Signature, read_input
from accelsim.verify.inputs import choose_input
from accelsim.verify.library import Library
from accelsim.verify.options import BACKENDS, Progress


@dataclass(frozen=True, slots=True)
class Deployed:
    """A library that is loaded, and the batch to run it on."""

    library: Library
    inputs: Sequence[np.ndarray]
    origin: str
    outputs: tuple[str, ...] = ()  # the model's own names; empty where it has none


def write_compiled(
    model: str, config: Config, out: Path, dump_ir: Path | None, seed: int, progress: Progress
) -> list[Path]:
    """Compile a model into a folder; returns its files. Writes all of them or none.

    Raises InputError where the folder cannot be written or holds something else.
    """
    if out.is_dir() and any(out.iterdir()) and not (out / "model.json").is_file():
        raise InputError(f"{out} exists and holds no compiled model; choose another --out")
    with writing(out, run_folder.ELSEWHERE):  # refused now, and not after the compilation
        check_writable(out.parent / "model.partial")
    _, quantized, compiled = _compile(model, config, dump_ir, seed, progress)
    progress("writing programs and library")
    with writing(out, run_folder.ELSEWHERE), whole_folder(out) as made:
        _write(made, quantized, compiled)
    return sorted(out.iterdir())


def _write(folder: Path, quantized: QuantizedModel, compiled: CompiledModel) -> None:
    Library.of(compiled, folder / "model.so")
    run_folder.write_model(folder, quantized)
    for program in compiled.programs:
        stem = folder / program.symbol
        stem.with_suffix(".program").write_bytes(program_to_bytes(program))
        stem.with_suffix(".asm").write_text(_listing(program), encoding="utf-8")
        run_folder.write_json(stem.with_suffix(".json"), describe(program))
    signature = Signature.of(quantized)
    description = {
        "model": quantized.name,
        "config": asdict(compiled.config),
        "inputs": asdict(signature),
        "outputs": list(quantized.output_names),
        "programs": [program.symbol for program in compiled.programs],
        "host": [{"name": op.name, "op": op.op, "reason": op.reason} for op in compiled.host_ops],
        "versions": run_folder.versions(),
    }
    run_folder.write_json(folder / "model.json", description)


def _listing(program: Program) -> str:
    """The program's text with a comment above each layer; it assembles to the same words."""
    starts = {layer.instructions[0]: layer for layer in program.layers if layer.instructions}
    lines = []
    for index, line in enumerate(disassemble(program.words).splitlines()):
        if index in starts:
            lines.append(f"# layer {starts[index].name} ({starts[index].op})")
        lines.append(line)
    return "\n".join(lines) + "\n"


def describe(program: Program) -> dict[str, object]:
    """A program without its instructions and constants, as JSON."""
    return {
        "symbol": program.symbol,
        "config": program.config_name,
        "instructions": len(program.words),
        "contract_hash": f"{program.contract_hash:016x}",
        "constants_bytes": len(program.constants),
        "arena_bytes": program.arena_bytes,
        "input_bytes": program.input_bytes,
        "output_bytes": program.output_bytes,
        "inputs": list(program.inputs),
        "outputs": list(program.outputs),
        "tensors": [asdict(extent) for extent in program.tensors.values()],
        "layers": [asdict(layer) for layer in program.layers],
    }


def _compile(
    model: str, config: Config, dump_ir: Path | None, seed: int, progress: Progress
) -> tuple[SourceModel, QuantizedModel, CompiledModel]:
    progress(f"loading {model}")
    source = load_model(model, seed)
    progress("quantizing")
    quantized = quantize(source)
    progress(f"compiling for {config.name}")
    return source, quantized, compile_model(quantized, config, dump_ir)


def fresh_library(
    model: str, config: Config, path: Path | None, seed: int, progress: Progress
) -> Deployed:
    """A model compiled now. Without `path` it runs on data of its own."""
    source, quantized, compiled = _compile(model, config, None, seed, progress)
    batch = choose_input(source, quantized, path, seed)
    with tempfile.TemporaryDirectory(prefix="accelsim-") as scratch:
        library = Library.of(compiled, Path(scratch) / "model.so")
    return Deployed(library, list(batch.tensors.values()), batch.origin, quantized.output_names)


def compiled_library(path: Path, input_path: Path | None) -> Deployed:
    """A library written by `write_compiled`. Raises InputError for anything else."""
    about = path.with_suffix(".json")
    if not path.is_file():
        raise InputError(f"library {path} does not exist")
    try:
        stored = json.loads(about.read_text(encoding="utf-8"))
        signature = Signature.read(stored["inputs"])
        outputs = tuple(str(name) for name in stored.get("outputs", ()))
    except OSError:
        raise InputError(
            f"{about} is missing: run a library from the folder that `accelsim compile` wrote"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{about} is damaged: {error!r}; compile the model again") from None
    if input_path is None:
        raise InputError(f"{path} needs --input: a .npz with {', '.join(signature.names)}")
    tensors = read_input(input_path, signature)
    return Deployed(Library.load(path), list(tensors.values()), str(input_path), outputs)


def run_once(
    deployed: Deployed, backend: str, seed: int, progress: Progress
) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Outputs by name and cycles by program. Raises InputError for an unknown backend."""
    if backend not in BACKENDS:
        raise InputError(f"unknown backend {backend!r}: use {' or '.join(BACKENDS)}")
    cycles: dict[str, int] = {}

    def observe(launch: Launch, result: RunResult) -> None:
        cycles[launch.program.symbol] = result.cycles

    progress(f"running on {backend}")
    with ExitStack() as stack:
        set_backend(_on_demand(backend, seed, stack), observer=observe)
        values = deployed.library.run(deployed.inputs)
    names = deployed.outputs
    if len(names) != len(values):
        names = tuple(f"output{place}" for place in range(len(values)))
    return dict(zip(names, values, strict=True)), cycles


def _on_demand(name: str, seed: int, stack: ExitStack) -> Backend:
    """A backend for whatever configuration the programs of a library are for."""
    opened: dict[Config, Backend] = {}

    def launch(given: Launch) -> RunResult:
        config = given.program.config
        if config not in opened:
            if name == "sim":
                opened[config] = Simulator(config).run
            else:
                opened[config] = stack.enter_context(Cosim(config, seed=seed)).launch
        return opened[config](given)

    return launch
