"""`python -m bench [--quick] [--json FILE] [--config NAME] [--no-rtl] [--seed N]`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main(arguments: Sequence[str]) -> int:
    """Measure and print. Exit status 0, or 2 for bad input or a tool that failed."""
    parser = argparse.ArgumentParser(prog="bench", description="Speed and utilization.")
    parser.add_argument("--quick", action="store_true", help="a few layers, once each")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers")
    parser.add_argument("--config", default="base16", help="configuration (default: base16)")
    parser.add_argument("--no-rtl", action="store_true", help="leave the RTL out")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    for variable in ONE_THREAD:  # read by BLAS when NumPy is imported
        os.environ.setdefault(variable, "1")

    from accelsim.errors import AccelsimError
    from bench.run import run

    try:
        run(options.config, options.seed, options.quick, not options.no_rtl, options.json)
    except AccelsimError as error:
        print(f"bench: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"bench: cannot write {options.json}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
