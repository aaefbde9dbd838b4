"""Speed of the co-simulation against a plain C++ loop over the same verilated objects.

What comes in: a launch. What goes out: cycles a second of both, for the same program, memory
contents and registers, without records. This module must not know how the program was made.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from accelsim.artifacts import Launch
from accelsim.cosim.memory import MemoryOptions
from accelsim.cosim.model import build_model
from accelsim.cosim.placement import ORIGIN, place
from accelsim.cosim.session import GRACE_CYCLES, Cosim
from accelsim.cosim.setup import START, launch_regions, register_writes
from accelsim.errors import ToolError

NEAR_CYCLES = 16  # the counters start and end at slightly different events
REPORT = re.compile(r"cycles (\d+) seconds ([0-9.]+)")


@dataclass(frozen=True, slots=True)
class Speed:
    """Cycles of one run and the best wall time of each way to simulate it."""

    cycles: int
    cocotb_seconds: float  # register accesses and the wait for the interrupt included
    loop_seconds: float

    @property
    def cocotb_cycles_per_second(self) -> float:
        """Under cocotb."""
        return self.cycles / self.cocotb_seconds

    @property
    def loop_cycles_per_second(self) -> float:
        """In the plain loop."""
        return self.cycles / self.loop_seconds

    @property
    def ratio(self) -> float:
        """Share of the loop's speed that cocotb leaves."""
        return self.cocotb_cycles_per_second / self.loop_cycles_per_second


def measure(
    launch: Launch,
    repeat: int = 3,
    design: Sequence[Path] | None = None,
    root: Path | None = None,
) -> Speed:
    """Runs `launch` `repeat` times each way, in turns, and keeps the best time of each.

    Raises ToolError where the loop fails or runs another number of cycles than the NPU counted.
    """
    launch = replace(launch, observe=False)
    executable = build_model(launch.program.config, design=design, root=root)
    cocotb: list[float] = []
    loop: list[float] = []
    with Cosim(launch.program.config, design=design, root=root) as rtl:
        for _ in range(repeat):
            cycles = rtl.launch(launch).cycles
            cocotb.append(rtl.last_seconds)
            ran, seconds = _loop(executable, launch, rtl.memory)
            if abs(ran - cycles) > NEAR_CYCLES:
                raise ToolError(f"the plain loop ran {ran} cycles, the NPU counted {cycles}.")
            loop.append(seconds)
    return Speed(cycles, min(cocotb), min(loop))


def _loop(executable: Path, launch: Launch, options: MemoryOptions) -> tuple[int, float]:
    """Cycles and seconds of one run without cocotb."""
    regions = launch_regions(launch)
    placement = place({base: len(data) for base, data in regions.items()})
    shared = Path("/dev/shm")  # where the session's memory lies: on a disk the loop is far slower
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        memory = Path(folder) / "memory.bin"
        contents = np.zeros(placement.total_bytes, np.uint8)
        for base, data in regions.items():
            contents[placement.offsets[base] :][: len(data)] = data
        contents.tofile(memory)
        lines = [f"map {memory} {ORIGIN:#x} {len(contents)}", f"latency {options.latency}"]
        lines += [
            f"write {address:#x} {data:#x}"
            for address, data in [*register_writes(launch, placement), START]
        ]
        lines.append(f"run {launch.cycle_limit + GRACE_CYCLES}")
        job = Path(folder) / "job.txt"
        job.write_text("\n".join(lines) + "\n", encoding="ascii")
        done = subprocess.run(
            [str(executable), "--loop", str(job)], capture_output=True, text=True, check=False
        )
    found = REPORT.search(done.stdout)
    if found is None:
        raise ToolError(f"the plain loop failed: {(done.stderr or done.stdout).strip()[-200:]}")
    return int(found[1]), float(found[2])
