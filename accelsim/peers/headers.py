"""C headers with constants: what `test_data.h` includes, as macros and integer arrays.

What comes in: the folder of a case. What goes out: `Headers`. It must not know what the names mean.
Only integers are read: a header with floats or an unknown initialiser is an UnreadableError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.peers.case import UnreadableError

ENTRY = "test_data.h"
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
DEFINE = re.compile(r"^\s*#\s*define\s+(\w+)[ \t]+(.+?)\s*$", re.MULTILINE)
ARRAY = re.compile(r"(\w+)\s+(\w+)\s*\[\s*(\w*)\s*\]\s*=\s*\{(.*?)\}\s*;", re.DOTALL)
ALIAS = re.compile(r"(\w+)\s*\*\s*(?:const\s+)?(\w+)\s*=\s*(\w+)\s*;")
TYPES: Mapping[str, Any] = {
    "int8_t": np.int8,
    "int16_t": np.int16,
    "int32_t": np.int32,
    "int64_t": np.int64,
}
INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0|[1-9]\d*)[uUlL]*")
# What macros may be, by the first pattern that their names hold; all others are extents.
LARGEST = 1 << 16
RANGES: tuple[tuple[re.Pattern[str], int, int], ...] = (
    (re.compile("OUTPUT_OFFSET|ACTIVATION_M|PAD_VALUE"), -128, 127),
    (re.compile("OFFSET"), -127, 128),
    (re.compile("SHIFT"), -31, 31),
    (re.compile("MULT"), 0, (1 << 31) - 1),
    (re.compile("DIFF_MIN"), -(1 << 31), 0),
    (re.compile("STRIDE|DILATION|FILTER_"), 1, 256),
    (re.compile("PAD"), 0, 256),
    (re.compile("ADJ"), 0, 1),
    (re.compile(""), 1, LARGEST),
)


@dataclass(frozen=True, slots=True)
class Headers:
    """Macros as text, arrays by name, and the headers' names in the order of inclusion."""

    macros: Mapping[str, str]
    arrays: Mapping[str, NDArray[np.integer]]
    files: Mapping[str, tuple[str, ...]]  # header → the macros that it defines


def read_headers(folder: Path) -> Headers:
    """Read `test_data.h` and all that it includes from the folder."""
    macros: dict[str, str] = {}
    files: dict[str, tuple[str, ...]] = {}
    arrays: dict[str, NDArray[np.integer]] = {}
    aliases: dict[str, str] = {}
    for name, text in _included(folder, ENTRY, set()):
        joined = text.replace("\\\n", " ")
        found = {key: " ".join(value.split()) for key, value in DEFINE.findall(joined)}
        macros |= found
        files[name] = tuple(found)
        body = re.sub(r"^\s*#.*$", "", joined, flags=re.MULTILINE)
        for kind, key, length, values in ARRAY.findall(body):
            arrays[key] = _array(f"{folder.name}/{name}", kind, key, (length, values), macros)
        aliases |= {key: target for _, key, target in ALIAS.findall(body)}
    arrays |= {key: arrays[target] for key, target in aliases.items() if target in arrays}
    if not macros or not arrays:
        raise UnreadableError(f"{folder.name}: {ENTRY} includes no macros or no arrays")
    return Headers(macros, arrays, files)


