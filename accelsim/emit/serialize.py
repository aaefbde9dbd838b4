"""Program ↔ bytes: a checked container of a JSON header, instructions and constants.

Layout, little-endian: 8 bytes magic, 4 bytes header length, 32 bytes SHA-256 of all that follows,
header (UTF-8 JSON), instructions, constants.
"""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import asdict
from typing import Any

import numpy as np

from accelsim.artifacts import LayerRecord, Patches, Program, TensorExtent
from accelsim.errors import AccelsimError, ProgramError
from accelsim.spec.config import Config
from accelsim.spec.isa import (
    ARENA_BASE,
    INPUT_BASE,
    INSTRUCTION_BYTES,
    INSTRUCTION_WORDS,
    OUTPUT_BASE,
)

MAGIC = b"ACCELSM1"
_PREFIX = struct.Struct("<8sI32s")


def program_to_bytes(program: Program) -> bytes:
    """The whole program in one relocatable blob."""
    header = {
        "symbol": program.symbol,
        "config": asdict(program.config),
        "instructions": len(program.words),
        "opcode_mask": program.opcode_mask,
        "contract_hash": f"{program.contract_hash:016x}",
        "constants_bytes": len(program.constants),
        "arena_bytes": program.arena_bytes,
        "input_bytes": program.input_bytes,
        "output_bytes": program.output_bytes,
        "tensors": [asdict(t) for t in program.tensors.values()],
        "inputs": program.inputs,
        "outputs": program.outputs,
        "layers": [asdict(layer) for layer in program.layers],
        "tile_of": program.tile_of,
        "partial": program.partial,
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    body = text + program.words.astype("<u4").tobytes() + program.constants
    return _PREFIX.pack(MAGIC, len(text), hashlib.sha256(body).digest()) + body


def program_from_bytes(data: bytes) -> Program:
    """Read a blob back. Raises ProgramError for anything but an intact program."""
    if len(data) < _PREFIX.size or data[:8] != MAGIC:
        raise ProgramError("this is not an accelsim program: its first bytes are not ACCELSM1")
    _, length, digest = _PREFIX.unpack_from(data)
    body = data[_PREFIX.size :]
    if hashlib.sha256(body).digest() != digest:
        raise ProgramError("the program is damaged: its SHA-256 does not match; compile it again")
    try:
        return _program(json.loads(body[:length]), body[length:])
    except (KeyError, TypeError, ValueError, AttributeError, AccelsimError) as error:
        raise ProgramError(f"the program's header is malformed: {error!r}") from None


def _program(header: dict[str, Any], rest: bytes) -> Program:
    size = header["instructions"] * INSTRUCTION_BYTES
    if len(rest) != size + header["constants_bytes"]:
        raise ValueError("sizes in the header do not match the data")
    words = np.frombuffer(rest[:size], "<u4").reshape(-1, INSTRUCTION_WORDS).astype(np.uint32)
    tensors = {t["name"]: _extent(t) for t in header["tensors"]}
    layers = tuple(
        LayerRecord(
            **{
                **layer,
                **{k: tuple(layer[k]) for k in ("members", "instructions", "inputs")},
            }
        )
        for layer in header["layers"]
    )
    program = Program(
        symbol=header["symbol"],
        config=Config(**header["config"]),
        words=words,
        opcode_mask=header["opcode_mask"],
        contract_hash=int(header["contract_hash"], 16),
        constants=rest[size:],
        arena_bytes=header["arena_bytes"],
        input_bytes=header["input_bytes"],
        output_bytes=header["output_bytes"],
        tensors=tensors,
        inputs=tuple(header["inputs"]),
        outputs=tuple(header["outputs"]),
        layers=layers,
        tile_of=tuple(header["tile_of"]),
        partial=header["partial"],
    )
    _check(program)
    return program


def _check(program: Program) -> None:
    """ValueError where a header contradicts itself: a checksum does not say who wrote it."""
    count, lanes = len(program.words), program.config.lanes
    sizes = {
        INPUT_BASE: program.input_bytes,
        OUTPUT_BASE: program.output_bytes,
        ARENA_BASE: program.arena_bytes,
    }
    for extent in program.tensors.values():
        if min(extent.shape) < 1 or len(extent.shape) != 4 or extent.offset_bytes < 0:
            raise ValueError(f"tensor {extent.name} has no place in memory")
        if extent.offset_bytes + extent.size_bytes(lanes) > sizes[extent.base]:
            raise ValueError(f"tensor {extent.name} lies beyond its memory")
    named = [*program.inputs, *program.outputs]
    for layer in program.layers:
        named += [*layer.inputs, layer.output]
        if not all(0 <= i < count for i in layer.instructions):
            raise ValueError(f"layer {layer.name} has instructions that the program lacks")
    absent = [name for name in named if name not in program.tensors]
    if absent or len(program.tile_of) != count:
        raise ValueError(f"tensors {absent} or tile numbers are missing")


def _extent(fields: dict[str, Any]) -> TensorExtent:
    patches = fields["patches"]
    if patches is not None:
        lists = {k: tuple(v) for k, v in patches.items() if k != "fill"}
        patches = Patches(**lists, fill=patches["fill"])
    return TensorExtent(**{**fields, "shape": tuple(fields["shape"]), "patches": patches})
