"""Programs: container, tokens, layers cut out, memory layout."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from accelsim.artifacts import Access, Launch, Program, Step
from accelsim.emit import (
    compile_region,
    isolate,
    launch_memory,
    pack,
    program_from_bytes,
    program_to_bytes,
    unpack,
)
from accelsim.emit.tokens import assign
from accelsim.errors import AccelsimError, InputError, ProgramError
from accelsim.simulate import Simulator
from accelsim.spec.config import CONFIGS
from accelsim.spec.encoding import check, decode, positions
from tests.schedule import layers

EDGE8 = CONFIGS["edge8"]


@pytest.fixture(scope="module")
def program() -> Program:
    rng = np.random.default_rng(4)
    pad = {"padding": (1, 1, 1, 1)}
    ops = layers.conv(rng, 20, 20, **pad), layers.add(rng), layers.conv(rng, 20, 12, **pad)
    return compile_region(layers.region((1, 8, 8, 20), *ops), EDGE8)


def test_container_round_trips(program: Program) -> None:
    back = program_from_bytes(program_to_bytes(program))
    assert (back.words == program.words).all()
    for field in dataclasses.fields(Program):
        if field.name != "words":
            assert getattr(back, field.name) == getattr(program, field.name), field.name


def test_every_damaged_byte_of_the_container_is_refused(program: Program) -> None:
    data = program_to_bytes(program)
    rng = np.random.default_rng(1)
    for at in [*range(60), *rng.integers(60, len(data), 40)]:
        damaged = bytearray(data)
        damaged[at] ^= 1 << int(rng.integers(8))
        with pytest.raises(ProgramError):
            program_from_bytes(bytes(damaged))
    for length in (0, 7, 43, 44, len(data) - 1):
        with pytest.raises(ProgramError):
            program_from_bytes(data[:length])


def _shifted(program: Program, name: str, offset: int) -> Program:
    extent = dataclasses.replace(program.tensors[name], offset_bytes=offset)
    return dataclasses.replace(program, tensors={**program.tensors, name: extent})


WRONG_HEADERS = {
    "beyond_memory": lambda p: _shifted(p, "t1", 1 << 20),
    "before_memory": lambda p: _shifted(p, "t1", -64),
    "program_overwritten": lambda p: dataclasses.replace(
        p, tensors={**p.tensors, "x": dataclasses.replace(p.tensors["x"], base=0)}
    ),
    "unknown_input": lambda p: dataclasses.replace(p, inputs=("y",)),
    "unknown_output": lambda p: dataclasses.replace(p, outputs=("y",)),
    "tiles_missing": lambda p: dataclasses.replace(p, tile_of=p.tile_of[:-1]),
    "instructions_missing": lambda p: dataclasses.replace(p, words=p.words[:4]),
    "empty_tensor": lambda p: dataclasses.replace(
        p, tensors={**p.tensors, "x": dataclasses.replace(p.tensors["x"], shape=(1, 0, 8, 20))}
    ),
}


@pytest.mark.parametrize("case", WRONG_HEADERS)
def test_a_header_that_contradicts_itself_is_refused(case: str, program: Program) -> None:
    data = program_to_bytes(WRONG_HEADERS[case](program))
    with pytest.raises(ProgramError, match="header is malformed"):
        program_from_bytes(data)


def test_every_instruction_is_legal_and_only_the_last_is_end(program: Program) -> None:
    assert all(check(w, EDGE8, program.opcode_mask) is None for w in program.words)
    names = [decode(w)[0].name for w in program.words]
    assert names.index("end") == len(names) - 1


def test_layers_own_every_instruction_but_end_once(program: Program) -> None:
    owned = sorted(i for layer in program.layers for i in layer.instructions)
    assert owned == list(range(len(program.words) - 1))


def test_without_any_one_token_the_simulator_objects(program: Program) -> None:
    """Each token that the compiler places is needed: removing a give and its take is a race."""
    taken = [
        (i, bit)
        for i, w in enumerate(program.words)
        for bit in range(4)
        if decode(w)[1]["take"] >> bit & 1
    ]
    rng = np.random.default_rng(3)
    x = layers.random_input(rng, (1, 8, 8, 20))
    for i, bit in [taken[k] for k in rng.choice(len(taken), 12, replace=False)]:
        words = program.words.copy()
        at = positions(decode(words[i])[0].name)["take"] + bit
        words[i, at // 32] ^= np.uint32(1 << at % 32)
        broken = dataclasses.replace(program, words=words)
        with pytest.raises(AccelsimError):
            Simulator(EDGE8).run(Launch(broken, launch_memory(broken, {"x": x})))


def test_tokens_follow_the_furthest_dependence_and_skip_implied_ones() -> None:
    def step(name: str, *accesses: Access) -> Step:
        return Step(name, {}, 0, 0, accesses)

    steps = [
        step("load", Access("act", 0, 8, True)),
        step("load", Access("wgt", 0, 8, True)),
        step("conv", Access("act", 0, 8, False), Access("wgt", 0, 8, False)),
        step("load", Access("act", 4, 6, True)),
        step("conv", Access("act", 0, 4, False)),
    ]
    assert assign(steps) == [(0, 0), (0, 2), (1, 1), (2, 0), (0, 0)]


def test_a_layer_cut_out_starts_with_the_tokens_that_earlier_layers_left(program: Program) -> None:
    cut, presets = isolate(program, 1)
    assert cut.partial
    assert (cut.words[:-1] == program.words[list(program.layers[1].instructions)]).all()
    assert sum(presets) > 0
    assert sum(isolate(program, 0)[1]) == 0


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 3, 4, 8), (1, 2, 2, 17)], ids=str)
def test_layout_round_trips_with_zero_pad_lanes(shape: tuple[int, int, int, int]) -> None:
    values = layers.random_input(np.random.default_rng(2), shape)
    region = layers.region(shape, layers.pool("max", (1, 1), (1, 1)))
    extent = compile_region(region, EDGE8).tensors["x"]
    data = pack(values, 8)
    assert data.size == extent.size_bytes(8)
    assert data.reshape(-1, 8)[:, shape[3] % 8 or 8 :].sum() == 0 or shape[3] > 8
    np.testing.assert_array_equal(unpack(data, extent, 8), values)


def test_launch_names_wrong_tensors(program: Program) -> None:
    with pytest.raises(InputError, match="no tensor 'y'"):
        launch_memory(program, {"y": np.zeros((1, 1, 1, 1), np.int8)})
    with pytest.raises(InputError, match=r"expected int8 of shape \(1, 8, 8, 20\), got int32"):
        launch_memory(program, {"x": np.zeros((1, 8, 8, 20), np.int32)})