def _included(folder: Path, name: str, seen: set[str]) -> Iterator[tuple[str, str]]:
    """A header's name and text without comments, those that it includes first."""
    if name in seen:
        return
    seen.add(name)
    try:
        text = COMMENT.sub("", (folder / name).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(f"{folder.name}: cannot read {name}: {error}") from None
    for other in INCLUDE.findall(text):
        yield from _included(folder, other, seen)
    yield name, text


def _array(
    where: str, kind: str, key: str, content: tuple[str, str], macros: Mapping[str, str]
) -> NDArray[np.integer]:
    """One initialiser; its length and range must be those of its declaration."""
    length, text = content
    words = [word.strip() for word in text.split(",") if word.strip()]
    if kind not in TYPES or not all(INTEGER.fullmatch(word) for word in words):
        raise UnreadableError(f"{where}: {key} is an array of {kind}, only integers are read")
    values = [integer(word) for word in words]
    wanted = macros.get(length, length) or str(len(values))
    if not wanted.isdigit() or int(wanted) != len(values):
        raise UnreadableError(f"{where}: {key} has {len(values)} values, declared are {wanted}")
    limits = np.iinfo(TYPES[kind])
    if values and not limits.min <= min(values) <= max(values) <= limits.max:
        raise UnreadableError(f"{where}: a value of {key} does not fit into {kind}")
    return np.array(values, TYPES[kind])


def integer(text: str) -> int:
    """A C integer literal."""
    return int(text.rstrip("uUlL"), 0)


@dataclass(frozen=True, slots=True)
class Names:
    """Macros and arrays of one layer, by what is left of their names without its prefix.

    `origins` names the header and the whole macro, for messages.
    """

    where: str
    macros: Mapping[str, str]
    arrays: Mapping[str, NDArray[np.integer]]
    origins: Mapping[str, str] = field(default_factory=dict)

    def number(self, *keys: str, default: int | None = None) -> int:
        """The macro of one of the names, as an integer that it may be."""
        for key in keys:
            if key not in self.macros:
                continue
            text = self.macros[key].strip("() ")
            if not INTEGER.fullmatch(text):
                raise self.wrong(key, f"{text!r}, expected an integer")
            return self._ranged(key, integer(text))
        if default is None:
            raise UnreadableError(f"{self.where}: none of the macros {', '.join(keys)} is there")
        return default

    def numbers(self, key: str) -> tuple[int, ...]:
        """A macro that is a braced list of integers."""
        words = [w.strip() for w in self.macros.get(key, "").strip("{} ").split(",") if w.strip()]
        if not words or not all(INTEGER.fullmatch(word) for word in words):
            raise self.wrong(key, "no list of integers")
        return tuple(integer(word) for word in words)

    def wrong(self, key: str, what: str) -> UnreadableError:
        """The error that a macro is `what`."""
        case = self.where.partition(",")[0]
        return UnreadableError(f"{case}/{self.origins.get(key, key)} is {what}")

    def _ranged(self, key: str, value: int) -> int:
        """A value that the macro may have."""
        low, high = next((low, high) for word, low, high in RANGES if word.search(key))
        if not low <= value <= high:
            raise self.wrong(key, f"{value}, expected {low} to {high}")
        return value

    def array(self, *keys: str) -> NDArray[np.integer]:
        """The array of one of the names."""
        for key in keys:
            if key in self.arrays:
                return self.arrays[key]
        raise UnreadableError(f"{self.where}: none of the arrays {', '.join(keys)} is there")

    def has(self, *keys: str) -> bool:
        """Whether all these macros are there."""
        return all(key in self.macros for key in keys)


def names(headers: Headers, where: str) -> Names:
    """The names of a case of one layer, without what all its macros or arrays begin with."""
    macros, arrays = _prefix(headers.macros), _prefix(headers.arrays)
    return Names(
        where,
        {key[len(macros) :]: value for key, value in headers.macros.items()},
        {key[len(arrays) :]: value for key, value in headers.arrays.items()},
        {key[len(macros) :]: origin for key, origin in origins(headers).items()},
    )


def origins(headers: Headers) -> dict[str, str]:
    """The header and the name of every macro."""
    return {key: f"{file}: {key}" for file, keys in headers.files.items() for key in keys}


def _prefix(keys: Mapping[str, object]) -> str:
    """What all keys begin with, up to its last underscore."""
    ordered = sorted(keys)
    first, last = ordered[0], ordered[-1]
    shared = 0
    while shared < min(len(first), len(last)) and first[shared] == last[shared]:
        shared += 1
    return first[: first.rfind("_", 0, shared) + 1]
