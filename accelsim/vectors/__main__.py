"""Checking and rewriting the committed vectors: `python -m accelsim.vectors`.

Without arguments every committed case is rebuilt in memory and compared with what is on disk, then
replayed on the simulator. `--update --reason TEXT` rewrites what differs, lists it, and keeps the
reason in `vectors/CHANGES.md`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import fields
from datetime import date
from pathlib import Path

import numpy as np

from accelsim.errors import AccelsimError, InputError
from accelsim.simulate import Simulator
from accelsim.sources import is_checkout, vectors_root
from accelsim.vectors.build import build_cases
from accelsim.vectors.case import Case, case_folders, read_case, write_case
from accelsim.vectors.replay import replay

ROOT = vectors_root()
LIMIT_BYTES = 20 << 20


def main(arguments: list[str]) -> int:
    """Exit code 0 if all is current and right, 1 if not, 2 for bad usage or a damaged case."""
    parser = argparse.ArgumentParser(prog="vectors", description=__doc__)
    parser.add_argument("--update", action="store_true", help="rewrite what differs")
    parser.add_argument("--reason", help="why, for CHANGES.md")
    options = parser.parse_args(arguments)
    if options.update != bool(options.reason):
        parser.error("--update and --reason TEXT go together")
    try:
        if options.update and not is_checkout():
            raise InputError(f"the vectors in {ROOT} are installed: update them in a checkout.")
        return _update(options.reason) if options.update else _check()
    except AccelsimError as error:
        print(f"vectors: {error}", file=sys.stderr)
        return error.exit_code


def _built() -> dict[str, Case]:
    return {f"{case.config.name}/{case.name}": case for case in build_cases()}


def changed(built: dict[str, Case], root: Path) -> dict[str, str]:
    """Case → what differs on disk: absent, the fields that changed, or not built any more."""
    result = {}
    for key, case in built.items():
        if not (root / key / "case.json").is_file():
            result[key] = "new"
            continue
        old = read_case(root / key)
        names = [
            f.name
            for f in fields(Case)
            if not np.array_equal(getattr(old, f.name), getattr(case, f.name))
        ]
        if names:
            result[key] = "changed: " + ", ".join(names)
    on_disk = [str(p.parent.relative_to(root)) for p in root.glob("*/*/case.json")]
    result |= {key: "no longer built" for key in on_disk if key not in built}
    return result


def _check() -> int:
    wrong = changed(_built(), ROOT)
    for key, what in wrong.items():
        print(f"{key}: {what}; see --update")
    failed = 0
    folders = case_folders(ROOT)
    for folder in folders:
        case = read_case(folder)
        outcome = replay(case, Simulator(case.config).run)
        if not outcome.passed:
            failed += 1
            print(
                f"{folder.parent.name}/{case.name}: {outcome.mismatches} bytes differ; "
                f"{outcome.first}, error code {outcome.error_code}"
            )
    print(
        f"{len(folders)} vectors: {len(folders) - failed} replayed rightly on the simulator, "
        f"{failed} failed, {len(wrong)} out of date"
    )
    return 1 if wrong or failed else 0


def _update(reason: str) -> int:
    built = _built()
    wrong = changed(built, ROOT)
    for key, what in wrong.items():
        print(f"{key}: {what}")
        if key in built:
            write_case(built[key], ROOT / key)
        else:
            shutil.rmtree(ROOT / key)
    size = sum(p.stat().st_size for p in ROOT.rglob("*") if p.is_file())
    print(f"{len(wrong)} of {len(built)} vectors rewritten, {size / 1e6:.1f} MB in all")
    if size > LIMIT_BYTES:
        print(f"vectors: {size} bytes exceed the limit of {LIMIT_BYTES}", file=sys.stderr)
        return 1
    if wrong:
        lines = "".join(f"- {key}: {what}\n" for key, what in wrong.items())
        log = ROOT / "CHANGES.md"
        old = log.read_text(encoding="utf-8") if log.is_file() else "# Changes of the vectors\n"
        log.write_text(f"{old}\n## {date.today()}: {reason}\n\n{lines}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
