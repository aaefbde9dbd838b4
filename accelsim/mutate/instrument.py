"""Instrumented copies of the RTL: every site chooses, by one number, what it computes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from accelsim.files import whole_file
from accelsim.mutate.sites import Site

PACKAGE = "npu_mutant_pkg"
SETTER = "npu_mutant_select"  # C function of the executable
_PACKAGE_TEXT = f"""\
// Generated: the number of the planted bug that is switched on; 0 is none.
package {PACKAGE};
  int unsigned selected;
endpackage
"""
_SELECT = f"""
  import "DPI-C" function int unsigned npu_mutant_selected();
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {PACKAGE}::selected <= npu_mutant_selected();
  end

endmodule"""
_SETTER_TEXT = f"""\
// Generated: the number that the RTL takes over in reset.
static unsigned selected = 0;
extern "C" unsigned npu_mutant_selected(void) {{ return selected; }}
extern "C" void {SETTER}(unsigned number) {{ selected = number; }}
"""


def instrument(
    files: Sequence[Path], sites: Sequence[Site], folder: Path, top: str = "npu_top.sv"
) -> tuple[Path, ...]:
    """Write the copies to `folder`; returns them in compile order, the selector's package first.

    `files` are in compile order. `top` is the file whose module takes the number over in reset;
    C++ with the number's setter comes last. Files that need no change on disk are left alone.
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
    return (*written, _write(folder / "npu_mutant.cpp", _SETTER_TEXT))


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
    """Writes at once, so that a process beside this one never reads half a file."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        with whole_file(path) as partial:
            partial.write_text(text, encoding="utf-8")
    return path
