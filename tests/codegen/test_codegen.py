"""A library runs its accelerated parts on the backend that its process chose."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from torch import nn

from accelsim.artifacts import Conv2d, Launch, Program, QuantizedModel, Region, RunResult
from accelsim.codegen import (
    CompiledModel,
    compile_model,
    export_library,
    load_library,
    placement,
    run_library,
    set_backend,
)
from accelsim.codegen.csource import region_source
from accelsim.emit import compile_region
from accelsim.errors import InputError, ModelError, ProgramError, ToolError
from accelsim.legalize import legalize
from accelsim.simulate import run as simulate
from accelsim.spec.config import CONFIGS, Config
from tests.legalize.networks import CASES, LogSoftmax, Residual, inputs, quantized, torch_output

RUN = """
import sys
import numpy as np
from pathlib import Path
from accelsim.codegen import load_library, run_library, set_backend
library, source, target, backend = sys.argv[1:]
if backend == "sim":
    from accelsim.simulate import run
    set_backend(run)
np.save(target, run_library(load_library(Path(library)), [np.load(source)])[0])
"""
SHAPE = (2, 3, 8, 8)


@pytest.fixture(scope="module")
def residual() -> QuantizedModel:
    return quantized(Residual(), SHAPE)


@pytest.fixture(scope="module")
def library(residual: QuantizedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiled = compile_model(residual, CONFIGS["edge8"])
    return export_library(compiled, tmp_path_factory.mktemp("library") / "residual.so")


def in_another_process(
    library: Path, x: np.ndarray, folder: Path, backend: str
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Run a library in a process of its own; the file that its output goes to."""
    np.save(folder / "x.npy", x)
    target = folder / "y.npy"
    arguments = [str(path) for path in (library, folder / "x.npy", target)]
    command = [sys.executable, "-c", RUN, *arguments, backend]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    return done, target


def test_library_equals_qnnpack_in_another_process(
    library: Path, residual: QuantizedModel, tmp_path: Path
) -> None:
    x = inputs(SHAPE, 21)
    done, target = in_another_process(library, x, tmp_path, "sim")
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(target), torch_output(residual, x))


def test_library_without_a_backend_fails_with_one_clear_error(
    library: Path, tmp_path: Path
) -> None:
    done, target = in_another_process(library, inputs(SHAPE, 21), tmp_path, "none")
    assert done.returncode != 0 and not target.exists()
    last = done.stderr.strip().splitlines()[-1]
    assert "accelsim" in last and "set_backend" in last


@pytest.mark.parametrize("config", ["edge8", "base16", "wide32"])
def test_host_and_accelerated_parts_work_together(config: str, tmp_path: Path) -> None:
    shape = (1, 3, 10, 9)
    model = quantized(LogSoftmax(), shape)
    compiled = compile_model(model, CONFIGS[config])
    assert len(compiled.programs) == 2
    x = inputs(shape, 22)
    np.testing.assert_array_equal(_run(compiled, x, tmp_path), torch_output(model, x))


def test_several_outputs_come_back_in_order(tmp_path: Path) -> None:
    from tests.partition.test_partition import Fork

    shape = (1, 3, 8, 8)
    model = quantized(Fork(), shape)
    x = inputs(shape, 23)
    path = export_library(compile_model(model, CONFIGS["edge8"]), tmp_path / "fork.so")
    set_backend(simulate)
    left, right = run_library(load_library(path), [x])
    assert left.shape == (1, 4, 6, 6) and right.shape == (1, 8, 3, 3)


def test_observer_sees_every_launch(library: Path) -> None:
    seen: list[tuple[Launch, RunResult]] = []
    set_backend(simulate, observer=lambda launch, result: seen.append((launch, result)))
    run_library(load_library(library), [inputs(SHAPE, 24)])
    assert [launch.program.symbol for launch, _ in seen] == ["accelsim_region_0"]
    assert seen[0][1].cycles > 0


def test_error_of_the_backend_reaches_the_caller(library: Path) -> None:
    def broken(launch: Launch) -> RunResult:
        return RunResult("broken", 0, 3, 7, 0, (), {}, ())

    set_backend(broken)
    with pytest.raises(ProgramError, match="broken with error 3 at instruction 7"):
        run_library(load_library(library), [inputs(SHAPE, 24)])


def test_dump_has_one_numbered_file_a_stage(residual: QuantizedModel, tmp_path: Path) -> None:
    compile_model(residual, CONFIGS["edge8"], tmp_path / "ir")
    names = sorted(path.name for path in (tmp_path / "ir").iterdir())
    assert names == [
        *("01-qdq.txt", "02-legalized.txt", "03-matched.txt"),
        *("04-partitioned.txt", "05-generated.txt"),
    ]
    texts = {name: (tmp_path / "ir" / name).read_text(encoding="utf-8") for name in names}
    assert "R.dequantize" in texts["01-qdq.txt"]
    assert "accelsim_conv2d" in texts["02-legalized.txt"]
    assert "accelsim_region_0" in texts["04-partitioned.txt"]
    assert "accelsim_conv2d" not in texts["05-generated.txt"]


def test_fused_layers_say_which_qdq_layers_they_are() -> None:
    make, shape = CASES["relu6"]
    compiled = compile_model(quantized(make(), shape), CONFIGS["edge8"])
    assert compiled.qdq_layers == {"1": ("0", "1"), "2": ("2",)}


