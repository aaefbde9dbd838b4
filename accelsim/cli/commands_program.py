"""`accelsim asm` and `accelsim disasm`: programs as text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from accelsim.emit import program_from_bytes
from accelsim.emit.serialize import MAGIC
from accelsim.errors import AccelsimError, InputError, ProgramError
from accelsim.files import whole_file, writing
from accelsim.spec.assembler import assemble, disassemble
from accelsim.spec.config import load_config
from accelsim.spec.isa import INSTRUCTION_BYTES


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("asm")(asm)
    app.command("disasm")(disasm)


def asm(
    source: Annotated[Path, typer.Argument(help="Assembler text, or - for stdin.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Binary instructions.")],
    config: Annotated[str, typer.Option(help="Configuration whose limits apply.")] = "edge8",
) -> None:
    """Assemble a text to binary instructions."""
    hardware = load_config(config)
    text = _text(source)
    try:
        words = assemble(text, hardware)
    except AccelsimError as error:
        raise type(error)(f"{'stdin' if str(source) == '-' else source}: {error}") from None
    with writing(out), whole_file(out) as partial:
        partial.write_bytes(words.astype("<u4").tobytes())


def disasm(
    program: Annotated[Path, typer.Argument(help="A .program file or binary instructions.")],
) -> None:
    """Print the instructions of a program."""
    try:
        data = program.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {program}: {error.strerror}") from None
    try:
        text = disassemble(_words(data))
    except AccelsimError as error:
        raise type(error)(f"{program}: {error}") from None
    sys.stdout.write(text)


def _words(data: bytes) -> np.ndarray:
    """Instruction words of a .program file or of binary instructions. Raises ProgramError."""
    if data[: len(MAGIC)] == MAGIC:
        return program_from_bytes(data).words
    if not data or len(data) % INSTRUCTION_BYTES:
        raise ProgramError(
            f"{len(data)} bytes are neither a program nor instructions of {INSTRUCTION_BYTES} bytes"
        )
    return np.frombuffer(data, "<u4").astype(np.uint32)


def _text(source: Path) -> str:
    try:
        if str(source) == "-":
            return sys.stdin.read()
        return source.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{source} is not UTF-8 text") from None
