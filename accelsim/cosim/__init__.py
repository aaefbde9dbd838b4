"""Co-simulation: programs on the RTL under Verilator and cocotb.

What comes in: a `Launch` and a configuration. What goes out: a `RunResult`. This room must not
know the Python simulator, the reference, or how a program was compiled.
"""
