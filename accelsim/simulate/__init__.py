"""The Python simulator of the NPU: bit-exact values, exact cycles, and the mistakes of a program.

`run(launch)` is a backend; `Simulator(config, …)` keeps what it learned of a program and has the
options: timing only, memory latency, bus faults, planted bugs.
"""

from accelsim.simulate.bursts import BusFault
from accelsim.simulate.machine import Simulator, run

__all__ = ["BusFault", "Simulator", "run"]
