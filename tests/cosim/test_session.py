"""The persistent co-simulation, against a stand-in for the NPU that copies memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accelsim.artifacts import Launch, Program, bare_program
from accelsim.cosim.memory import MemoryOptions, random_stalls
from accelsim.cosim.placement import ORIGIN, PAGE_BYTES
from accelsim.cosim.session import Cosim
from accelsim.cosim.setup import launch_placement, register_writes
from accelsim.cosim.speed import measure
from accelsim.errors import InputError, RtlError, TimeLimitError, ToolError
from accelsim.simulate import Simulator
from accelsim.spec.config import CONFIGS
from accelsim.spec.registers import address

pytestmark = pytest.mark.rtl

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent / "rtl"
DESIGN = (ROOT / "rtl/gen/edge8/npu_pkg.sv", HERE / "npu_top.sv", HERE / "npu_observe.sv")
TB = ROOT / "rtl/tb"
COPY, BEYOND, HANG, UNSTABLE = range(4)


def copy_program(behaviour: int = COPY, config: str = "edge8") -> Program:
    return bare_program(
        symbol="copy",
        config=CONFIGS[config],
        words=np.zeros((1, 16), np.uint32),
        opcode_mask=behaviour,
        contract_hash=0,
    )


def copy_launch(size: int, seed: int = 0, behaviour: int = COPY, limit: int = 100_000) -> Launch:
    data = np.random.default_rng(seed).integers(0, 256, size).astype(np.uint8)
    dram = {2: data, 3: np.zeros(size, np.uint8)}
    return Launch(copy_program(behaviour), dram, cycle_limit=limit)


@pytest.fixture(scope="module")
def rtl() -> Iterator[Cosim]:
    with Cosim(CONFIGS["edge8"], design=DESIGN, root=TB) as cosim:
        yield cosim


def test_many_launches_share_one_process(rtl: Cosim) -> None:
    rtl.start()
    assert rtl._child is not None
    pid = rtl._child.process.pid
    for seed in range(5):
        launch = copy_launch(64 * (seed + 1) + 8, seed)
        result = rtl.launch(launch)
        np.testing.assert_array_equal(result.dram[3], launch.dram[2])
        assert result.error_code == 0 and result.counters["write_beats"] == len(launch.dram[2]) // 8
    assert rtl._child.process.pid == pid


def test_memory_grows_without_restart(rtl: Cosim) -> None:
    launch = copy_launch(3 << 20, limit=1 << 24)
    np.testing.assert_array_equal(rtl.launch(launch).dram[3], launch.dram[2])


def test_cycles_follow_the_memory_latency(rtl: Cosim) -> None:
    launch = copy_launch(16 * 8 * 4)
    cycles = {}
    for latency in (10, 30):
        rtl.memory = MemoryOptions(latency=latency)
        cycles[latency] = rtl.launch(launch).cycles
    rtl.memory = MemoryOptions()
    assert cycles[30] - cycles[10] == 4 * 2 * 20  # four bursts, each read and written


def test_random_stalls_change_cycles_but_not_data(rtl: Cosim) -> None:
    launch = copy_launch(8192)
    calm = rtl.launch(launch)
    rtl.memory = random_stalls(seed=3)
    stalled, again = rtl.launch(launch), rtl.launch(launch)
    rtl.memory = MemoryOptions()
    np.testing.assert_array_equal(stalled.dram[3], launch.dram[2])
    assert stalled.cycles > calm.cycles and stalled.cycles == again.cycles
    assert stalled.counters["not_ready_cycles"] > 0


def test_bus_error_is_reported_and_the_next_launch_is_clean(rtl: Cosim) -> None:
    launch = copy_launch(4096)
    window = ORIGIN + 2 * PAGE_BYTES + PAGE_BYTES
    rtl.memory = MemoryOptions(error_low=window, error_high=window + 2**20, error_reads=1)
    assert rtl.launch(launch).error_code == 5
    rtl.memory = MemoryOptions()
    assert rtl.launch(launch).error_code == 0


def test_write_outside_every_region_is_reported(rtl: Cosim) -> None:
    with pytest.raises(RtlError, match=r"8 bytes outside every region.*0 bytes beyond .* 3"):
        rtl.launch(copy_launch(512, behaviour=BEYOND))
    assert rtl.launch(copy_launch(512)).error_code == 0


def test_run_without_end_stops_at_the_cycle_limit(rtl: Cosim) -> None:
    with pytest.raises(TimeLimitError, match="copy raised no interrupt within 1000 cycles"):
        rtl.launch(copy_launch(512, behaviour=HANG, limit=1000))
    assert rtl.launch(copy_launch(512)).error_code == 0


def test_fired_assertion_is_one_sentence_and_the_next_launch_works(rtl: Cosim) -> None:
    rtl.memory = MemoryOptions(ready_stall=200)
    with pytest.raises(RtlError, match="AR changed before it was ready"):
        rtl.launch(copy_launch(4096, behaviour=UNSTABLE))
    rtl.memory = MemoryOptions()
    assert rtl.launch(copy_launch(512)).error_code == 0


def test_killed_simulation_is_one_sentence_with_its_log(rtl: Cosim) -> None:
    rtl.start()
    assert rtl._child is not None
    os.kill(rtl._child.process.pid, signal.SIGKILL)
    rtl._child.process.wait()
    launch = copy_launch(512)
    np.testing.assert_array_equal(rtl.launch(launch).dram[3], launch.dram[2])


def test_simulation_killed_during_a_launch_names_its_log(rtl: Cosim) -> None:
    rtl.start()
    assert rtl._child is not None
    os.kill(rtl._child.process.pid, signal.SIGSTOP)
    os.kill(rtl._child.process.pid, signal.SIGKILL)
    with pytest.raises(ToolError, match=r"died with status -9.*rtl\.log"):
        rtl._child.ask({"do": "run"})


def test_time_limit_ends_a_launch(rtl: Cosim) -> None:
    rtl.time_limit_seconds = 0.5
    try:
        with pytest.raises(TimeLimitError, match=r"no answer within 0\.5 s"):
            rtl.launch(copy_launch(512, behaviour=HANG, limit=1 << 31))
    finally:
        rtl.time_limit_seconds = None
    assert rtl.launch(copy_launch(512)).error_code == 0


def test_program_of_another_configuration_is_refused(rtl: Cosim) -> None:
    with pytest.raises(
        InputError, match="is for configuration base16, this simulation is of edge8"
    ):
        rtl.launch(Launch(copy_program(config="base16"), {}))


def test_waves_of_a_session_hold_the_run(tmp_path: Path) -> None:
    with Cosim(CONFIGS["edge8"], design=DESIGN, root=TB, waves=tmp_path / "run.any") as cosim:
        cosim.launch(copy_launch(512))
        path = cosim.waves
    assert path is not None and path.stat().st_size > 2000


INTERRUPTED = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from accelsim.cosim.session import Cosim
from accelsim.cosim.setup import launch_placement, register_writes
from accelsim.simulate import Simulator
from accelsim.spec.config import CONFIGS
from accelsim.spec.registers import address
from tests.cosim.test_session import DESIGN, HANG, TB, copy_launch
with Cosim(CONFIGS["edge8"], design=DESIGN, root=TB, folder=Path({folder!r})) as rtl:
    rtl.start()
    print(rtl._child.process.pid, flush=True)
    rtl.launch(copy_launch(512, behaviour=HANG, limit=1 << 31))
"""


