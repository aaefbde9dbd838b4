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

from accelsim.errors import ProgramError
from accelsim.simulate.decoded import END, Decoded, Op
from accelsim.simulate.timeline import PRIORITY, Fault, Retired, Timeline, Traffic
from accelsim.spec.config import ENGINES, LOAD, STORE, Config
from accelsim.spec.isa import DISPATCH_CYCLES, INSTRUCTION_BYTES
from accelsim.spec.registers import DISPATCH_ENGINE, SEMAPHORE_MAX, ErrorCode

# Cycles from a cause to its effect (1 means: the effect is in the cycle after the cause).
START_TO_FETCH = 1  # start pulse → first instruction read address
BEAT_TO_TAKE = 1  # last beat of an instruction on R → dispatch may take it
PUSH_TO_TAKE = 1  # push into a queue → dispatch may take the next instruction
PUSH_TO_START = 1  # push into a queue → the engine may accept it
TAKE_TO_FETCH = 1  # dispatch takes an instruction → fetch may use its place
ACCEPT_TO_ADDRESS = 1  # load accepted → first read address
BEAT_TO_ADDRESS = 1  # last beat of a burst on R → its place in flight may be used
BEAT_TO_DONE = 1  # last beat of a load on R → done
ACCEPT_TO_DATA = 3  # store accepted → first W beat
RESPONSE_TO_DATA = 2  # B of a burst → first W beat of the burst that takes its place in flight
RESPONSE_TO_DONE = 1  # last B → done
NEVER = 1 << 62

# Order of events within one cycle. Starts see only what earlier cycles did; a fetch wins the read
# address over a load; the memory takes a read before a write.
START, TAKE, FETCH, ADDRESS, DATA, DISPATCH, DONE, STOP = range(8)


