"""A `.pt2` archive that may be given to torch: data, and nothing that runs.

What comes in: a file from anywhere. What goes out: the same archive, rewritten from the entries
that were checked, so that torch reads nothing else. It must not know what a program means.

torch unpickles objects, evaluates symbolic shapes, executes guards and loads compiled libraries
while it reads an archive, and a graph may call any function of torch's modules. A program of fixed
shapes needs none of them: entries of other kinds, symbols, guards and calls of anything but
operators are refused here, and unpickling is limited to tensors. `LIMIT_BYTES` bounds what the
entries announce, those of archives inside archives included, before any of them is read.
"""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accelsim.errors import ModelError

LIMIT_BYTES = 2 << 30
LIMIT_GRAPH_BYTES = 128 << 20  # of JSON text, which becomes many times larger in memory
_PICKLED = (
    "it holds Python objects or compiled code, which would be executed; export the plain module"
)
_ENTRY = re.compile(
    r"(?:[^/]+/)?(?:archive_format|archive_version|version|byteorder|\.data/\w+|models/[\w.-]+\.json"
    r"|extra/.+|data/sample_inputs/[\w.-]+\.pt"
    r"|data/(?:weights/weight|constants/tensor)_\d+|data/(?:weights|constants)/[\w.-]+\.json)"
)
_OPERATOR = re.compile(
    r"torch\.ops\.(?:aten|prims|higher_order|quantized|quantized_decomposed|torchvision)\.\w+"
    r"(?:\.\w+)?|_operator\.getitem"
)
_FORCE, _FORCE_NOT = "TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"


def checked_archive(path: Path) -> io.BytesIO:
    """The archive, in memory. Raises ModelError for a file that is damaged, too large or unsafe."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            _check_size(path, sum(entry.file_size for entry in entries))
            names = [entry.filename for entry in entries]
            known = [name for name in names if _ENTRY.fullmatch(name)]
            if not any("models/" in name for name in known):
                raise _refusal(path, "it holds no program; write it with torch.export.save")
            if known != names:
                raise _refusal(path, _PICKLED)
            if len(set(names)) != len(names):
                raise _refusal(path, "it holds two entries of one name")
            return _copied(path, archive)
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, RuntimeError) as error:
        raise _refusal(path, f"it is damaged: {str(error).rstrip('.') or 'its data'}") from error


@contextmanager
def weights_only() -> Iterator[None]:
    """Let torch unpickle tensors and plain containers only, whatever a caller of it asks for."""
    before = {name: os.environ.pop(name, None) for name in (_FORCE, _FORCE_NOT)}
    os.environ[_FORCE] = "1"
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _copied(path: Path, archive: zipfile.ZipFile) -> io.BytesIO:
    """Every entry read once, checked, and written to an archive of its own."""
    copy = io.BytesIO()
    nested = 0
    with zipfile.ZipFile(copy, "w", zipfile.ZIP_STORED) as target:
        for entry in archive.infolist():
            content = archive.read(entry)
            if "/models/" in f"/{entry.filename}":
                _check_graph(path, content)
            if content[:2] == b"PK":
                with zipfile.ZipFile(io.BytesIO(content)) as inner:
                    nested += sum(one.file_size for one in inner.infolist())
                _check_size(path, nested)
            target.writestr(entry.filename, content)
    copy.seek(0)
    return copy


def _check_size(path: Path, total: int) -> None:
    if total > LIMIT_BYTES:
        raise _refusal(path, f"it announces {total:,} bytes of data, more than {LIMIT_BYTES:,}")


def _check_graph(path: Path, content: bytes) -> None:
    """Raises ModelError for symbols and guards, which torch evaluates, and for foreign calls."""
    if len(content) > LIMIT_GRAPH_BYTES:
        raise _refusal(path, f"its graph is larger than {LIMIT_GRAPH_BYTES:,} bytes")
    try:
        graph = json.loads(content.decode("utf-8"))
        symbolic = bool(graph.get("guards_code")) or bool(_values(graph, "expr_str"))
        nodes = [node for nodes in _values(graph, "nodes") for node in nodes]
        targets = [str(node["target"]) for node in nodes]
    except (AttributeError, KeyError, TypeError, RecursionError, ValueError) as error:
        raise _refusal(path, "its graph is damaged") from error
    if symbolic:
        raise ModelError(
            f"the program in {path} has a dynamic shape; export it without dynamic_shapes"
        )
    foreign = [target for target in targets if not _OPERATOR.fullmatch(target)]
    if foreign:
        raise _refusal(path, f"it calls {foreign[0][:80]!r}, which is no operator of torch")


def _values(value: Any, key: str) -> list[Any]:
    """Everything under that key at any depth."""
    fields = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(fields, list):
        return []
    found = [value[key]] if isinstance(value, dict) and key in value else []
    return found + [one for field in fields for one in _values(field, key)]


def _refusal(path: Path, reason: str) -> ModelError:
    return ModelError(f"model file {path} cannot be loaded as a torch.export program: {reason}")
