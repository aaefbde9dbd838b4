"""A case on disk: what a board bring-up needs to run one program and check what it wrote.

`memory.bin` is the flat memory before the run, from `memory.address` on; `expected.bin` the same
memory after it; `mask.bin` has 255 where a byte must match and 0 where it is free. `program.bin` is
the instructions alone. `case.json` has the register writes in order, the last of which starts the
run, where each base register points, the cycle limit, and a SHA-256 of every file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.errors import InputError
from accelsim.files import whole_folder, writing
from accelsim.spec.config import Config
from accelsim.spec.isa import BASE_REGISTERS, INSTRUCTION_BYTES, PROGRAM_BASE
from accelsim.spec.registers import BASE_ALIGN_BYTES

SCHEMA = "accelsim.vector/1"
FILES = ("program.bin", "memory.bin", "expected.bin", "mask.bin")
NAME = re.compile(r"[A-Za-z0-9_]+")
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Region:
    """What a base register points to: a byte address and a size."""

    base: int
    address: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Case:
    """One vector. `memory`, `expected` and `mask` are (bytes,) uint8 from `address` on."""

    name: str
    operator: str
    description: str
    config: Config
    address: int
    regions: tuple[Region, ...]
    registers: tuple[tuple[int, int], ...]  # (offset, value) in order
    opcode_mask: int
    contract_hash: int
    cycle_limit: int
    golden: str  # where the expected bytes come from
    program: Bytes
    memory: Bytes
    expected: Bytes
    mask: Bytes

    def region(self, base: int, data: Bytes) -> Bytes:
        """The part of `memory`, `expected` or `mask` that a base register points to."""
        for region in self.regions:
            if region.base == base:
                start = region.address - self.address
                return data[start : start + region.size_bytes]
        raise InputError(f"vector {self.name}: base register {base} points nowhere")


def write_case(case: Case, folder: Path) -> None:
    """Write a case into a folder of its own; an older case there is replaced.

    The folder is never seen half written. Raises InputError where it cannot be written or holds
    something that is no case.
    """
    if folder.exists() and not (folder / "case.json").is_file():
        raise InputError(f"cannot write vector {folder}: it exists and is no vector; remove it")
    with writing(folder), whole_folder(folder) as whole:
        for name in FILES:
            (whole / name).write_bytes(_data(case, name).tobytes())
        text = json.dumps(_header(case), indent=1) + "\n"
        (whole / "case.json").write_text(text, encoding="utf-8")


def _data(case: Case, name: str) -> Bytes:
    data: Bytes = getattr(case, name.removesuffix(".bin"))
    return data


def _header(case: Case) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "name": case.name,
        "operator": case.operator,
        "description": case.description,
        "golden": case.golden,
        "config": asdict(case.config),
        "address": case.address,
        "regions": [asdict(r) for r in case.regions],
        "registers": [list(pair) for pair in case.registers],
        "opcode_mask": case.opcode_mask,
        "contract_hash": f"{case.contract_hash:016x}",
        "cycle_limit": case.cycle_limit,
        "bytes_compared": int(np.count_nonzero(case.mask)),
        "sha256": {name: _sha256(_data(case, name)) for name in FILES},
    }


def _sha256(data: Bytes) -> str:
    return hashlib.sha256(data.tobytes()).hexdigest()


def read_case(folder: Path) -> Case:
    """Read and check a case. Raises InputError that names the file and what is wrong with it."""
    path = folder / "case.json"
    try:
        header = json.loads(path.read_text(encoding="utf-8"))
        data = {name: np.frombuffer((folder / name).read_bytes(), np.uint8) for name in FILES}
    except OSError as error:
        raise InputError(f"vector {folder}: {error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"vector {folder}: case.json is damaged: {error}") from None
    try:
        return _case(folder, header, data)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"vector {folder}: case.json is malformed: {error!r}") from None


def _case(folder: Path, header: Mapping[str, Any], data: Mapping[str, Bytes]) -> Case:
    if header["schema"] != SCHEMA:
        raise InputError(f"vector {folder}: schema {header['schema']!r} is not {SCHEMA}")
    for name in FILES:
        if _sha256(data[name]) != header["sha256"][name]:
            raise InputError(f"vector {folder}: {name} does not match its SHA-256 in case.json")
    memory, expected, mask = (data[name] for name in FILES[1:])
    if not len(memory) == len(expected) == len(mask):
        raise InputError(f"vector {folder}: memory, expected and mask differ in length")
    if len(data["program.bin"]) % INSTRUCTION_BYTES or not np.count_nonzero(mask):
        raise InputError(f"vector {folder}: the program is cut, or nothing would be compared")
    case = Case(
        name=header["name"],
        operator=header["operator"],
        description=header["description"],
        config=Config(**header["config"]),
        address=header["address"],
        regions=tuple(Region(**r) for r in header["regions"]),
        registers=tuple((int(o), int(v)) for o, v in header["registers"]),
        opcode_mask=header["opcode_mask"],
        contract_hash=int(header["contract_hash"], 16),
        cycle_limit=header["cycle_limit"],
        golden=header["golden"],
        program=data["program.bin"],
        memory=memory,
        expected=expected,
        mask=mask,
    )
    wrong = _contradiction(case)
    if wrong:
        raise InputError(f"vector {folder}: {wrong}")
    return case


def _contradiction(case: Case) -> str:
    """What in a header cannot be, or "": files are checked by their hashes, the header is not."""
    for field in ("address", "opcode_mask", "cycle_limit"):
        value = getattr(case, field)
        if type(value) is not int or value < 0:
            return f"{field} is {value!r}, use an integer that is not negative"
    if not NAME.fullmatch(case.name):
        return f"the name {case.name!r} is not a word of letters, digits and _"
    numbers = [r.base for r in case.regions]
    if len(set(numbers)) != len(numbers) or not set(numbers) <= set(range(BASE_REGISTERS)):
        return f"its regions have base registers {numbers}, use each of 0 to 7 once at most"
    end = case.address + len(case.memory)
    for r in case.regions:
        if r.address % BASE_ALIGN_BYTES or r.size_bytes < 0:
            return f"region {r.base} is not aligned to {BASE_ALIGN_BYTES} bytes"
        if not case.address <= r.address <= r.address + r.size_bytes <= end:
            return f"region {r.base} lies beyond the memory"
    if PROGRAM_BASE not in numbers:
        return "no region holds the program"
    if not np.array_equal(case.region(PROGRAM_BASE, case.memory), case.program):
        return "program.bin is not what memory.bin holds behind base register 0"
    return ""


def case_folders(root: Path) -> list[Path]:
    """Every case below `root`, sorted. Raises InputError where there is none."""
    found = sorted(p.parent for p in root.glob("*/*/case.json"))
    if not found:
        raise InputError(f"no vectors below {root}; expected CONFIG/CASE/case.json")
    return found
