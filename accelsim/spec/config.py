"""Hardware configurations: the parameters of the NPU, with named instances.

A row of on-chip memory is LANES elements: int8 in activation and weight memory, 32-bit words in
parameter memory and accumulators. A bus beat is LANES bytes, so one int8 row is one beat.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from accelsim.errors import InputError

ENGINES = ("load", "matrix", "vector", "store")
LOAD, MATRIX, VECTOR, STORE = range(4)
TABLES, TABLE_WORDS = 2, 256  # tables of 32-bit words in table memory
PAR_BEATS = 4  # beats of LANES bytes in one parameter row of LANES 32-bit words
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")  # it becomes part of paths
DEPTHWISE_TAPS = 3  # kernel columns that the depthwise datapath multiplies in one cycle


@dataclass(frozen=True, slots=True)
class Config:
    """Parameters of one NPU. Memory sizes are in rows of LANES elements."""

    name: str
    lanes: int  # 8, 16 or 32: array side, vector width and bus bytes
    act_banks: int
    act_bank_rows: int
    wgt_rows: int
    par_rows: int
    acc_rows: int  # rows in each of the two accumulator banks
    queue_depth: int = 4  # instructions waiting at each engine
    fetch_depth: int = 4  # instructions prefetched
    read_outstanding: int = 8  # read bursts in flight
    write_outstanding: int = 8  # write bursts not yet acknowledged

    def __post_init__(self) -> None:
        """Refuse a configuration that the RTL cannot be built with."""
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InputError(
                f"configuration {self.name!r}: the name is not a word of letters, digits, _, . "
                "and -, which begins with a letter or digit"
            )
        if self.lanes not in (8, 16, 32):
            raise InputError(f"configuration {self.name}: lanes is {self.lanes!r}, use 8, 16 or 32")
        for f in fields(self):
            value = getattr(self, f.name)
            whole = isinstance(value, int) and not isinstance(value, bool)
            if f.name != "name" and (not whole or value < 1):
                raise InputError(
                    f"configuration {self.name}: {f.name} is {value!r}, use a positive integer"
                )
        for name in ("act_bank_rows", "par_rows"):
            if getattr(self, name) < 2:
                raise InputError(
                    f"configuration {self.name}: {name} is {getattr(self, name)}, use 2 or more "
                    "(an address has at least one bit)"
                )
        for name, limit in (
            ("act_rows", 1 << 16),
            ("wgt_rows", 1 << 16),
            ("par_beats", 1 << 16),
            ("acc_rows", 1 << 16),
            ("queue_depth", 64),
            ("fetch_depth", 64),
            ("read_outstanding", 64),
            ("write_outstanding", 64),
        ):
            if getattr(self, name) > limit:
                raise InputError(
                    f"configuration {self.name}: {name} is {getattr(self, name)}, "
                    f"the limit is {limit}"
                )
        if self.act_banks < 2 or self.act_banks & (self.act_banks - 1):
            raise InputError(
                f"configuration {self.name}: act_banks is {self.act_banks}, use a power of two ≥ 2"
            )
        if self.act_bank_rows & (self.act_bank_rows - 1):
            raise InputError(
                f"configuration {self.name}: act_bank_rows is {self.act_bank_rows}, "
                "use a power of two (the bank number is the upper part of the address)"
            )
        if self.acc_rows < self.lanes or self.wgt_rows < 2 * self.lanes:
            raise InputError(
                f"configuration {self.name}: acc_rows must be at least lanes and wgt_rows at least "
                "two weight tiles"
            )

    @property
    def bus_bytes(self) -> int:
        """Bytes of one AXI beat."""
        return self.lanes

    @property
    def act_rows(self) -> int:
        """Rows of activation memory over all banks."""
        return self.act_banks * self.act_bank_rows

    @property
    def par_beats(self) -> int:
        """Size of parameter memory in bus beats, the unit in which LOAD addresses it."""
        return self.par_rows * PAR_BEATS

    @property
    def tab_beats(self) -> int:
        """Size of table memory in bus beats, the unit in which LOAD addresses it."""
        return TABLES * TABLE_WORDS * 4 // self.lanes

    @property
    def on_chip_bytes(self) -> int:
        """All on-chip memory, tables counted once (each lane has a read port to them)."""
        words = self.par_rows + 2 * self.acc_rows
        return self.lanes * (self.act_rows + self.wgt_rows + self.tab_beats + 4 * words)


CONFIGS: dict[str, Config] = {
    c.name: c
    for c in (
        # Small on purpose: real layers split rows, input channels and output channels.
        Config("edge8", 8, act_banks=4, act_bank_rows=128, wgt_rows=384, par_rows=16, acc_rows=64),
        Config(
            "base16",
            16,
            act_banks=4,
            act_bank_rows=4096,
            wgt_rows=6144,
            par_rows=256,
            acc_rows=2048,
        ),
        Config(
            "wide32",
            32,
            act_banks=4,
            act_bank_rows=4096,
            wgt_rows=8192,
            par_rows=256,
            acc_rows=2048,
        ),
    )
}


def load_config(name_or_file: str) -> Config:
    """A named configuration, or one from a TOML file with the fields of `Config`.

    Raises InputError that names the file, the field and the limit.
    """
    if name_or_file in CONFIGS:
        return CONFIGS[name_or_file]
    path = Path(name_or_file)
    if path.suffix != ".toml":
        raise InputError(
            f"unknown configuration {name_or_file!r}: use {', '.join(CONFIGS)} or a .toml file"
        )
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read configuration {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"configuration {path} is not valid TOML: {error}") from None
    known = {f.name for f in fields(Config)}
    base = table.pop("base", None)
    if base is not None and base not in tuple(CONFIGS):
        raise InputError(f"configuration {path}: base {base!r} is not one of {', '.join(CONFIGS)}")
    unknown = sorted(set(table) - known)
    if unknown:
        raise InputError(f"configuration {path}: unknown field {unknown[0]!r}")
    merged = {"name": path.stem, **(asdict(CONFIGS[base]) if base else {}), **table}
    if base and "name" not in table:
        merged["name"] = path.stem
    missing = sorted(
        f.name for f in fields(Config) if f.name not in merged and f.name not in _DEFAULTED
    )
    if missing:
        raise InputError(f"configuration {path}: field {missing[0]!r} is missing")
    config = Config(**merged)
    named = CONFIGS.get(config.name)
    if named is not None and named != config:
        raise InputError(
            f"configuration {path}: name {config.name!r} belongs to a built-in configuration with "
            "other parameters; choose another name"
        )
    return config


_DEFAULTED = ("queue_depth", "fetch_depth", "read_outstanding", "write_outstanding")
