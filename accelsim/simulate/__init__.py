"""The Python simulator of the NPU: bit-exact values, exact cycles, and the mistakes of a program.

`run(launch)` is a backend; `Simulator(config, …)` keeps what it learned of a program and has the
options: timing only, memory latency, bus faults, planted bugs. `analyse_program` finds mistakes
without running anything.
"""

from accelsim.simulate.bugs import BUGS
from accelsim.simulate.bursts import BusFault
from accelsim.simulate.machine import Simulator, run
from accelsim.simulate.prepared import analyse_program

__all__ = ["BUGS", "BusFault", "Simulator", "analyse_program", "run"]