@dataclass(slots=True)
class _Engine:
    queue: deque[tuple[Op, int]] = field(default_factory=deque)  # and cycle in which it is visible
    current: Retired | None = None
    last_pop: int = -1
    last_end: int = -1
    free_since: int = 0
    busy: int = 0
    starved: int = 0  # idle cycles in which the head of the queue lacked a token


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
        self.stop_cycle = NEVER  # from the cycle after it on nothing new begins
        self.ended = -1
        self.dispatch_stall = 0
        self.held_since = -1  # since when dispatch holds an instruction that it has checked
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
        violation = self.program.violation
        if violation and violation.code is ErrorCode.CONTRACT:
            self._fail(0, violation.code, 0, DISPATCH_ENGINE)
            return self._timeline(1)
        if self.program.length == 0:
            self.dispatching = 0
            self.at(START_TO_FETCH, DISPATCH, 0)
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
        heap = self.heap
        while heap and self.ended < 0:
            if heap[0][0] > self.stop_cycle and not any(e.current for e in self.engines):
                break
            now, order, argument = heapq.heappop(heap)
            handlers[order](now, argument)
        if self.ended >= 0:
            return self._timeline(self.ended)
        if self.stop_cycle == NEVER:
            raise ProgramError("the program makes no progress and has no cycle limit: deadlock")
        # Engines are idle from the cycle after their end, fetch from when all of it has arrived.
        idle = [e.last_end + 1 for e in self.engines]
        return self._timeline(max(self.stop_cycle + 1, *idle, *self.ready[-1:]))

    def _timeline(self, cycles: int) -> Timeline:
        counters = {f"{name}_beats": n for name, n in self.beats.items()}
        counters["dispatch_stall_cycles"] = self.dispatch_stall
        for name, engine in zip(ENGINES, self.engines, strict=True):
            counters[f"{name}_busy_cycles"] = engine.busy
            counters[f"{name}_wait_cycles"] = engine.starved
        fault = min(self.faults, key=lambda f: (f.index, f.cycle, f.priority), default=None)
        return Timeline(self.retired, cycles, fault, tuple(self.tokens), counters)

    # ------------------------------------------------------------------------------------ memory
    def _serve(self, arrival: int, beats: int) -> int:
        """The cycle in which service of a request begins."""
        begin = max(arrival + self.latency, self.memory_free)
        self.memory_free = begin + beats
        return begin

    def _fail(self, now: int, code: ErrorCode, index: int, engine: int) -> None:
        self.faults.append(Fault(code, index, engine, now, PRIORITY.index(code)))
        self.stop_cycle = min(self.stop_cycle, now)

    def _watchdog(self, now: int, _: int) -> None:
        """Blame the oldest instruction that runs or waits in a queue in this cycle, or dispatch."""
        if now > self.stop_cycle:
            return
        held = [(e.current.op.index, e.current.op.engine) for e in self.engines if e.current]
        held += [(r.op.index, r.op.engine) for r in self.retired if r.end == now]
        for engine in self.engines:
            held += [(op.index, op.engine) for op, visible in engine.queue if visible <= now]
        pushed = [op.index for e in self.engines for op, visible in e.queue if visible > now]
        holds = self.dispatching if self.dispatching >= 0 else self.taken
        held.append((min([holds, *pushed]), DISPATCH_ENGINE))
        self._fail(now, ErrorCode.WATCHDOG, *min(held))

    # ------------------------------------------------------------------------ fetch and dispatch
    def _fetch(self, now: int, _: int) -> None:
        """Send one instruction's read address."""
        if now > self.stop_cycle or self.fetched >= self.program.length:
            return
        if self.fetched - self.taken >= self.config.fetch_depth:
            return  # taking one schedules the next fetch
        if self.address_cycle == now:
            self.at(now + 1, FETCH)
            return
        self.address_cycle = now
        last = self._serve(now, self.fetch_beats) + self.fetch_beats - 1
        self.beats["fetch"] += self.fetch_beats
        self.ready.append(last + BEAT_TO_TAKE)
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
        if now > self.stop_cycle:
            return
        self.taken = index + 1
        self.at(now + TAKE_TO_FETCH, FETCH)
        self.at(now + DISPATCH_CYCLES, DISPATCH, index)

    def _dispatch(self, now: int, index: int) -> None:
        """Checks are done: report, retire END, or push into a queue that has a place."""
        if now > self.stop_cycle or index != self.dispatching:
            return
        if index in self.traffic.failing_fetch and index < self.program.length:
            self._fail(now, ErrorCode.BUS_FETCH, index, DISPATCH_ENGINE)
            return
        if index >= len(self.ops):
            violation = self.program.violation
            assert violation is not None
            self._fail(now, violation.code, index, DISPATCH_ENGINE)
            return
        op = self.ops[index]
        self.held_since = now if self.held_since < 0 else self.held_since
        if op.engine == END:
            self._end(now, index)
            return
        engine = self.engines[op.engine]
        # A place that was freed in this cycle is usable in the next.
        waiting = len(engine.queue) + (engine.last_pop == now)
        if waiting >= self.config.queue_depth:
            if engine.last_pop == now:
                self.at(now + 1, DISPATCH, index)
            return  # else a later pop schedules the next attempt
        self.dispatch_stall += now - self.held_since
        self.held_since = -1
        engine.queue.append((op, now + PUSH_TO_START))
        self.at(now + PUSH_TO_START, START, op.engine)
        self.dispatching, self.dispatch_free = -1, now + PUSH_TO_TAKE
        if self.taken < self.fetched:
            self._next(self.taken)
        elif self.taken >= self.program.length:
            self.dispatching = self.taken  # there was no END
            self.at(now + 1, DISPATCH, self.taken)

    def _end(self, now: int, index: int) -> None:
        """END retires once queues, engines and fetch are empty and idle."""
        if any(e.queue or e.current or e.last_end == now for e in self.engines):
            return  # the end of an instruction schedules the next attempt
        more = self.fetched < self.program.length
        if more and self.fetched - self.taken < self.config.fetch_depth:
            self.at(now + 1, DISPATCH, index)
        elif self.ready[-1] > now:
            self.at(self.ready[-1], DISPATCH, index)
        else:
            self.ended = now

    # ------------------------------------------------------------------------------------ engines
    def _start(self, now: int, number: int) -> None:
        """An engine accepts the head of its queue if it is idle and the tokens are there."""
        engine = self.engines[number]
        if now > self.stop_cycle or engine.current or not engine.queue:
            return
        op, visible = engine.queue[0]
        if visible > now:
            return
        if any(not self.tokens[giver * 4 + number] for giver in op.take):
            return
        for giver in op.take:
            self.tokens[giver * 4 + number] -= 1
        engine.queue.popleft()
        engine.current = Retired(op, now)
        self.retired.append(engine.current)
        engine.last_pop = now
        engine.starved += now - max(engine.free_since, visible)
        if self.held_since >= 0:
            self.at(now + 1, DISPATCH, self.dispatching)
        if number == LOAD:
            self.burst = 0
            self.at(now + ACCEPT_TO_ADDRESS, ADDRESS)
        elif number == STORE:
            self.write_burst = 0
            first = self.traffic.bursts[op.index][0]
            self.at(now + ACCEPT_TO_DATA + first - 1, DATA)
        else:
            self.at(now + op.duration, DONE, number)

    def _address(self, now: int, _: int) -> None:
        """The load DMA sends read addresses until another event comes first."""
        current = self.engines[LOAD].current
        assert current is not None
        flights, heap = self.flights, self.heap
        bursts = self.traffic.bursts[current.op.index]
        outstanding = self.config.read_outstanding
        while not heap or (now, ADDRESS, 0) <= heap[0]:
            if self.address_cycle == now:
                now += 1
                continue
            while flights and flights[0] <= now:
                flights.popleft()
            if len(flights) >= outstanding:
                now = flights[0]
                continue
            beats = bursts[self.burst]
            self.burst += 1
            self.address_cycle = now
            end = self._serve(now, beats) + beats
            self.beats["load"] += beats
            flights.append(end - 1 + BEAT_TO_ADDRESS)
            if self.burst == len(bursts):
                self.at(end - 1 + BEAT_TO_DONE, DONE, LOAD)
                return
            now += 1
        self.at(now, ADDRESS)

    def _data(self, now: int, _: int) -> None:
        """The store DMA sends last W beats of bursts until another event comes first."""
        current = self.engines[STORE].current
        assert current is not None
        writes, heap = self.writes, self.heap
        bursts = self.traffic.bursts[current.op.index]
        while not heap or (now, DATA, 0) <= heap[0]:
            beats = bursts[self.write_burst]
            self.write_burst += 1
            response = self._serve(now, beats) + beats
            self.beats["store"] += beats
            writes.append(response)
            if self.write_burst == len(bursts):
                writes.clear()
                self.at(response + RESPONSE_TO_DONE, DONE, STORE)
                return
            first = now + 1
            while writes and writes[0] + RESPONSE_TO_DATA <= first:
                writes.popleft()
            if len(writes) >= self.config.write_outstanding:
                first = writes.popleft() + RESPONSE_TO_DATA
            now = first + bursts[self.write_burst] - 1
        self.at(now, DATA)

    def _done(self, now: int, number: int) -> None:
        """An engine ends an instruction and gives its tokens."""
        engine = self.engines[number]
        current = engine.current
        assert current is not None
        current.end, engine.last_end, engine.free_since = now, now, now + 1
        engine.current = None
        engine.busy += now - current.start
        op = current.op
        if op.index in self.traffic.failing:
            code = ErrorCode.BUS_READ if number == LOAD else ErrorCode.BUS_WRITE
            self._fail(now, code, op.index, number)
        if now > self.stop_cycle:
            return
        for taker in op.give:
            place = number * 4 + taker
            if self.tokens[place] >= SEMAPHORE_MAX:
                self._fail(now, ErrorCode.SEMAPHORE, op.index, number)
                continue
            self.tokens[place] += 1
            self.at(now + 1, START, taker)
        self.at(now + 1, START, number)
        if self.held_since >= 0 and self.ops[self.dispatching].engine == END:
            self.at(now + 1, DISPATCH, self.dispatching)
