"""The cocotb test that serves launches until its parent lets it go.

What comes in: requests on the socket that the plusarg `+cosim_fd` names. What goes out: answers
with register values and counters; memory contents are shared, records go to a file that the
simulation writes. This module must not know registers, programs or where regions lie: its parent
does.

A request is {"do": "map" | "call" | "access" | "run" | "quit", …}; an answer repeats "do", or is
{"failed": sentence}, or {"broken": sentence} where the NPU is to blame.
"""

from __future__ import annotations

import ctypes
import socket
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge

from accelsim.cosim.channel import Channel, Message
from accelsim.cosim.memory import MemoryOptions, SimulatedMemory
from accelsim.cosim.registers import PortError, RegisterPort

RESET_POLLS = 1000


class Server:
    """State of one simulation: its register port and its memory."""

    def __init__(self, bench: Any) -> None:
        self.bench = bench
        self.port = RegisterPort(bench)
        self.memory = SimulatedMemory()
        self.settings: dict[int, int] = {}
        self.exports = ctypes.CDLL(None)

    async def map(self, request: Message) -> Message:
        """Maps the shared memory file at its bus address."""
        self.memory.map(request["origin"], request["bytes"], Path(request["path"]))
        return {"do": "map"}

    async def call(self, request: Message) -> Message:
        """Calls an exported C function that takes one unsigned int."""
        function = getattr(self.exports, request["function"], None)
        assert function is not None, f"no function {request['function']} in this simulation"
        function(ctypes.c_uint(request["value"]))
        return {"do": "call"}

    async def access(self, request: Message) -> Message:
        """Register accesses in order: [address] reads, [address, data, lead cycles] writes."""
        return {"do": "access", "values": await self._accesses(request["accesses"])}

    async def _accesses(self, accesses: list[list[int]]) -> list[int]:
        values = []
        for one in accesses:
            if len(one) == 1:
                values.append(await self.port.read(one[0]))
            else:
                await self.port.write(*one)
        self.settings.clear()
        return values

    async def run(self, request: Message) -> Message:
        """Writes registers, runs the clock until the interrupt, reads registers.

        "settings" are (address, data) pairs, "start" is the pair that starts the run; "reads" are
        addresses; "after" are pairs written at the end. "reset" resets the NPU first. "seconds" in
        the answer is the wall time of all of that. "soft_reset" is for `_soft_reset`, at the end.
        """
        bench = self.bench
        began = time.perf_counter()
        self.memory.configure(MemoryOptions(**request["memory"]))
        self.memory.clear_counters()
        if request["reset"]:
            await self.port.reset()
            self.settings.clear()
        records = request["records"]
        if records is not None:
            assert self.exports.npu_observe_open(records.encode()) == 0, f"cannot write {records}"
        bench.observe.value = int(records is not None)
        for address, data in request["settings"]:
            if self.settings.get(address) != data:  # registers keep what was written
                await self.port.write(address, data)
                self.settings[address] = data
        await self.port.write(*request["start"])
        bench.run_limit.value = request["limit"]
        bench.run.value = 1
        await FallingEdge(bench.run)
        interrupt = int(bench.irq.value) == 1
        answer: Message = {"do": "run", "interrupt": interrupt, "reads": []}
        if interrupt:
            answer["reads"] = [await self.port.read(address) for address in request["reads"]]
            for address, data in request["after"]:
                await self.port.write(address, data)
        if "soft_reset" in request:
            answer["values"] = await self._accesses(request["accesses"])
            answer["left_registers"] = await self._soft_reset(*request["soft_reset"])
        bench.observe.value = 0
        answer["left"] = int(bench.run_limit.value)
        answer["seconds"] = time.perf_counter() - began
        answer["counters"] = asdict(self.memory.counters())
        self.exports.npu_observe_close()
        return answer

    async def _soft_reset(
        self, register: int, data: int, status: int, mask: int, reads: list[int]
    ) -> list[int]:
        """Writes a register, waits until a status bit falls, and reads registers."""
        await self.port.write(register, data)
        for _ in range(RESET_POLLS):
            if not await self.port.read(status) & mask:
                break
        else:
            raise PortError("the soft reset does not end")
        self.settings.clear()
        return [await self.port.read(address) for address in reads]


@cocotb.test()
async def serve(bench: Any) -> None:
    """Answers requests one after another."""
    fd = int(cocotb.plusargs["cosim_fd"])
    channel = Channel(socket.socket(fileno=fd))
    server = Server(bench)
    await server.port.reset()
    channel.send({"do": "hello"})
    handlers = {
        "map": server.map,
        "call": server.call,
        "access": server.access,
        "run": server.run,
    }
    while (request := channel.receive()) is not None and request["do"] != "quit":
        try:
            answer = await handlers[request["do"]](request)
        except PortError as error:
            answer = {"broken": str(error)}
        except AssertionError as error:
            answer = {"failed": str(error).splitlines()[0]}
        channel.send(answer)
    channel.close()
