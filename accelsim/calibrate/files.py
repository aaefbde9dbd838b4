"""What a quantization writes: the model, waivers for what stays in float, the report.

What comes in: results and a base path. What goes out: files, each whole or not at all. It must not
know how the results were made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch

from accelsim.artifacts import QuantizedModel
from accelsim.calibrate.document import SCHEMA
from accelsim.errors import InputError, ModelError, ToolError
from accelsim.files import check_writable, whole_file, writing
from accelsim.importer.test_split import ENTRY, pack_split
from accelsim.quantize.export import export_onnx

SUFFIXES = (".pt2", ".onnx", ".json", ".txt", ".waivers.toml")
WAIVED_DAYS = 90
ELSEWHERE = "choose another --out"


def prepare_base(base: Path, model: str) -> None:
    """Remove what an earlier run left there; the folder is made with the first file.

    Raises InputError where it cannot be written, or where a file of another origin is in the way.
    """
    paths = [with_suffix(base, suffix) for suffix in SUFFIXES]
    with writing(paths[0], ELSEWHERE):
        present = [path for path in paths if path.exists()]
        if any(path.resolve() == Path(model).resolve() for path in present):
            raise InputError(f"--out would overwrite the model {model} itself; choose another")
        if present and not _own(base):
            raise InputError(
                f"{present[0]} exists and was not written by accelsim quantize; {ELSEWHERE}"
            )
        for path in present:
            path.unlink()
        check_writable(paths[0])


def write_program(
    base: Path, quantized: QuantizedModel, split: tuple[np.ndarray, np.ndarray] | None
) -> tuple[Path, str | None]:
    """BASE.pt2 with the test split inside; also why that is not, or None."""
    packed = None if split is None else pack_split(*split)
    extra = {} if packed is None else {ENTRY: packed}
    path = with_suffix(base, ".pt2")
    with writing(path, ELSEWHERE), whole_file(path) as partial:
        torch.export.save(quantized.exported, partial, extra_files=extra)
    missing = split is not None and packed is None
    return path, "the test split is too large to be part of the .pt2" if missing else None


def write_onnx(base: Path, quantized: QuantizedModel) -> Path | str:
    """BASE.onnx, or why the network has no such form."""
    path = with_suffix(base, ".onnx")
    try:
        export_onnx(quantized, path)
    except (ModelError, ToolError) as error:
        return str(error)
    return path


def write_waivers(base: Path, layers: Sequence[str], today: date) -> Path:
    """BASE.waivers.toml: what `accelsim verify --waive` needs for layers that stay in float."""
    expires = today + timedelta(days=WAIVED_DAYS)
    entries = [
        f"[[waive]]\nlayer = {json.dumps(layer)}\ngolden = "
        '"host"\nreason = "left in float by accelsim quantize"\n'
        f"expires = {expires.isoformat()}\n"
        for layer in layers
    ]
    return _text(with_suffix(base, ".waivers.toml"), "\n".join(entries))


def write_report(base: Path, report: Mapping[str, Any], lines: Sequence[str]) -> None:
    """BASE.json and BASE.txt."""
    _text(with_suffix(base, ".json"), json.dumps(report, indent=1) + "\n")
    _text(with_suffix(base, ".txt"), "\n".join(lines) + "\n")


def with_suffix(base: Path, suffix: str) -> Path:
    """BASE with a suffix behind it, whatever dots it has."""
    return base.with_name(base.name + suffix)


def _own(base: Path) -> bool:
    """Whether the report of an earlier run is there."""
    try:
        found = json.loads(with_suffix(base, ".json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("schema") == SCHEMA


def _text(path: Path, content: str) -> Path:
    with writing(path, ELSEWHERE), whole_file(path) as partial:
        partial.write_text(content, encoding="utf-8")
    return path
