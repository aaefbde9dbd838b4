"""Generated files: what is generated from the tables, and whether the committed files are current.

What comes in: the specification. What goes out: a mapping of repository paths to texts. Each file
carries a hash of the text that follows its first lines, so that an edit by hand is seen as well.
"""

from __future__ import annotations

from pathlib import Path

from accelsim.spec.config import CONFIGS, Config
from accelsim.spec.generate.c_header import c_header
from accelsim.spec.generate.manual import manual
from accelsim.spec.generate.systemverilog import package

ROOT = Path(__file__).resolve().parents[3]


def generated_files() -> dict[str, str]:
    """Every committed generated file: path relative to the repository → its text."""
    files = {"docs/isa.md": manual()}
    for config in CONFIGS.values():
        files.update(config_files(config))
    return files


def config_files(config: Config) -> dict[str, str]:
    """The two files that hardware and drivers of one configuration include."""
    return {
        f"rtl/gen/{config.name}/npu_pkg.sv": package(config),
        f"rtl/gen/{config.name}/npu.h": c_header(config),
    }


def stale(root: Path = ROOT) -> list[str]:
    """Paths whose committed text differs from what the tables give, missing files included."""
    result = []
    for path, text in generated_files().items():
        file = root / path
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            result.append(path)
    return result


def write(root: Path = ROOT) -> list[str]:
    """Write every stale file; returns the paths written."""
    changed = stale(root)
    files = generated_files()
    for path in changed:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(files[path], encoding="utf-8")
    return changed
