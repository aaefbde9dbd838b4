"""Peers: kernels that others wrote, run on the same inputs, against the NPU.

What comes in: a folder of cases with goldens, and installed frameworks. What goes out: how many
cases of each suite passed, failed or are out of scope. `python -m accelsim.peers` runs it.
"""
