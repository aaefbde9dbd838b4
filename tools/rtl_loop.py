"""The loop of someone who edits one RTL module: `python -m tools.rtl_loop MODULE [ARGUMENTS]`.

What comes in: a module's name, and arguments for pytest. What goes out: its lint findings, its unit
tests' results, what the whole NPU makes of the committed vectors that touch it and of a layer of
each operator that does, and a list of what was not run. A module without a unit test of its own
is tested through the nearest modules that instantiate it. The NPU is built once for all of it.
"""

from __future__ import annotations

import difflib
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from accelsim import sources
from accelsim.artifacts import Backend
from accelsim.cosim.session import Cosim
from accelsim.errors import AccelsimError
from accelsim.spec.config import CONFIGS
from accelsim.vectors.case import Case, case_folders, read_case
from accelsim.vectors.replay import replay
from tools import rtl_lint
from tools.rtl_operators import operators_with, reach, run_layers, uses

ROOT = Path(__file__).resolve().parents[1]
CONFIG = "edge8"
TIME_LIMIT_SECONDS = 60.0
NOT_RUN = (
    "tests of other modules and random stalls of the memory: nox -s cosim",
    "the other configurations: nox -s verify -- zoo:digits-resnet --config base16, or wide32",
    "whole networks: nox -s verify",
    "synthesis: nox -s synth",
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


def right(cases: Sequence[Case], backend: Backend) -> bool:
    """Replay vectors, print a line for each, and tell whether all of them were right."""
    outcomes = [replay(case, backend) for case in cases]
    for outcome in outcomes:
        state = "right" if outcome.passed else f"WRONG: {outcome.first or outcome.error_code}"
        print(f"vector {outcome.case}: {outcome.compared} bytes, {state}", flush=True)
    return all(outcome.passed for outcome in outcomes)


def layers_right(instructions: tuple[str, ...], backend: Backend) -> bool:
    """Run a layer of each operator that has one of the instructions, print a line for each.

    True if all were right.
    """
    good = True
    for operator, elements, wrong in run_layers(instructions, CONFIGS[CONFIG], backend):
        good &= not wrong
        state = f"WRONG in {wrong}" if wrong else "right"
        print(f"layer {operator}: {elements} elements, {state}", flush=True)
    return good


def on_rtl(instructions: tuple[str, ...]) -> tuple[bool, str]:
    """Whether the NPU is right in vectors and layers with `instructions`; and what was left out.

    Raises RtlError, TimeLimitError or ToolError where it does not get that far.
    """
    folders = case_folders(sources.vectors_root())
    known = [read_case(path) for path in folders if path.parent.name == CONFIG]
    cases = [case for case in known if uses(case.opcode_mask, instructions)]
    with Cosim(CONFIGS[CONFIG], time_limit_seconds=TIME_LIMIT_SECONDS) as cosim:
        good = right(cases, cosim.launch)
        good &= layers_right(instructions, cosim.launch)
    return good, ", ".join(case.name for case in known if case not in cases)


def check(module: str, path: Path, rest: Sequence[str]) -> tuple[int, list[str]]:
    """Exit status of the steps, and what was not run."""
    lint = rtl_lint.main([str(path)])
    through, files = nearest_tests(ROOT / "rtl", ROOT / "tests" / "rtl", module)
    if not files:
        print(f"{module}: no test below tests/rtl names it or a module that uses it")
        return 1, ["unit tests: there are none", "vectors and layers"]
    print(f"{module}: testing through {', '.join(through)}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", *map(str, files), *rest]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        return 1, [f"vectors and layers, until {module}'s unit tests pass"]
    engine, instructions = reach(module)
    names = ", ".join(one.name for one in operators_with(instructions))
    print(f"{module}: {engine}; vectors and a layer of {names}", flush=True)
    try:
        good, left = on_rtl(instructions)
    except AccelsimError as error:
        print(f"{module}: {error}")
        return 1, ["the vectors and layers after that"]
    return int(bool(lint) or not good), [f"{CONFIG}'s vectors {left}: nox -s cosim"] if left else []


def main(arguments: Sequence[str]) -> int:
    """Check one module. Exit status: 0 clean, 1 findings, 2 no such module or tool."""
    if not arguments or arguments[0].startswith("-"):
        print("usage: nox -s rtl -- MODULE [pytest arguments]", file=sys.stderr)
        return 2
    module, *rest = arguments
    path = module_file(ROOT / "rtl", module)
    if path is None:
        known = sorted(found.stem for found in rtl_lint.hand_written(ROOT / "rtl"))
        near = ", ".join(difflib.get_close_matches(module, known, n=3)) or "none"
        print(f"no module {module} below rtl/; nearest: {near}", file=sys.stderr)
        print(f"modules: {', '.join(known)}", file=sys.stderr)
        return 2
    start = time.monotonic()
    try:
        status, left = check(module, path, rest)
    except AccelsimError as error:
        print(f"rtl: {error}", file=sys.stderr)
        return error.exit_code
    verdict = "FAILED" if status else "clean"
    print(f"{module}: {verdict} after {time.monotonic() - start:.0f} s. Not run:")
    for what in (*left, *NOT_RUN):
        print(f"- {what}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
