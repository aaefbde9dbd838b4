"""Lint and format the SystemVerilog: `python -m tools.rtl_lint [--format] [FILE ...]`.

What comes in: `rtl/` with its one file list and a generated package for each configuration. What
goes out: the tools' findings, and exit status 1 where there is one. Verilator reads every
configuration whole (or, for FILE arguments, each module that is named); verible goes file by file.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from accelsim import sources
from accelsim.cosim.tools import find_tool, find_toolchain

RTL = Path(__file__).resolve().parents[1] / "rtl"
WAIVERS = "lint.vlt"
FORMAT = (
    "--failsafe_success=false",
    "--port_declarations_indentation=indent",
    "--named_port_indentation=indent",
    "--formal_parameters_indentation=indent",
    "--named_parameter_indentation=indent",
)


def hand_written(root: Path) -> tuple[Path, ...]:
    """Every SystemVerilog file under `root` that no generator wrote, test benches included."""
    return tuple(p for p in sorted(root.rglob("*.sv")) if p.relative_to(root).parts[0] != "gen")


def design(root: Path) -> tuple[Path, ...]:
    """Sources of the design: those of the file list, then what it misses, packages first."""
    listed = sources.listed_files(root) if (root / sources.LIST).is_file() else ()
    found = [p for p in hand_written(root) if p.relative_to(root).parts[0] != "tb"]
    missed = sorted(set(found) - set(listed), key=lambda p: (not p.stem.endswith("_pkg"), p))
    return (*listed, *missed)


def configurations(root: Path) -> tuple[str, ...]:
    """Names of the configurations that have a generated package."""
    return tuple(sorted(p.parent.name for p in root.glob(f"gen/*/{sources.PACKAGE_FILE}")))


def code(path: Path) -> str:
    """Text of a source without its comments."""
    return re.sub(r"//.*|/\*.*?\*/", "", path.read_text(encoding="utf-8"))


def top_modules(files: Sequence[Path]) -> tuple[str, ...]:
    """Modules that no other file of the list names: one for a finished design."""
    texts = {path: code(path) for path in files}
    modules = [p.stem for p, text in texts.items() if re.search(rf"\bmodule\s+{p.stem}\b", text)]
    return tuple(
        name
        for name in modules
        if not any(re.search(rf"\b{name}\b", t) for p, t in texts.items() if p.stem != name)
    )


def verilator_command(root: Path, config: str, top: str) -> list[str]:
    """Command that lints `top` in one configuration with every warning on."""
    tools = find_toolchain()
    command = [str(tools.perl), str(tools.verilator), "--lint-only", "-Wall", "--assert"]
    command += ["--quiet", "--timing", "--top-module", top, *waiver_files(root)]
    package = root / "gen" / config / sources.PACKAGE_FILE
    return [*command, str(package), *map(str, design(root))]


def waiver_files(root: Path) -> list[str]:
    """Verilator's waiver file, where there is one."""
    return [str(root / WAIVERS)] if (root / WAIVERS).is_file() else []


def verible_lint_command(root: Path, files: Sequence[Path]) -> list[str]:
    """Command that checks the style rules of `root/verible.rules`."""
    command = [str(find_tool("verible-verilog-lint")), f"--rules_config={root / 'verible.rules'}"]
    if (root / "verible.waiver").is_file():
        command.append(f"--waiver_files={root / 'verible.waiver'}")
    return [*command, *map(str, files)]


def verible_format_command(files: Sequence[Path], *, write: bool) -> list[str]:
    """Command that formats, or checks the format."""
    mode = ["--inplace"] if write else ["--inplace", "--verify"]
    return [str(find_tool("verible-verilog-format")), *FORMAT, *mode, *map(str, files)]


def commands(root: Path, chosen: Sequence[Path], *, write: bool) -> list[list[str]]:
    """All commands of one run, in order. `chosen` empty means every file."""
    files = tuple(chosen) or hand_written(root)
    if not files:
        return []
    formatting = verible_format_command(files, write=write)
    if write:
        return [formatting]
    generated = tuple(root / "gen" / name / sources.PACKAGE_FILE for name in configurations(root))
    plan = [formatting, verible_lint_command(root, (*files, *generated))]
    known = design(root)
    wanted = [p.stem for p in chosen if p in known] if chosen else top_modules(known)
    plan += [verilator_command(root, c, top) for c in configurations(root) for top in wanted]
    return plan


def main(arguments: Sequence[str]) -> int:
    """Run every command, print what it says, and return 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--format", action="store_true", help="apply the format and check nothing")
    parser.add_argument("file", nargs="*", type=Path, help="only these files")
    options = parser.parse_args(arguments)
    chosen = [path.resolve() for path in options.file]
    plan = commands(RTL, chosen, write=options.format)
    environment = find_toolchain().environment(dict(os.environ)) if plan else None
    results = [subprocess.run(command, env=environment, check=False).returncode for command in plan]
    tops = ", ".join(sorted({c[c.index("--top-module") + 1] for c in plan if "--top-module" in c}))
    print(
        f"SystemVerilog: {len(chosen or hand_written(RTL))} files, configurations "
        f"{', '.join(configurations(RTL)) or 'none'}, linted from {tops or 'no top module'}: "
        f"{'clean' if not any(results) else 'findings above'}"
    )
    return 1 if any(results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
