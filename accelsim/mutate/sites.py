"""Sites: expressions of the RTL that can be made wrong, found by their syntax.

A site is a binary expression, or a widening cast of a signed value, in an assignment, a procedural
block or a function. Expressions that must be constant (dimensions, parameters, replications, case
labels, loop headers, generate conditions) and assertions are left alone. Engine and kind follow
from the file and from the names in the expression, so that a draw can ask for one of each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelsim.errors import ToolError

KINDS = ("address", "sign", "rounding", "semaphore", "count", "logic")
ENGINE_PREFIXES = (
    ("npu_load", "load"),
    ("npu_dma", "load"),  # the store DMA has them too
    ("npu_store", "store"),
    ("npu_matrix", "matrix"),
    ("npu_vector", "vector"),
    ("npu_fp", "vector"),
    ("npu_scale", "vector"),
    ("npu_requant", "vector"),
    ("npu_rows", "vector"),
    ("npu_tab_mem", "vector"),
)
# Operator → its replacement, for arithmetic, order and logic.
SWAPS = {
    "+": "-",
    "-": "+",
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "&&": "||",
    "||": "&&",
    "&": "|",
    "|": "&",
    "<<": ">>",
    ">>": "<<",
}
CONSTANT_PARENTS = (
    "ParameterDeclaration",
    "SimpleRangeSelect",
    "AscendingRangeSelect",
    "DescendingRangeSelect",
    "RangeDimensionSpecifier",
    "VariableDimension",
    "ReplicationExpression",
    "MultipleConcatenationExpression",
    "CaseGenerate",
    "ConcurrentAssertionStatement",
    "ConcurrentAssertionMember",
    "AssertPropertyStatement",
    "ImmediateAssertStatement",
    "ImmediateAssertionMember",
    "PropertyDeclaration",
    "EventControlWithExpression",
    "TypedefDeclaration",
    "HierarchicalInstance",
)
# Constructs whose heads must stay as they are, and the parts that are no head.
BODIES = {
    "ForLoopStatement": ("statement",),
    "LoopGenerate": ("block",),
    "IfGenerate": ("block", "elseClause"),
    "StandardCaseItem": ("clause",),
}
PLACES = ("ContinuousAssign", "AlwaysCombBlock", "AlwaysFFBlock", "FunctionDeclaration")
VARIABLE = re.compile(r"\b[a-z][a-z0-9_]*\b")
WIDENED = re.compile(r"(\w+)'\(signed'(\(.*\))\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Site:
    """One place and what is planted there. `start` and `end` are byte offsets."""

    number: int  # from 1: 0 switches every bug off
    file: str
    line: int
    start: int
    end: int
    original: str
    mutated: str
    engine: str
    kind: str

    def __str__(self) -> str:
        """`file:line original → mutated`."""
        short = " ".join(self.original.split()), " ".join(self.mutated.split())
        return f"{self.file}:{self.line} {short[0]} → {short[1]}"


def find_sites(files: Sequence[Path]) -> tuple[Site, ...]:
    """All sites in order of file and place. Raises ToolError without pyslang."""
    try:
        from pyslang.syntax import SyntaxTree
    except ImportError:
        raise ToolError("pyslang is missing, which finds mutation sites: install it") from None
    sites: list[Site] = []
    for path in files:
        text = path.read_bytes()
        found: list[Any] = []

        def visit(node: Any, found: list[Any] = found) -> None:
            binary = hasattr(node, "operatorToken") and hasattr(node, "left")
            if binary or str(node.kind) == "SyntaxKind.CastExpression":
                found.append(node)

        tree = SyntaxTree.fromText(
            text.decode(), path.name
        )  # owns the nodes: keep it as long as them
        tree.root.visit(visit)
        for node in found:
            site = _site(node, path.name, text, len(sites) + 1)
            if site is not None:
                sites.append(site)
    return tuple(sites)


def _site(node: Any, file: str, text: bytes, number: int) -> Site | None:
    start, end = node.sourceRange.start.offset, node.sourceRange.end.offset
    original = text[start:end].decode()
    operator = node.operatorToken.valueText if hasattr(node, "operatorToken") else "signed"
    mutated = _widened(original) if operator == "signed" else _swapped(node, operator, text)
    if mutated is None or not _mutable(node) or text[end : end + 2].startswith(b"'("):
        return None
    return Site(
        number=number,
        file=file,
        line=text.count(b"\n", 0, start) + 1,
        start=start,
        end=end,
        original=original,
        mutated=mutated,
        engine=_engine(file),
        kind=_kind(file, operator, original),
    )


def _widened(original: str) -> str | None:
    """A signed value widened with zeros; it stays signed, so that the choice does."""
    found = WIDENED.fullmatch(original)
    return f"signed'({found[1]}'(unsigned'{found[2]}))" if found else None


def _swapped(node: Any, operator: str, text: bytes) -> str | None:
    """A binary expression with another operator."""
    if operator not in SWAPS or "Assignment" in str(node.kind):
        return None
    start, end = node.sourceRange.start.offset, node.sourceRange.end.offset
    left = text[start : node.left.sourceRange.end.offset].decode()
    right = text[node.right.sourceRange.start.offset : end].decode()
    return f"{left} {SWAPS[operator]} {right}" if _variables(left) else None


def _variables(text: str) -> list[str]:
    """Names that are no constants: constants are CamelCase or upper case here."""
    return [name for name in VARIABLE.findall(text) if not name.endswith("_pkg")]


def _mutable(node: Any) -> bool:
    placed = False
    while node.parent is not None:
        child, node = node, node.parent
        kind = str(node.kind).removeprefix("SyntaxKind.")
        if kind in BODIES and child not in (getattr(node, name, None) for name in BODIES[kind]):
            return False
        if kind in CONSTANT_PARENTS:
            return False
        if kind in PLACES:
            placed = True
    return placed


def _engine(file: str) -> str:
    for prefix, engine in ENGINE_PREFIXES:
        if file.startswith(prefix):
            return engine
    return "control"


def _kind(file: str, operator: str, expression: str) -> str:
    words = expression.lower()
    if file.startswith("npu_semaphores") or re.search(
        r"(?:take|give|tokens)_i|\.(?:take|give)|preset", words
    ):
        return "semaphore"
    if operator == "signed" or re.search(r"zero_point|sign(?!ed)", words):
        return "sign"
    if file.startswith(("npu_fp", "npu_requant", "npu_scale")):
        return "rounding"
    if operator in ("+", "-") and re.search(r"row|base|addr|stride|beat|offset|origin", words):
        return "address"
    if operator in ("+", "-", "<", "<=", ">", ">=") or re.search(r"last|count|index|left", words):
        return "count"
    return "logic"
