"""Cycles: fetch, dispatch, queues, semaphores, engines, AXI and memory, event by event.

What comes in: decoded instructions with durations and burst lists. What goes out: start and end
cycle of every instruction that started, in start order, and how the run ended. It knows nothing of
data. Cycle rules are those of docs/contract.md; constants below name what RTL adds to them.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from accelsim.simulate.decoded import END, Decoded, Op
from accelsim.spec.config import ENGINES, LOAD, STORE, Config
from accelsim.spec.isa import DISPATCH_CYCLES, INSTRUCTION_BYTES
from accelsim.spec.registers import DISPATCH_ENGINE, SEMAPHORE_MAX, ErrorCode

# Cycles from a cause to its effect (1 means: the effect is in the cycle after the cause).
START_TO_FETCH = 1  # start pulse → first instruction read address
BEAT_TO_DISPATCH = 1  # last beat of an instruction on R → dispatch begins to decode it
DISPATCH_TO_DISPATCH = 1  # push into a queue → dispatch begins to decode the next instruction
PUSH_TO_START = 1  # push into a queue → the engine may accept it
POP_TO_PUSH = 1  # an engine accepts → the freed place may be filled
TAKE_TO_FETCH = 1  # dispatch takes an instruction → fetch may use its place
LOAD_TO_ADDRESS = 1  # load accepted → first read address
BEAT_TO_LOAD_DONE = 1  # last beat on R → done
BEAT_TO_ADDRESS = 1  # last beat of a burst on R → its place in flight may be used
STORE_TO_DATA = 3  # store accepted → first W beat
DATA_TO_DATA = 1  # last W beat of a burst → first W beat of the next
RESPONSE_TO_DATA = 2  # B of a burst → its place may be used by a first W beat
RESPONSE_TO_DONE = 1  # last B → done
IDLE_TO_END = 1  # last engine done → END retires

# Order of events within one cycle. Starts see only what earlier cycles did; a fetch wins the read
# address over a load; the memory takes a read before a write.
START, TAKE, FETCH, ADDRESS, DATA, DISPATCH, DONE, STOP = range(8)


@dataclass(slots=True)
class Retired:
    """One instruction that an engine started."""

    op: Op
    start: int
    end: int = -1


@dataclass(frozen=True, slots=True)
class Fault:
    """An error of a run: code, instruction index and engine, as the status registers give them."""

    code: ErrorCode
    index: int
    engine: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """What happened when."""

    retired: list[Retired]  # in start order
    cycles: int
    fault: Fault | None
    semaphores: tuple[int, ...]
    counters: dict[str, int]


@dataclass(slots=True)
class Traffic:
    """What the DMA engines and fetch ask of AXI, and where the bus fails."""

    bursts: Sequence[list[int]]  # by instruction index; empty but for load and store
    failing: frozenset[int] = frozenset()  # loads and stores that meet a bus error
    failing_fetch: frozenset[int] = frozenset()


@dataclass(slots=True)
class _Engine:
    queue: deque[Op] = field(default_factory=deque)
    current: Retired | None = None
    last_pop: int = -1
    free_since: int = 0
    busy: int = 0
    starved: int = 0  # idle cycles with an instruction waiting for tokens


class Timer:
    """State of one run's clock; `run` plays it to the end."""

    def __init__(
        self,
        program: Decoded,
        config: Config,
        traffic: Traffic,
        latency: int,
        presets: Sequence[int],
        cycle_limit: int,
    ) -> None:
        """Everything idle, semaphores at their presets."""
        self.ops, self.program, self.config, self.traffic = program.ops, program, config, traffic
        self.latency, self.limit = latency, cycle_limit
        self.tokens = list(presets)
        self.engines = [_Engine() for _ in ENGINES]
        self.retired: list[Retired] = []
        self.heap: list[tuple[int, int, int]] = []
        self.memory_free = 0
        self.address_cycle = -1  # last cycle in which a read address was sent
        self.fetched = self.taken = 0
        self.ready: list[int] = []  # by index: cycle in which dispatch can begin with it
        self.dispatching = -1  # instruction in dispatch
        self.dispatch_free = 0
        self.faults: list[Fault] = []
        self.stopped = False
        self.ended = -1
        self.dispatch_stall = 0
        self.full_since = -1
        self.flights: deque[int] = deque()  # cycles in which load bursts leave flight
        self.burst = 0
        self.writes: deque[int] = deque()  # cycles of B of store bursts
        self.write_burst = 0
        self.fetch_beats = INSTRUCTION_BYTES // config.lanes
        self.beats = {"fetch": 0, "load": 0, "store": 0}

    def at(self, cycle: int, order: int, argument: int = 0) -> None:
        """Schedule an event."""
        heapq.heappush(self.heap, (cycle, order, argument))

    def run(self) -> Timeline:
        """Play all events; a run that stops making progress meets its watchdog."""
        if self.program.violation and self.program.violation.code is ErrorCode.CONTRACT:
            self.faults.append(Fault(ErrorCode.CONTRACT, 0, DISPATCH_ENGINE))
            return self._timeline(1)
        self.at(START_TO_FETCH, FETCH)
        if self.limit:
            self.at(self.limit, STOP)
        handlers = (
            self._start,
            self._take,
            self._fetch,
            self._address,
            self._data,
            self._dispatch,
            self._done,
            self._watchdog,
        )
        now = 0
        while self.heap and self.ended < 0:
            now, order, argument = heapq.heappop(self.heap)
            handlers[order](now, argument)
            if self.stopped and not any(e.current for e in self.engines):
                break
        return self._timeline(self.ended if self.ended >= 0 else now)

    def _timeline(self, cycles: int) -> Timeline:
        counters = {f"{name}_beats": n for name, n in self.beats.items()}
        counters["dispatch_stall_cycles"] = self.dispatch_stall
        for name, engine in zip(ENGINES, self.engines, strict=True):
            counters[f"{name}_busy_cycles"] = engine.busy
            counters[f"{name}_wait_cycles"] = engine.starved
        fault = min(self.faults, key=lambda f: f.index) if self.faults else None
        return Timeline(self.retired, cycles, fault, tuple(self.tokens), counters)

    # ------------------------------------------------------------------------------------ memory
    def _serve(self, arrival: int, beats: int) -> int:
        """The cycle in which service of a request begins."""
        begin = max(arrival + self.latency, self.memory_free)
        self.memory_free = begin + beats
        return begin

    def _fail(self, code: ErrorCode, index: int, engine: int) -> None:
        self.faults.append(Fault(code, index, engine))
        self.stopped = True

    def _watchdog(self, now: int, _: int) -> None:
        if not self.stopped:
            running = [e.current.op.index for e in self.engines if e.current]
            waiting = [op.index for e in self.engines for op in e.queue]
            next_up = self.dispatching if self.dispatching >= 0 else self.taken
            oldest = min([*running, *waiting, next_up])
            self._fail(ErrorCode.WATCHDOG, oldest, DISPATCH_ENGINE)

    # ------------------------------------------------------------------------ fetch and dispatch
    def _fetch(self, now: int, _: int) -> None:
        """Send one instruction's read address."""
        if self.stopped or self.fetched >= self.program.length:
            return
        if self.fetched - self.taken >= self.config.fetch_depth:
            return  # taking one schedules the next fetch
        if self.address_cycle == now:
            self.at(now + 1, FETCH)
            return
        self.address_cycle = now
        last = self._serve(now, self.fetch_beats) + self.fetch_beats - 1
        self.beats["fetch"] += self.fetch_beats
        self.ready.append(last + BEAT_TO_DISPATCH)
        self.fetched += 1
        if self.fetched - 1 == self.taken and self.dispatching < 0:
            self._next(self.taken)
        if self.fetched - self.taken < self.config.fetch_depth:
            self.at(now + 1, FETCH)

    def _next(self, index: int) -> None:
        """Let dispatch take an instruction once it is there and the one before is gone."""
        self.dispatching = index
        self.at(max(self.ready[index], self.dispatch_free), TAKE, index)

    def _take(self, now: int, index: int) -> None:
        """Dispatch takes an instruction: its place in fetch is free."""
        if self.stopped:
            return
        self.taken = index + 1
        self.at(now + TAKE_TO_FETCH, FETCH)
        self.at(now + DISPATCH_CYCLES, DISPATCH, index)

    def _dispatch(self, now: int, index: int) -> None:
        """Checks are done: report, retire END, or push into a queue that has a place."""
        if self.stopped:
            return
        if index in self.traffic.failing_fetch:
            self._fail(ErrorCode.BUS_FETCH, index, DISPATCH_ENGINE)
            return
        if index >= len(self.ops):
            violation = self.program.violation
            assert violation is not None
            self._fail(violation.code, index, DISPATCH_ENGINE)
            return
        op = self.ops[index]
        if op.engine == END:
            self.full_since = now
            if not any(e.queue or e.current for e in self.engines):
                self.ended = now
            return
        engine = self.engines[op.engine]
        if len(engine.queue) >= self.config.queue_depth:
            self.full_since = now if self.full_since < 0 else self.full_since
            return  # a pop schedules the next attempt
        if self.full_since >= 0:
            self.dispatch_stall += now - self.full_since
            self.full_since = -1
        engine.queue.append(op)
        self.at(now + PUSH_TO_START, START, op.engine)
        self.dispatching, self.dispatch_free = -1, now + DISPATCH_TO_DISPATCH
        if self.taken < self.fetched:
            self._next(self.taken)
        elif self.taken >= self.program.length:
            self._fail(ErrorCode.NO_END, self.program.length, DISPATCH_ENGINE)

    # ------------------------------------------------------------------------------------ engines
    def _start(self, now: int, number: int) -> None:
        """An engine accepts the head of its queue if it is idle and the tokens are there."""
        engine = self.engines[number]
        if self.stopped or engine.current or not engine.queue:
            return
        op = engine.queue[0]
        if any(not self.tokens[giver * 4 + number] for giver in op.take):
            return
        for giver in op.take:
            self.tokens[giver * 4 + number] -= 1
        engine.queue.popleft()
        engine.current = Retired(op, now)
        self.retired.append(engine.current)
        engine.starved += max(0, now - engine.free_since)
        if self.dispatching >= 0 and self.full_since >= 0:
            self.at(now + POP_TO_PUSH, DISPATCH, self.dispatching)
        if number == LOAD:
            self.burst = 0
            self.at(now + LOAD_TO_ADDRESS, ADDRESS)
        elif number == STORE:
            self.write_burst = 0
            first = self.traffic.bursts[op.index][0]
            self.at(now + STORE_TO_DATA + first - 1, DATA)
        else:
            self.at(now + op.duration, DONE, number)

    def _address(self, now: int, _: int) -> None:
        """The load DMA sends the read address of one burst."""
        current = self.engines[LOAD].current
        assert current is not None
        if self.address_cycle == now:
            self.at(now + 1, ADDRESS)
            return
        flights = self.flights
        while flights and flights[0] <= now:
            flights.popleft()
        if len(flights) >= self.config.read_outstanding:
            self.at(flights[0], ADDRESS)
            return
        bursts = self.traffic.bursts[current.op.index]
        beats = bursts[self.burst]
        self.burst += 1
        self.address_cycle = now
        last = self._serve(now, beats) + beats - 1
        self.beats["load"] += beats
        flights.append(last + BEAT_TO_ADDRESS)
        if self.burst < len(bursts):
            self.at(now + 1, ADDRESS)
        else:
            self.at(last + BEAT_TO_LOAD_DONE, DONE, LOAD)

    def _data(self, now: int, _: int) -> None:
        """The store DMA sends the last W beat of one burst."""
        current = self.engines[STORE].current
        assert current is not None
        bursts = self.traffic.bursts[current.op.index]
        beats = bursts[self.write_burst]
        self.write_burst += 1
        response = self._serve(now, beats) + beats
        self.beats["store"] += beats
        self.writes.append(response)
        if self.write_burst == len(bursts):
            self.writes.clear()
            self.at(response + RESPONSE_TO_DONE, DONE, STORE)
            return
        first = now + DATA_TO_DATA
        while self.writes and self.writes[0] + RESPONSE_TO_DATA <= first:
            self.writes.popleft()
        if len(self.writes) >= self.config.write_outstanding:
            first = self.writes.popleft() + RESPONSE_TO_DATA
        self.at(first + bursts[self.write_burst] - 1, DATA)

    def _done(self, now: int, number: int) -> None:
        """An engine ends an instruction and gives its tokens."""
        engine = self.engines[number]
        current = engine.current
        assert current is not None
        current.end, engine.current, engine.free_since = now, None, now + 1
        engine.busy += now - current.start
        if current.op.index in self.traffic.failing:
            code = ErrorCode.BUS_READ if number == LOAD else ErrorCode.BUS_WRITE
            self._fail(code, current.op.index, number)
        if self.stopped:
            return
        for taker in current.op.give:
            place = number * 4 + taker
            if self.tokens[place] >= SEMAPHORE_MAX:
                self._fail(ErrorCode.SEMAPHORE, current.op.index, number)
                return
            self.tokens[place] += 1
            self.at(now + 1, START, taker)
        self.at(now + 1, START, number)
        next_up = self.dispatching
        if self.full_since >= 0 and next_up >= 0 and self.ops[next_up].engine == END:
            self.at(now + IDLE_TO_END, DISPATCH, next_up)
