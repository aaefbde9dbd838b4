"""A program that fails becomes one of a few instructions that fails alike."""

from __future__ import annotations

import numpy as np
import pytest

from accelsim.programs.building import chain, launch
from accelsim.programs.phases import random_launch
from accelsim.programs.reducing import reduced
from accelsim.programs.streams import regions, serial
from accelsim.simulate import Simulator
from accelsim.spec.config import CONFIGS
from accelsim.spec.encoding import decode

EDGE = CONFIGS["edge8"]


def digests(simulator, given):
    return [(r.index, r.digest) for r in simulator.run(given).records]


def with_bug(bug):
    """Whether an honest simulator and one with a bug differ in what instructions write."""
    honest, wrong = Simulator(EDGE), Simulator(EDGE, bug=bug)
    return lambda given: digests(honest, given) != digests(wrong, given)


def in_turn(rng):
    return launch(EDGE, serial(rng, EDGE, 60), dram=regions(1, EDGE.lanes))


@pytest.mark.parametrize(
    ("bug", "name", "make"),
    [
        ("binary_kind", "binary", in_turn),
        ("conv_sign", "conv", in_turn),
        ("conv_sign", "conv", lambda rng: random_launch(rng, EDGE)),
    ],
)
def test_a_wrong_instruction_is_left_with_what_it_reads(bug, name, make, seed):
    fails = with_bug(bug)
    small = reduced(make(np.random.default_rng(seed)), fails)
    assert small is not None and fails(small)
    names = [decode(words)[0].name for words in small.program.words]
    assert name in names and len(names) <= 7, names


def test_what_does_not_fail_in_turn_is_not_reduced():
    assert reduced(launch(EDGE, chain(EDGE)), lambda given: False) is None
