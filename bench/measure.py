"""Measurements of one layer: simulator, timing alone, BLAS, RTL, and the speed of the RTL.

What comes in: a shape and a configuration. What goes out: numbers. Times are the best of several
in this process, in turns, so ratios compare like with like.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from accelsim.artifacts import Launch, Program, RunResult
from accelsim.cosim.session import Cosim
from accelsim.cosim.speed import Speed
from accelsim.cosim.speed import measure as measure_speed
from accelsim.emit import compile_region, launch_memory, read_tensor
from accelsim.errors import AccelsimError
from accelsim.simulate import Simulator
from accelsim.spec.config import Config
from bench.shapes import Shape, random_input, region


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """One layer. Seconds are processor time of one run."""

    shape: Shape
    instructions: int
    cycles: int
    utilization: float  # products over lanes² · cycles
    compile_seconds: float
    first_seconds: float  # the first run, with decoding and analysis of the program
    sim_seconds: float  # values and cycles, without digests
    timing_seconds: float  # cycles alone
    blas_seconds: float
    packed_lanes: int  # channels that the host packs for each output pixel; 0: it packs nothing

    @property
    def products(self) -> float:
        """Useful products a cycle from memory to memory."""
        return self.shape.macs / self.cycles


@dataclass(frozen=True, slots=True)
class RtlRun:
    """One layer on the RTL against the simulator."""

    name: str
    cycles: int
    sim_cycles: int
    seconds: float

    @property
    def error(self) -> float:
        """Relative error of the simulated cycles."""
        return self.sim_cycles / self.cycles - 1


def seconds_of(function: Callable[[], object]) -> float:
    """Processor time of one call, all threads: another load on the machine disturbs it little."""
    began = time.process_time()
    function()
    return time.process_time() - began


def launch_of(
    rng: np.random.Generator, shape: Shape, config: Config
) -> tuple[Program, Launch, float]:
    """A compiled layer on random input, without digests, and the seconds that compiling took."""
    layer = region(rng, shape)
    began = time.process_time()
    program = compile_region(layer, config)
    seconds = time.process_time() - began
    memory = launch_memory(program, {"x": random_input(rng, shape)})
    return program, Launch(program, memory, observe=False), seconds


def measure_layer(
    rng: np.random.Generator, shape: Shape, config: Config, repeat: int
) -> LayerTimes:
    """Simulate one layer and multiply its im2col matrices in float32."""
    program, launch, compile_seconds = launch_of(rng, shape, config)
    simulator, timer = Simulator(config), Simulator(config, values=False, checks=False)
    first_seconds = seconds_of(lambda: simulator.run(launch))
    cycles = timer.run(launch).cycles
    product = im2col_product(rng, shape)
    product()
    sim, timing, blas = [], [], []
    for _ in range(repeat):  # in turns, so that another load on the machine meets all three
        sim.append(seconds_of(lambda: simulator.run(launch)))
        timing.append(seconds_of(lambda: timer.run(launch)))
        blas += [seconds_of(product), seconds_of(product)]
    return LayerTimes(
        shape=shape,
        instructions=len(program.words),
        cycles=cycles,
        utilization=shape.macs / (config.lanes**2 * cycles),
        compile_seconds=compile_seconds,
        first_seconds=first_seconds,
        sim_seconds=min(sim),
        timing_seconds=min(timing),
        blas_seconds=min(blas),
        packed_lanes=packed_lanes(program),
    )


def count_cycles(rng: np.random.Generator, shape: Shape, config: Config) -> int:
    """Cycles of one layer."""
    _, launch, _ = launch_of(rng, shape, config)
    return Simulator(config, values=False, checks=False).run(launch).cycles


def packed_lanes(program: Program) -> int:
    """Channels of the input as the host stores it where it packs windows into lanes, else 0."""
    extent = program.tensors["x"]
    return extent.shape[3] if extent.patches else 0


def im2col_product(rng: np.random.Generator, shape: Shape) -> Callable[[], object]:
    """The layer's matrix product in float32, im2col itself left out."""
    batch, pixels, depth, outputs = shape.product
    left = rng.standard_normal((batch, pixels, depth)).astype(np.float32)
    right = rng.standard_normal((batch, depth, outputs)).astype(np.float32)
    return lambda: np.matmul(left, right)


def run_rtl(rng: np.random.Generator, shape: Shape, cosim: Cosim) -> RtlRun:
    """One layer on both backends. Raises AccelsimError where their outputs differ."""
    program, launch, _ = launch_of(rng, shape, cosim.config)
    expected = Simulator(cosim.config).run(launch)
    actual = cosim.launch(launch)
    if not same_output(program, expected, actual):
        raise AccelsimError(f"{shape.name}: simulator and RTL differ, so speed means nothing")
    return RtlRun(shape.name, actual.cycles, expected.cycles, cosim.last_seconds)


def same_output(program: Program, one: RunResult, other: RunResult) -> bool:
    """Whether two runs ended alike."""
    first, second = (read_tensor(program, result.dram, "y") for result in (one, other))
    return one.error_code == other.error_code == 0 and bool(np.array_equal(first, second))


def cosim_speed(rng: np.random.Generator, shape: Shape, config: Config, repeat: int) -> Speed:
    """Cycles a second under cocotb and in the plain C++ loop over the same objects."""
    _, launch, _ = launch_of(rng, shape, config)
    return measure_speed(launch, repeat)
