"""The NPU's AXI4-Lite port, driven by cocotb.

What comes in: addresses and data. What goes out: read data. This module must not know what the
registers mean. It runs inside the simulation.
"""

from __future__ import annotations

from typing import Any

from cocotb.triggers import ClockCycles, RisingEdge

HANDSHAKE_CYCLES = 1000
RESET_CYCLES = 4
OKAY = 0


class PortError(AssertionError):
    """The NPU broke the protocol of its register port."""


class RegisterPort:
    """Reads and writes registers of `npu_tb`, one at a time."""

    def __init__(self, bench: Any) -> None:
        self.bench = bench

    async def reset(self) -> None:
        """Holds reset low for some cycles; returns just after an edge with reset high."""
        bench = self.bench
        for name in ("awvalid", "wvalid", "bready", "arvalid", "rready"):
            getattr(bench, f"s_axil_{name}").value = 0
        bench.rst_ni.value = 0
        await ClockCycles(bench.clk_i, RESET_CYCLES)
        bench.rst_ni.value = 1
        await RisingEdge(bench.clk_i)

    async def write(self, address: int, data: int, lead_cycles: int = 0) -> None:
        """Writes one register and waits for the response.

        The address comes `lead_cycles` before the data; after it where that is negative.
        """
        bench = self.bench
        if lead_cycles:
            early = ("aw", "address", address) if lead_cycles > 0 else ("w", "data", data)
            payload = {"aw": "s_axil_awaddr", "w": "s_axil_wdata"}[early[0]]
            getattr(bench, payload).value = early[2]
            getattr(bench, f"s_axil_{early[0]}valid").value = 1
            for _ in range(abs(lead_cycles)):
                await RisingEdge(bench.clk_i)
                if getattr(bench, f"s_axil_{early[0]}ready").value == 1:
                    raise PortError(f"register write {address:#x}: half of it was accepted")
        bench.s_axil_awaddr.value = address
        bench.s_axil_wdata.value = data
        bench.s_axil_awvalid.value = 1
        bench.s_axil_wvalid.value = 1
        bench.s_axil_bready.value = 1
        address_left = data_left = True
        for _ in range(HANDSHAKE_CYCLES):
            await RisingEdge(bench.clk_i)
            if address_left and bench.s_axil_awready.value == 1:
                bench.s_axil_awvalid.value = 0
                address_left = False
            if data_left and bench.s_axil_wready.value == 1:
                bench.s_axil_wvalid.value = 0
                data_left = False
            if bench.s_axil_bvalid.value == 1:
                bench.s_axil_bready.value = 0
                response = int(bench.s_axil_bresp.value)
                if response != OKAY:
                    raise PortError(f"register write {address:#x}: response {response}")
                return
        raise PortError(f"register write {address:#x}: no response")

    async def read(self, address: int) -> int:
        """Value of one register."""
        bench = self.bench
        bench.s_axil_araddr.value = address
        bench.s_axil_arvalid.value = 1
        bench.s_axil_rready.value = 1
        waiting = True
        for _ in range(HANDSHAKE_CYCLES):
            await RisingEdge(bench.clk_i)
            if waiting and bench.s_axil_arready.value == 1:
                bench.s_axil_arvalid.value = 0
                waiting = False
            if bench.s_axil_rvalid.value == 1:
                bench.s_axil_rready.value = 0
                response = int(bench.s_axil_rresp.value)
                if response != OKAY:
                    raise PortError(f"register read {address:#x}: response {response}")
                return int(bench.s_axil_rdata.value)
        raise PortError(f"register read {address:#x}: no response")
