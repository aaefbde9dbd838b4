"""The repository keeps its structure, and each check has been seen to fail on a planted tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.structure import tree

ROOT = Path(__file__).parents[2]
Check = Callable[[tree.Tree], Iterator[str]]


def readme_paths(where: tree.Tree) -> Iterator[str]:
    """Dead paths in every Markdown file that a reader meets first."""
    for document in where.named(".md"):
        yield from tree.dead_paths(where, document)


CHECKS: tuple[Check, ...] = (
    tree.wrong_imports,
    tree.long_files,
    tree.own_renames,
    tree.wrong_file_list,
    tree.wrong_waivers,
    readme_paths,
    tree.machine_traces,
    tree.undocumented,
    tree.unused_names,
)
DOC = '"""Text."""\n'
# check, planted files, part of the sentence that must come out
PLANTED: tuple[tuple[Check, dict[str, str], str], ...] = (
    (tree.wrong_imports, {"accelsim/spec/a.py": "import accelsim.emit"}, "imports no room"),
    (tree.wrong_imports, {"accelsim/spec/a.py": "from .. import emit"}, "imports no room"),
    (tree.wrong_imports, {"accelsim/simulate/a.py": "from accelsim.cosim import b"}, "not come"),
    (tree.wrong_imports, {"accelsim/cosim/a.py": "from accelsim import reference"}, "not come"),
    (tree.wrong_imports, {"accelsim/emit/a.py": "def f():\n import accelsim.report"}, "not come"),
    (tree.wrong_imports, {"accelsim/emit/a.py": "import tvm.relax"}, "must not import tvm"),
    (tree.wrong_imports, {"accelsim/compare.py": "import torch"}, "must not import torch"),
    (
        tree.wrong_imports,
        {"accelsim/artifacts/model.py": "import accelsim.emit"},
        "must not import emit",
    ),
    (tree.wrong_imports, {"accelsim/odd/a.py": ""}, "no rank"),
    (
        tree.wrong_imports,
        {"accelsim/reference/a.py": "from accelsim.spec.arithmetic import x"},
        "arithmetic",
    ),
    (
        tree.wrong_imports,
        {"accelsim/reference/a.py": "from accelsim.spec import arithmetic"},
        "arithmetic",
    ),
    (tree.wrong_imports, {"accelsim/reference/a.py": "import accelsim.legalize.b"}, "QDQ graph"),
    (tree.long_files, {"accelsim/a.py": "\n" * 401}, "401 lines"),
    (tree.own_renames, {"accelsim/emit/a.py": "partial.replace(path)"}, "by accelsim.files"),
    (tree.own_renames, {"accelsim/emit/a.py": "tempfile.mkstemp(dir=f)"}, "by accelsim.files"),
    (tree.long_files, {"rtl/a.sv": "\n" * 401}, "401 lines"),
    (tree.wrong_file_list, {"rtl/a.sv": "", "rtl/files.f": ""}, "a.sv 0 times"),
    (tree.wrong_file_list, {"rtl/a.sv": "", "rtl/files.f": "a.sv\na.sv"}, "a.sv 2 times"),
    (tree.wrong_file_list, {"rtl/files.f": "gone.sv"}, "does not exist"),
    (tree.wrong_file_list, {"rtl/a.sv": "", "rtl/files.f": "a.sv", "x.f": ""}, "one list"),
    (tree.wrong_file_list, {"rtl/a.sv": ""}, "one list"),
    (tree.wrong_waivers, {"rtl/lint.vlt": "// why\nlint_off -rule WIDTH"}, "a rule and a file"),
    (
        tree.wrong_waivers,
        {"rtl/lint.vlt": '//\nlint_off -rule X -file "*/a*.sv"'},
        "names no file",
    ),
    (
        tree.wrong_waivers,
        {"rtl/lint.vlt": 'lint_off -rule X -file "*/a.sv"', "rtl/a.sv": ""},
        "reason is missing",
    ),
    (
        tree.wrong_waivers,
        {"rtl/verible.waiver": 'waive --rule=x --location="a.sv"', "rtl/a.sv": ""},
        "reason is missing",
    ),
    (tree.wrong_waivers, {"rtl/a.sv": "// verilator " + "lint_off WIDTH"}, "waives a rule"),
    (readme_paths, {"README.md": "see [this](docs/gone.md)"}, "docs/gone.md"),
    (readme_paths, {"README.md": "see `rtl/gone.sv`"}, "rtl/gone.sv"),
    (tree.machine_traces, {"a.txt": "cd /" + "work/main"}, "work/m"),
    (tree.machine_traces, {"a.toml": 'x = "/' + 'tmp/y"'}, "tmp/y"),
    (tree.machine_traces, {"a.txt": "https://files.python" + "hosted.org/x"}, "hosted"),
    (tree.machine_traces, {"constraints.txt": "--extra" + "-index-url x"}, "index"),
    (tree.undocumented, {"accelsim/a.py": "x = 1"}, "module has no docstring"),
    (tree.undocumented, {"accelsim/a.py": DOC + "def f(): ..."}, "f has no docstring"),
    (tree.undocumented, {"accelsim/a.py": DOC + "class C:\n ..."}, "C has no docstring"),
    (tree.unused_names, {"accelsim/a.py": "USED, GONE = 1, 2\nprint(USED)"}, "uses GONE"),
    (tree.unused_names, {"accelsim/a.py": "GONE: int = 1"}, "uses GONE"),
    (tree.unused_names, {"accelsim/a.py": "def gone(): ..."}, "uses gone"),
)


def planted(root: Path, files: dict[str, str]) -> tree.Tree:
    """Write `files` below `root` and return the tree that they are."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return tree.Tree(root, tuple(Path(name) for name in sorted(files)))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_repository_keeps_its_structure(check: Check) -> None:
    assert list(check(tree.tracked_tree(ROOT))) == []


@pytest.mark.parametrize(("check", "files", "said"), PLANTED)
def test_check_finds_what_was_planted(
    check: Check, files: dict[str, str], said: str, tmp_path: Path
) -> None:
    found = list(check(planted(tmp_path, files)))
    assert len(found) == 1 and said in found[0], found


def test_every_check_was_seen_to_fail() -> None:
    assert {check for check, _, _ in PLANTED} == set(CHECKS)


def test_right_tree_passes_every_check(tmp_path: Path) -> None:
    files = {
        "accelsim/emit/a.py": DOC + "from accelsim.spec import isa\nfrom accelsim import errors\n",
        "accelsim/reference/a.py": DOC + "import torch\nfrom accelsim.quantize import q\n",
        "rtl/a.sv": "module a;\nendmodule\n",
        "rtl/tb/b.sv": "module b;\nendmodule\n",
        "rtl/files.f": "// order\na.sv\n",
        "README.md": "`rtl/a.sv`, [list](rtl/files.f), `build/runs/`, [site](https://tvm.apache.org)",
    }
    where = planted(tmp_path, files)
    assert [sentence for check in CHECKS for sentence in check(where)] == []
