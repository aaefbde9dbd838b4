"""Structural checks as pure functions: a tree comes in, sentences about what is wrong go out.

`Tree` is a root folder and the tracked files in it, so that a test can plant a wrong tree.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

# Rooms in the order of the data flow. A room imports rooms of a lower rank only.
RANKS = {
    "__init__": 0,
    "errors": 0,
    "discovery": 1,
    "files": 1,
    "artifacts": 1,
    "spec": 1,
    "sources": 1,
    "zoo": 2,
    "importer": 3,
    "metrics": 4,
    "quantize": 4,
    "calibrate": 5,
    "legalize": 5,
    "partition": 6,
    "schedule": 7,
    "emit": 8,
    "simulate": 9,
    "cosim": 9,
    "reference": 9,
    "compare": 10,
    "programs": 10,
    "report": 11,
    "codegen": 12,
    "doctor": 12,
    "advise": 13,
    "ops": 13,
    "testbench": 13,
    "vectors": 13,
    "extend": 14,
    "mutate": 14,
    "peers": 14,
    "verify": 15,
    "diagnose": 16,
    "pytest_plugin": 17,
    "cli": 17,
    "__main__": 18,
}
FRAMEWORKS = {
    *("tvm", "tvm_ffi", "torch", "torchao", "onnx", "onnxruntime"),
    *("ai_edge_litert", "tflite"),
}
MAY_IMPORT_FRAMEWORKS = {
    *("zoo", "importer", "quantize", "calibrate", "legalize", "partition"),
    *("reference", "codegen", "ops", "peers", "extend", "verify", "cli", "vectors", "advise"),
    "diagnose",
}
REFERENCE_SEES = {"errors", "discovery", "artifacts", "spec", "importer", "quantize", "zoo"}
SPEC_SEES = {"__init__", "errors"}
LINE_LIMIT = 400
MAY_RENAME = ("accelsim/files.py", "accelsim/cosim/build.py")
WORD = re.compile(r"\w+")
# Split, so that this file does not name what it looks for.
HOSTS = "|".join(
    (
        *("pypi" + r"\.org", "pypi" + r"\.python", "python" + "hosted", "npmjs" + r"\.org"),
        *("debian" + r"\.org", "proxy" + r"\.golang", "arti" + "factory", "--find" + "-links"),
        *("--extra" + "-index", "--index" + "-url"),
    )
)
MACHINE = re.compile(rf"(?<![\w./~-])/(?:work|tmp|root|home|opt)/\w|{HOSTS}")
CPU_INDEX = "https://download.pytorch.org/whl/cpu"  # the README may name it


@dataclass(frozen=True, slots=True)
class Tree:
    """A root folder and the files in it that are under version control, relative to it."""

    root: Path
    files: tuple[Path, ...]

    def read(self, path: Path) -> str:
        """Text of a file of the tree."""
        return (self.root / path).read_text(encoding="utf-8")

    def named(self, *suffixes: str) -> Iterator[Path]:
        """Files with one of the suffixes."""
        return (path for path in self.files if path.suffix in suffixes)


def tracked_tree(root: Path) -> Tree:
    """Files that git tracks or would track, as far as they exist."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    names = sorted({name for name in listing.split("\0") if name and (root / name).is_file()})
    return Tree(root, tuple(Path(name) for name in names))


def room_of(path: Path) -> str:
    """Room of a file below `accelsim/`."""
    return path.with_suffix("").parts[1]


def imported_modules(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """(line, dotted module) of every import in a file, those inside functions included."""
    package = path.with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*above, *([node.module] if node.module else [])))
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def wrong_imports(tree: Tree) -> Iterator[str]:
    """Imports that go against the order of the rooms, and frameworks outside their rooms."""
    for path in tree.named(".py"):
        if path.parts[0] != "accelsim":
            continue
        room = room_of(path)
        if room not in RANKS:
            yield f"{path}: the room {room} has no rank in tests/structure/tree.py"
            continue
        for line, module in imported_modules(path, tree.read(path)):
            problem = wrong_import(room, module)
            if problem:
                yield f"{path}:{line}: {problem}"


def wrong_import(room: str, module: str) -> str | None:
    """What is wrong with one import of `module` in `room`, or None."""
    top, *rest = module.split(".")
    if top in FRAMEWORKS and room not in MAY_IMPORT_FRAMEWORKS:
        return f"{room} must not import {top}"
    if top != "accelsim":
        return None
    other = rest[0] if rest and rest[0] in RANKS else "__init__"
    if room == "reference" and ".".join(rest[:2]) == "spec.arithmetic":
        return "reference must not import the specification's arithmetic"
    if room == "spec" and other not in {*SPEC_SEES, room}:
        return f"the specification imports no room, and imports {other}"
    if room == "reference" and other not in {*REFERENCE_SEES, room, "__init__"}:
        return f"reference starts from the QDQ graph and must not import {other}"
    if other != room and RANKS[other] >= RANKS[room] > 1:
        return f"{room} imports {other}, which does not come before it"
    if room == "artifacts" and other == "spec":
        return None
    low = ("errors", "artifacts", "__init__", "sources")
    if room in low and other != room and RANKS[other] >= 1:
        return f"{room} must not import {other}"
    return None


def long_files(tree: Tree) -> Iterator[str]:
    """Python and SystemVerilog files above the line limit, generated ones excepted."""
    for path in tree.named(".py", ".sv", ".svh", ".cpp", ".h"):
        lines = tree.read(path).count("\n")
        if lines > LINE_LIMIT and "gen" not in path.parts:
            yield f"{path} has {lines} lines, the limit is {LINE_LIMIT}"


