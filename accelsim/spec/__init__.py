"""The specification: configurations, instructions, registers and arithmetic, each stated once.

Nothing here imports a room, TVM or torch. From these tables come the encoder, the assembler, the
SystemVerilog package, the C header and the manual (`python -m accelsim.spec.generate`).
"""
