"""`python -m accelsim.spec.generate [--check]`: write the generated files, or fail if stale."""

from __future__ import annotations

import sys

from accelsim.spec.generate import stale, write


def main(arguments: list[str]) -> int:
    """Exit code 0 if current (or written), 1 if `--check` found stale files, 2 for bad usage."""
    if arguments not in ([], ["--check"]):
        print("usage: python -m accelsim.spec.generate [--check]", file=sys.stderr)
        return 2
    if arguments:
        for path in (old := stale()):
            print(f"{path} does not match the specification: run nox -s gen", file=sys.stderr)
        return 1 if old else 0
    for path in write():
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
