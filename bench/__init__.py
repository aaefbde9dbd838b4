"""Measurements of the compiler, the simulator and the co-simulation: `python -m bench`."""
