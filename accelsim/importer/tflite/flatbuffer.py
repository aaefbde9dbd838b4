"""Tables and vectors of a flatbuffer, every offset and length checked against the file.

What comes in: the bytes of a file that may be damaged or hostile. What goes out: numbers, strings,
arrays and tables. It must not know what the tables mean.

Vectors may share their bytes, so that a small file can announce very much: all that is read from
vectors together is limited to a multiple of the file's size.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.errors import ModelError

_SHARING = 8  # bytes that vectors may announce, for each byte of the file
_ALLOWANCE = 1 << 16
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class Flatbuffer:
    """The bytes, and how much of the allowance is left."""

    def __init__(self, data: bytes, name: str) -> None:
        """`name` is what messages call the file."""
        self.data = data
        self.name = name
        self._left = _SHARING * len(data) + _ALLOWANCE

    def number(self, form: str, at: int) -> Any:
        """A number of `struct`'s form. Raises ModelError outside the file."""
        size = struct.calcsize(form)
        if at < 0 or at + size > len(self.data):
            raise self.damaged(f"an offset leads to byte {at} of {len(self.data)}")
        return struct.unpack_from(f"<{form}", self.data, at)[0]

    def spend(self, size: int) -> None:
        """Count bytes of vectors. Raises ModelError where they exceed the file many times."""
        self._left -= size
        if self._left < 0:
            raise self.damaged("its vectors announce far more data than the file has")

    def root(self, identifier: bytes) -> Table:
        """The file's table. Raises ModelError for another identifier."""
        if self.data[4:8] != identifier:
            raise ModelError(
                f"model file {self.name} is not a TensorFlow Lite model: bytes 4 to 7 are "
                f"{self.data[4:8]!r} and not {identifier!r}"
            )
        return Table(self, self.number("I", 0))

    def damaged(self, what: str) -> ModelError:
        """The error that says so."""
        return ModelError(f"model file {self.name} is damaged: {what}")


class Table:
    """A table; fields are found by their slots, in the order of the schema."""

    def __init__(self, buffer: Flatbuffer, at: int) -> None:
        """`at` is where the table starts. Raises ModelError where it is not inside the file."""
        self.buffer = buffer
        self.at = at
        self._fields = at - buffer.number("i", at)
        size = buffer.number("H", self._fields)
        self._slots = max(0, size - 4) // 2
        self._extent = buffer.number("H", self._fields + 2)

    def has(self, slot: int) -> bool:
        """Whether the field is there."""
        return self._field(slot) is not None

    def number(self, slot: int, form: str, default: Any = 0) -> Any:
        """A number of `struct`'s form, or the default where the field is absent."""
        at = self._field(slot)
        return default if at is None else self.buffer.number(form, at)

    def table(self, slot: int) -> Table | None:
        """The table of a field, None where it is absent."""
        at = self._target(slot)
        return None if at is None else Table(self.buffer, at)

    def tables(self, slot: int, limit: int, what: str) -> Iterator[Table]:
        """Tables of a vector. Raises ModelError for more than `limit` of them."""
        start, count = self._vector(slot, 4)
        if count > limit:
            raise self.buffer.damaged(f"it announces {count} {what}, the limit is {limit}")
        for index in range(count):
            at = start + 4 * index
            yield Table(self.buffer, at + self.buffer.number("I", at))

    def array(self, slot: int, dtype: str) -> NDArray[Any]:
        """A vector of numbers as a read-only array over the file's bytes, empty where absent."""
        kind = np.dtype(dtype).newbyteorder("<")
        start, count = self._vector(slot, kind.itemsize)
        if not count:
            return np.zeros(0, kind)
        return np.frombuffer(self.buffer.data, kind, count, start)

    def text(self, slot: int) -> str:
        """A name, "" where it is absent.

        Raises ModelError where it is not UTF-8, or has characters that move a terminal's cursor.
        """
        start, count = self._vector(slot, 1)
        try:
            found = self.buffer.data[start : start + count].decode()
        except UnicodeDecodeError:
            raise self.buffer.damaged("a name in it is not UTF-8") from None
        if _CONTROL.search(found):
            raise self.buffer.damaged(f"a name in it has control characters: {found!a:.60}")
        return found

    def _field(self, slot: int) -> int | None:
        if slot >= self._slots:
            return None
        offset = self.buffer.number("H", self._fields + 4 + 2 * slot)
        if offset >= max(self._extent, 1):
            raise self.buffer.damaged(f"a field lies {offset} bytes into a smaller table")
        return self.at + offset if offset else None

    def _target(self, slot: int) -> int | None:
        at = self._field(slot)
        return None if at is None else at + int(self.buffer.number("I", at))

    def _vector(self, slot: int, width: int) -> tuple[int, int]:
        """Where a vector's elements start, and how many there are."""
        at = self._target(slot)
        if at is None:
            return 0, 0
        count = int(self.buffer.number("I", at))
        if at + 4 + width * count > len(self.buffer.data):
            raise self.buffer.damaged(f"a vector announces {count} elements behind byte {at}")
        self.buffer.spend(width * count)
        return at + 4, count
