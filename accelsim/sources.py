"""Where the SystemVerilog sources and the vectors are, in a checkout or an installed wheel.

What comes in: the location of this package. What goes out: paths. A checkout, or an editable
install of it, has `rtl/` and `vectors/` beside the package; a wheel carries the same trees in
`accelsim/_sources`, to be read and never written. This module must not know what they contain.
"""

from __future__ import annotations

import os
from pathlib import Path

from accelsim.errors import InputError, ToolError

PACKAGE = Path(__file__).resolve().parent
LIST = "files.f"
PACKAGE_FILE = "npu_pkg.sv"


def is_checkout() -> bool:
    """True where the package lies in a checkout, whose files may be rewritten."""
    return (PACKAGE.parent / "pyproject.toml").is_file()


def vectors_root() -> Path:
    """Folder of the committed vectors; the checkout's, which need not exist, where none is."""
    carried = PACKAGE / "_sources" / "vectors"
    beside = PACKAGE.parent / "vectors"
    return carried if carried.is_dir() and not is_checkout() else beside


def rtl_root() -> Path:
    """Folder of the RTL. Raises ToolError where neither a checkout nor a wheel provides it."""
    for root in (PACKAGE.parent / "rtl", PACKAGE / "_sources" / "rtl"):
        if (root / LIST).is_file():
            return root
    raise ToolError(
        f"the RTL is missing: no rtl/{LIST} beside {PACKAGE} nor in it; install accelsim again."
    )


def listed_files(root: Path) -> tuple[Path, ...]:
    """Sources named by `root/files.f`: a path relative to it a line, `//` starts a comment."""
    lines = (root / LIST).read_text(encoding="utf-8").splitlines()
    names = [line.split("//", 1)[0].strip() for line in lines]
    return tuple(root / name for name in names if name)


def rtl_files(config_name: str, root: Path | None = None) -> tuple[Path, ...]:
    """Sources in compile order, the configuration's generated package first.

    Raises InputError where no package was generated for `config_name`.
    """
    base = rtl_root() if root is None else root
    package = base / "gen" / config_name / PACKAGE_FILE
    if not package.is_file():
        known = ", ".join(sorted(p.parent.name for p in base.glob(f"gen/*/{PACKAGE_FILE}")))
        raise InputError(f"configuration {config_name} has no {package}; generated: {known}.")
    return (package, *listed_files(base))


def build_root() -> Path:
    """Folder for what runs leave behind: `build/` of a checkout, a cache in the home otherwise."""
    if is_checkout():
        return PACKAGE.parent / "build"
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "accelsim"