def test_network_without_accelerated_parts_still_runs(tmp_path: Path) -> None:
    shape = (1, 3, 6, 6)
    model = quantized(nn.Sequential(nn.LogSoftmax(1)), shape)
    compiled = compile_model(model, CONFIGS["edge8"])
    assert compiled.regions == ()
    x = inputs(shape, 25)
    np.testing.assert_allclose(
        _run(compiled, x, tmp_path), torch_output(model, x), atol=1 / 256 + 1e-6
    )


def test_layer_that_does_not_fit_runs_on_the_host(tmp_path: Path) -> None:
    def without_dilation(region: Region, config: Config) -> Program:
        for layer in region.layers:
            if isinstance(layer.compute, Conv2d) and layer.compute.dilation != (1, 1):
                raise ModelError(f"layer {layer.name}: no tiling fits")
        return compile_region(region, config)

    shape = (1, 3, 12, 12)
    layers = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3, dilation=2), nn.ReLU6(), nn.Conv2d(4, 3, 3)
    model = quantized(nn.Sequential(*layers), shape)
    compiled = compile_model(model, CONFIGS["edge8"], compile_one=without_dilation)
    left = {op.name: op.reason for op in compiled.host_ops if not op.boundary}
    assert left.keys() == {"1", "2"} and "edge8: layer" in left["1"]
    assert [layer.name for region in compiled.regions for layer in region.layers] == ["0", "3"]
    assert _run(compiled, inputs(shape, 26), tmp_path).shape == (1, 3, 4, 4)


def test_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.so"
    path.write_text("no library")
    with pytest.raises(InputError, match="text"):
        load_library(path)


def test_library_of_the_same_name_can_be_replaced(tmp_path: Path) -> None:
    for shape in ((1, 3, 6, 6), (2, 3, 7, 5)):
        compiled = compile_model(
            quantized(nn.Sequential(nn.Conv2d(3, 4, 3)), shape), CONFIGS["edge8"]
        )
        assert _run(compiled, inputs(shape, 27), tmp_path).shape[0] == shape[0]


def test_two_processes_never_write_one_partial_file(tmp_path: Path) -> None:
    written: list[str] = []

    class Executable:
        def export_library(self, name: str) -> None:
            written.append(name)
            Path(name).write_text(name)
            if len(written) == 1:  # the other process, while this one writes
                export_library(compiled, tmp_path / "network.so")

    make, shape = CASES["conv"]
    compiled = compile_model(quantized(make(), shape), CONFIGS["edge8"])
    compiled = replace(compiled, executable=Executable())
    export_library(compiled, tmp_path / "network.so")
    assert len(set(written)) == 2
    assert (tmp_path / "network.so").read_text() == written[0]
    assert [path.name for path in tmp_path.iterdir()] == ["network.so"]


def test_folders_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    make, shape = CASES["conv"]
    model = quantized(make(), shape)
    (tmp_path / "file").write_text("")
    compiled = compile_model(model, CONFIGS["edge8"])
    with pytest.raises(InputError, match=r"cannot write .*file"):
        export_library(compiled, tmp_path / "file" / "network.so")
    (tmp_path / "dump" / "02-legalized.txt").mkdir(parents=True)
    with pytest.raises(InputError, match=r"cannot write .*02-legalized"):
        compile_model(model, CONFIGS["edge8"], tmp_path / "dump")
    (tmp_path / "folder.so" / "inner").mkdir(parents=True)
    with pytest.raises(InputError, match=r"cannot write .*folder.so"):
        export_library(compiled, tmp_path / "folder.so")


class Failing:
    """An executable whose compiler ends with an error."""

    def export_library(self, path: str) -> None:
        raise RuntimeError("Compilation error")


@pytest.mark.parametrize(
    ("free", "kind", "said"),
    [(1 << 20, InputError, "less than 4 MiB left"), (1 << 30, ToolError, "is g\\+\\+ installed")],
)
def test_a_compiler_that_fails_on_a_full_disk_is_not_blamed(
    free: int, kind: type[Exception], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    compiled = SimpleNamespace(executable=Failing())
    with pytest.raises(kind, match=said):
        export_library(compiled, tmp_path / "model.so")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_region_that_stays_refused_is_an_error_and_no_endless_loop() -> None:
    def never(region: Region, config: Config) -> Program:
        raise ModelError("no tiling fits")

    make, shape = CASES["conv"]
    model = quantized(make(), shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "legalize", lambda model, refused: legalize(model))
        with pytest.raises(ModelError, match=r"cannot be compiled.*no tiling fits"):
            compile_model(model, CONFIGS["edge8"], compile_one=never)


def test_payload_bytes_survive_the_c_literal(tmp_path: Path) -> None:
    payload = bytes(range(256)) * 3 + b'0123??=\\"\n'
    source = region_source("region", payload)
    literal = source.split("kPayload[] =\n")[1].split(";\n\n")[0]
    program = f"#include <stdio.h>\nstatic const char p[] = {literal};\n"
    program += f"int main(void) {{ fwrite(p, 1, {len(payload)}, stdout); return 0; }}\n"
    (tmp_path / "p.c").write_text(program, encoding="ascii")
    subprocess.run(["gcc", "-o", tmp_path / "p", tmp_path / "p.c"], check=True)
    out = subprocess.run([tmp_path / "p"], capture_output=True, check=True).stdout
    assert out == payload


def _run(compiled: CompiledModel, x: np.ndarray, folder: Path) -> np.ndarray:
    set_backend(simulate)
    machine = load_library(export_library(compiled, folder / "network.so"))
    return run_library(machine, [x])[0]
