"""The loop of someone who edits one RTL module: `python -m tools.rtl_loop MODULE [ARGUMENTS]`.

What comes in: a module's name, and arguments for pytest. What goes out: its lint findings, its unit
tests' results, and a last line that says what was not run. A module without a unit test of its own
is tested through the nearest modules that instantiate it.
"""

from __future__ import annotations

import difflib
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools import rtl_lint

ROOT = Path(__file__).resolve().parents[1]
NOT_RUN = (
    "other modules' tests, whole programs, the vectors, the other configurations' layers: "
    "nox -s cosim, vectors, verify"
)


def module_file(rtl: Path, module: str) -> Path | None:
    """File of a hand-written module below `rtl`, or None."""
    return next((path for path in rtl_lint.hand_written(rtl) if path.stem == module), None)


def mentions(path: Path, names: set[str]) -> bool:
    """True where a file names one of `names` as a word, comments of RTL sources apart."""
    text = rtl_lint.code(path) if path.suffix == ".sv" else path.read_text(encoding="utf-8")
    return any(re.search(rf"\b{re.escape(name)}\b", text) for name in names)


def unit_tests(tests: Path, module: str) -> tuple[Path, ...]:
    """Test files below `tests` that name the module, or a wrapper of it that lies there."""
    wrappers = {path.stem for path in tests.rglob("*.sv") if mentions(path, {module})}
    names = {module, *wrappers}
    return tuple(path for path in sorted(tests.rglob("test_*.py")) if mentions(path, names))


def nearest_tests(rtl: Path, tests: Path, module: str) -> tuple[tuple[str, ...], tuple[Path, ...]]:
    """The modules whose tests cover `module` most closely, and these tests."""
    level, seen = {module}, {module}
    while level:
        found = {path for name in level for path in unit_tests(tests, name)}
        if found:
            return tuple(sorted(level)), tuple(sorted(found))
        files = rtl_lint.hand_written(rtl)
        level = {p.stem for p in files if p.stem not in seen and mentions(p, level)}
        seen |= level
    return (), ()


def main(arguments: Sequence[str]) -> int:
    """Lint and test one module. Exit status: 0 clean, 1 findings, 2 no such module."""
    if not arguments or arguments[0].startswith("-"):
        print("usage: nox -s rtl -- MODULE [pytest arguments]", file=sys.stderr)
        return 2
    module, *rest = arguments
    rtl, tests = ROOT / "rtl", ROOT / "tests" / "rtl"
    path = module_file(rtl, module)
    if path is None:
        known = [found.stem for found in rtl_lint.hand_written(rtl)]
        near = ", ".join(difflib.get_close_matches(module, known, n=3) or sorted(known))
        print(f"no module {module} below rtl/; nearest: {near}", file=sys.stderr)
        return 2
    lint = rtl_lint.main([str(path)])
    through, files = nearest_tests(rtl, tests, module)
    if not files:
        print(f"{module}: no test below tests/rtl names it or a module that uses it")
        return 1
    print(f"{module}: testing through {', '.join(through)}")
    command = [sys.executable, "-m", "pytest", "-q", *map(str, files), *rest]
    test = subprocess.run(command, cwd=ROOT, check=False).returncode
    verdict = "clean" if not lint and not test else "FAILED"
    print(f"{module}: {verdict}. Not run: {NOT_RUN}")
    return 1 if lint or test else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