def is_gone(pid: int) -> bool:
    """Waits until a process is gone, or only a zombie that nobody has reaped."""
    for _ in range(3000):
        try:
            state = (
                Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]
            )
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_simulation_outlives_its_parent(how: signal.Signals, tmp_path: Path) -> None:
    script = INTERRUPTED.format(root=str(ROOT), folder=str(tmp_path))
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(0.5)  # well into the run that never ends
    parent.send_signal(how)
    parent.wait()
    assert is_gone(child)


def test_plain_loop_runs_the_same_cycles() -> None:
    speed = measure(copy_launch(4096), repeat=1, design=DESIGN, root=TB)
    assert speed.cycles > 512 and speed.loop_seconds > 0 and speed.cocotb_seconds > 0


@pytest.mark.parametrize(
    ("semaphores", "message"),
    [
        ((0,) * 15, "has 15 semaphore presets, use 16 or none"),
        ((0,) * 17, "has 17 semaphore presets, use 16 or none"),
        ((0,) * 15 + (256,), "use 0 to 255"),
        ((-1,) + (0,) * 15, "use 0 to 255"),
    ],
)
def test_presets_that_do_not_fit_are_refused_as_by_the_simulator(
    semaphores: tuple[int, ...], message: str
) -> None:
    launch = replace(copy_launch(64), semaphores=semaphores)
    with pytest.raises(InputError, match=message) as said:
        register_writes(launch, launch_placement(launch))
    with pytest.raises(InputError) as expected:
        Simulator(CONFIGS["edge8"]).run(launch)
    assert str(said.value) == str(expected.value)


def test_presets_reach_their_registers() -> None:
    launch = replace(copy_launch(64), semaphores=tuple(range(240, 256)))
    written = dict(register_writes(launch, launch_placement(launch)))
    assert [written[address("PRESET", i)] for i in range(16)] == list(range(240, 256))
    none = dict(register_writes(copy_launch(64), launch_placement(copy_launch(64))))
    assert {none[address("PRESET", i)] for i in range(16)} == {0}
