"""A case in the form that another tool reads: raw binaries, $readmemh text, C arrays, or .npz."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from accelsim.errors import InputError
from accelsim.files import whole_file, whole_folder, writing
from accelsim.vectors.case import Bytes, Case, write_case

BYTES_A_LINE = 16


def export(case: Case, form: str, out: Path) -> Path:
    """Write `case` below folder `out` in one of FORMS; returns the file or folder written."""
    if form not in FORMS:
        raise InputError(f"unknown format {form!r}: use {', '.join(FORMS)}")
    with writing(out):
        return FORMS[form](case, out)


def _images(case: Case) -> dict[str, Bytes]:
    return {
        "program": case.program,
        "memory": case.memory,
        "expected": case.expected,
        "mask": case.mask,
    }


def _bin(case: Case, out: Path) -> Path:
    write_case(case, out / case.name)
    return out / case.name


def _memh(case: Case, out: Path) -> Path:
    """One bus beat a line, its first byte last, as $readmemh into a beat-wide memory wants it."""
    folder = out / case.name
    width = case.config.bus_bytes
    writes = "".join(f"{offset:03x} {value:08x}\n" for offset, value in case.registers)
    with whole_folder(folder) as whole:
        for name, data in _images(case).items():
            beats = np.pad(data, (0, -len(data) % width)).reshape(-1, width)
            lines = (beat[::-1].tobytes().hex() for beat in beats)
            (whole / f"{name}.memh").write_text("\n".join(lines) + "\n", encoding="ascii")
        (whole / "registers.memh").write_text(writes, encoding="ascii")
    return folder


def _c(case: Case, out: Path) -> Path:
    path = out / f"{case.name}.h"
    guard = f"VECTOR_{case.name.upper()}_H"
    parts = [f"#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n"]
    parts.append(f"#define VECTOR_ADDRESS 0x{case.address:x}ull\n")
    parts.append(f"#define VECTOR_CYCLE_LIMIT {case.cycle_limit}u\n")
    rows = ",\n".join(f"  {{0x{o:03x}u, 0x{v:08x}u}}" for o, v in case.registers)
    count = len(case.registers)
    parts.append(f"static const uint32_t vector_registers[{count}][2] = {{\n{rows}\n}};\n")
    for name, data in _images(case).items():
        lines = [
            "  " + ", ".join(f"0x{b:02x}" for b in data[i : i + BYTES_A_LINE])
            for i in range(0, len(data), BYTES_A_LINE)
        ]
        body = ",\n".join(lines)
        parts.append(f"static const uint8_t vector_{name}[{len(data)}] = {{\n{body}\n}};\n")
    parts.append("#endif\n")
    with whole_file(path) as partial:
        partial.write_text("\n".join(parts), encoding="ascii")
    return path


def _npz(case: Case, out: Path) -> Path:
    path = out / f"{case.name}.npz"
    registers = np.array(case.registers, np.uint32)
    arrays: dict[str, Any] = dict(_images(case))
    with whole_file(path) as partial:
        np.savez_compressed(partial, registers=registers, address=case.address, **arrays)
    return path


FORMS: Mapping[str, Callable[[Case, Path], Path]] = {
    "bin": _bin,
    "memh": _memh,
    "c": _c,
    "npz": _npz,
}
