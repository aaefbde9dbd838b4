"""Instrumented copies of the RTL: every site chooses, by one number, what it computes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from accelsim.mutate.sites import Site

PACKAGE = "npu_mutant_pkg"
PLUSARG = "npu_mutant"
_PACKAGE_TEXT = f"""\
// Generated: the number of the planted bug that is switched on; 0 is none.
package {PACKAGE};
  int unsigned selected;
endpackage
"""
_SELECT = f"""
  initial begin
    if ($value$plusargs("{PLUSARG}=%d", {PACKAGE}::selected) == 0) {PACKAGE}::selected = 0;
  end

endmodule"""


def instrument(
    files: Sequence[Path], sites: Sequence[Site], folder: Path, top: str = "npu_top.sv"
) -> tuple[Path, ...]:
    """Write the copies to `folder`; returns them in compile order, the selector's package first.

    `files` are in compile order. `top` is the file whose module reads the plusarg. Files that need
    no change on disk are left alone, so that a build is reused.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = [_write(folder / f"{PACKAGE}.sv", _PACKAGE_TEXT)]
    for path in files:
        source = path.read_bytes()
        text = mutated_text(source, [s for s in sites if s.file == path.name]).decode()
        if path.name == top:
            head, end, rest = text.rpartition("\nendmodule")
            text = head + _SELECT + rest if end else text
        written.append(_write(folder / path.name, text))
    return tuple(written)


def mutated_text(text: bytes, sites: Sequence[Site]) -> bytes:
    """`text` with every site replaced, inner sites before the outer ones that hold them."""
    return _rewrite(text, 0, len(text), sorted(sites, key=lambda s: (s.start, -s.end)))


def _rewrite(text: bytes, start: int, end: int, sites: Sequence[Site]) -> bytes:
    """The text of [start, end); `sites` lie within it, outer before inner."""
    parts, at, i = [], start, 0
    while i < len(sites):
        site = sites[i]
        inside = [s for s in sites[i + 1 :] if s.end <= site.end and s.start < site.end]
        parts.append(text[at : site.start])
        original = _rewrite(text, site.start, site.end, inside)
        choice = f"{PACKAGE}::selected == 32'd{site.number}"
        parts.append(f"(({choice}) ? ({site.mutated}) : (".encode() + original + b"))")
        at, i = site.end, i + 1 + len(inside)
    parts.append(text[at:end])
    return b"".join(parts)


def _write(path: Path, text: str) -> Path:
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    return path


def plusargs(site: Site | None) -> tuple[str, ...]:
    """What switches a site on in a co-simulation of the instrumented RTL."""
    return () if site is None else (f"+{PLUSARG}={site.number}",)
