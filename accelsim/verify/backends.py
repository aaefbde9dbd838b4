"""Opening backends: the simulator in this process, the RTL as one persistent co-simulation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelsim.artifacts import Backend
from accelsim.cosim.build import build
from accelsim.cosim.memory import MemoryOptions
from accelsim.cosim.model import model_request
from accelsim.cosim.placement import random_skews
from accelsim.cosim.session import Cosim
from accelsim.mutate import Mutants
from accelsim.simulate import Simulator
from accelsim.verify.options import VerifyOptions

STALLS = {"ready_stall": 64, "r_gap": 64, "b_delay_max": 20, "latency_extra_max": 40}


def build_rtl(options: VerifyOptions) -> None:
    """Build the simulation of the RTL with as many processes as asked for, unless it is cached.

    Raises ToolError where a tool is missing or the RTL does not build.
    """
    if "rtl" in options.backends and options.rtl_bug is None:
        request = model_request(options.config, waves=options.waves)
        build(replace(request, jobs=options.jobs))


@contextmanager
def open_backends(options: VerifyOptions, waves: Path | None) -> Iterator[dict[str, Backend]]:
    """The chosen backends by name, closed at the end whatever happens."""
    with ExitStack() as stack:
        backends: dict[str, Backend] = {}
        if "sim" in options.backends:
            backends["sim"] = Simulator(options.config, bug=options.sim_bug).run
        if "rtl" in options.backends:
            backends["rtl"] = stack.enter_context(
                _rtl(options, "rtl", MemoryOptions(), waves)
            ).launch
        yield backends


@contextmanager
def stalling_rtl(options: VerifyOptions) -> Iterator[Backend]:
    """The RTL behind a memory that stalls at random on every channel, its bases off their pages."""
    memory = MemoryOptions(seed=options.seed + 1, **STALLS)
    with _rtl(options, "rtl-stalls", memory, None) as cosim:
        cosim.skews = random_skews(options.seed)
        yield cosim.launch


def _rtl(options: VerifyOptions, name: str, memory: MemoryOptions, waves: Path | None) -> Cosim:
    """The co-simulation of a run, with its planted bug if it has one; its log is in `name`."""
    given: dict[str, Any] = {
        "memory": memory,
        "folder": options.out / name,
        "waves": waves,
        "seed": options.seed,
        "time_limit_seconds": options.time_limit_seconds,
    }
    if options.rtl_bug is not None:
        mutants = Mutants.of(options.config)
        return mutants.cosim(mutants.site(options.rtl_bug), **given)
    return Cosim(options.config, **given)
