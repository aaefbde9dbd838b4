"""Cached arrays on disk: written atomically, refused when a byte of them changed.

What comes in: a directory, a key and named arrays. What goes out: the same arrays, or None when the
cache has none that can be trusted. It must not know what the arrays mean.

A file is a 64-character SHA-256 of the rest, a newline, and an uncompressed `.npz`.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.files import whole_file, writing

_DIGEST_CHARS = 64


def cache_dir(root: Path | None = None) -> Path:
    """The cache directory: `build/cache` under `root` (the current directory when None)."""
    return (root if root is not None else Path.cwd()) / "build" / "cache"


def read_arrays(path: Path) -> dict[str, NDArray[Any]] | None:
    """The arrays stored at `path`, or None when it is missing, truncated or altered."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    digest, payload = data[:_DIGEST_CHARS], data[_DIGEST_CHARS + 1 :]
    if hashlib.sha256(payload).hexdigest().encode() != digest:
        return None
    try:
        with np.load(io.BytesIO(payload), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (ValueError, OSError, zipfile.BadZipFile):
        return None


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Store `arrays` at `path` so that a reader sees the old file or the whole new one.

    Raises:
        InputError: the directory cannot be created or written.
    """
    buffer = io.BytesIO()
    np.savez(buffer, **dict(arrays))  # type: ignore[arg-type]
    payload = buffer.getvalue()
    digest = hashlib.sha256(payload).hexdigest().encode()
    with writing(path, "choose another cache directory"), whole_file(path) as partial:
        partial.write_bytes(digest + b"\n" + payload)
