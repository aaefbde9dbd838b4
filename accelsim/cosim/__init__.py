"""Co-simulation: programs on the RTL under Verilator and cocotb.

What comes in: a `Launch` and a configuration. What goes out: a `RunResult`. This room must not
know the Python simulator, the reference, or how a program was compiled.

For benches of your own:

- whole programs: `session.Cosim`, a context manager; `launch` is an `artifacts.Backend`.
  `memory.MemoryOptions` sets latency, `memory.random_stalls(seed)` every kind of stall, and
  `error_low`, `error_high`, `error_reads`, `error_writes` make bus errors at bus addresses
  (`placement.ORIGIN` plus an offset);
- one module: `unit.run_unit` builds it and runs cocotb tests, `streams` has drivers and monitors
  of valid/ready streams, `unit.AXI_MEMORY` is the memory model for a module with an AXI port;
- speed: `speed.measure`;
- builds: `build.build`, `build.cache_info`, `build.cache_clear`.
"""
