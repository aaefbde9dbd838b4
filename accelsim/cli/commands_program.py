"""`accelsim asm` and `accelsim disasm`: programs as text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from accelsim.emit import program_from_bytes
from accelsim.emit.serialize import MAGIC
from accelsim.errors import InputError, ProgramError
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
    words = assemble(_text(source), load_config(config))
    partial = out.with_name(out.name + ".partial")
    try:
        partial.write_bytes(words.astype("<u4").tobytes())
        partial.replace(out)
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}") from None


def disasm(
    program: Annotated[Path, typer.Argument(help="A .program file or binary instructions.")],
) -> None:
    """Print the instructions of a program."""
    try:
        data = program.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {program}: {error.strerror}") from None
    if data[: len(MAGIC)] == MAGIC:
        words = program_from_bytes(data).words
    elif data and len(data) % INSTRUCTION_BYTES == 0:
        words = np.frombuffer(data, "<u4").astype(np.uint32)
    else:
        raise ProgramError(
            f"{program} has {len(data)} bytes, which is neither a program nor a multiple of "
            f"{INSTRUCTION_BYTES}"
        )
    sys.stdout.write(disassemble(words))


def _text(source: Path) -> str:
    if str(source) == "-":
        return sys.stdin.read()
    try:
        return source.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{source} is not UTF-8 text") from None