def own_renames(tree: Tree) -> Iterator[str]:
    """Files put in place by hand, where `accelsim.files` is to do it."""
    for path in tree.named(".py"):
        if path.parts[0] != "accelsim" or str(path) in MAY_RENAME:
            continue
        for node in ast.walk(ast.parse(tree.read(path))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name, one = node.func.attr, len(node.args) == 1 and not node.keywords
                if name in ("rename", "mkstemp") or (name == "replace" and one):
                    yield f"{path}:{node.lineno}: {name}: write by accelsim.files"


def wrong_file_list(tree: Tree) -> Iterator[str]:
    """RTL sources that `rtl/files.f` names never or twice, or that are not there."""
    design = {
        path.relative_to("rtl").as_posix()
        for path in tree.named(".sv")
        if path.parts[0] == "rtl" and path.parts[1] not in ("gen", "tb")
    }
    lists = [path.as_posix() for path in tree.files if path.name.endswith((".f", ".flist"))]
    if lists != ["rtl/files.f"]:
        if design or lists:
            yield f"one list of RTL files is wanted, rtl/files.f; found: {lists}"
        return
    lines = (line.split("//")[0].strip() for line in tree.read(Path("rtl/files.f")).splitlines())
    named = [line for line in lines if line]
    for name in sorted({*named, *design}):
        if named.count(name) != 1 or name not in design:
            where = "exists" if name in design else "does not exist"
            yield f"rtl/files.f names {name} {named.count(name)} times, and it {where}"


WAIVER = re.compile(r'lint_off -rule (\w+) -file "([^"]+)"|waive --rule=(\S+) --location="([^"]+)"')


def wrong_waivers(tree: Tree) -> Iterator[str]:
    """Lint waivers without file, rule or reason, and waivers hidden in RTL sources."""
    for path in tree.named(".vlt", ".waiver"):
        before = ""
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            if line.startswith(("lint_off", "waive ")):
                yield from wrong_waiver(tree, f"{path}:{number}", line, before)
            before = line
    for path in tree.named(".sv", ".svh"):
        design = path.parts[0] == "rtl" and path.parts[1] != "tb"
        if design and re.search(r"lint_off|verilog_lint", tree.read(path)):
            yield f"{path} waives a rule; waivers stand in rtl/lint.vlt and rtl/verible.waiver"


def wrong_waiver(tree: Tree, where: str, line: str, before: str) -> Iterator[str]:
    """What is wrong with one waiver, given the line before it."""
    found = WAIVER.match(line)
    if found is None:
        yield f"{where}: a waiver names a rule and a file: {line}"
        return
    name = (found[2] or found[4]).replace("\\", "")
    pattern = f"*{name.lstrip('*')}"
    if name in ("*", "*.sv") or not any(fnmatch(f"/{path}", pattern) for path in tree.files):
        yield f"{where}: {name} names no file of the repository, or every one"
    if not before.startswith(("//", "#", "lint_off", "waive ")):
        yield f"{where}: the reason is missing on the line above: {line}"


def dead_paths(tree: Tree, document: Path) -> Iterator[str]:
    """Paths of the repository that a document names and that are not there."""
    text = tree.read(document)
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
    quoted = re.findall(r"`([\w.\-]+(?:/[\w.\-]*)+)`", text)
    for name in sorted({*links, *quoted}):
        near = (tree.root / name, tree.root / document.parent / name)
        first = name.split("/")[0]
        word = "/" in name and "." in first[1:]  # no folder is named so: a schema, a host
        placeholder = first == "build" or first.isupper()  # DIR: a folder of the user's
        if not placeholder and not word and not any(path.exists() for path in near):
            yield f"{document} names {name}, which does not exist"


def machine_traces(tree: Tree) -> Iterator[str]:
    """Paths of one machine and hosts of package registries in any text file."""
    for path in tree.files:
        try:
            lines = tree.read(path).splitlines()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(lines, 1):
            shown = line.replace(CPU_INDEX, "") if path.name == "README.md" else line
            found = MACHINE.search(shown)
            if found and path.name != "LICENSE":
                yield f"{path}:{number}: {found[0]!r}"


def undocumented(tree: Tree) -> Iterator[str]:
    """Public modules, functions, classes and methods of the package without a docstring."""
    for path in tree.named(".py"):
        if path.parts[0] not in ("accelsim", "tools"):
            continue
        module = ast.parse(tree.read(path))
        if not ast.get_docstring(module):
            yield f"{path}:1: the module has no docstring"
        for node in public_definitions(module):
            if not ast.get_docstring(node):
                yield f"{path}:{node.lineno}: {node.name} has no docstring"


def unused_names(tree: Tree) -> Iterator[str]:
    """Names at the top of the package's modules that occur nowhere else, hooks of pytest apart."""
    words = Counter(
        word for path in tree.named(".py", ".toml", ".md") for word in WORD.findall(tree.read(path))
    )
    for path in tree.named(".py"):
        if path.parts[0] != "accelsim":
            continue
        for node in ast.parse(tree.read(path)).body:
            for name in _defined(node):
                if words[name] == 1 and not name.startswith(("pytest_", "test_")):
                    yield f"{path}:{node.lineno}: nothing uses {name}"


def _defined(node: ast.stmt) -> Iterator[str]:
    """Names that a statement at the top of a module gives a meaning, imports apart."""
    if isinstance(node, Definition):
        yield node.name
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    for target in targets:
        yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def public_definitions(parent: ast.Module | ast.ClassDef) -> Iterator[Definition]:
    """Functions, classes and methods that a user sees; torch documents `forward`."""
    for node in parent.body:
        hidden = isinstance(node, Definition) and (node.name[0] == "_" or node.name == "forward")
        if isinstance(node, Definition) and not hidden:
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public_definitions(node)
