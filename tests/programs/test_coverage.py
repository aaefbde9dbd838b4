"""Random programs hold every form of every instruction, and ties tell the rounding modes apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from accelsim.programs.building import launch
from accelsim.programs.coverage import drawn, form_of, forms, summary
from accelsim.programs.phases import random_launch
from accelsim.programs.streams import regions, serial
from accelsim.programs.ties import ties
from accelsim.simulate import Simulator
from accelsim.spec.config import CONFIGS
from accelsim.spec.encoding import decode, encode

EDGE = CONFIGS["edge8"]
PROGRAMS = 100


def test_forms_are_the_products_of_modes_kinds_and_flags():
    counts = Counter(form.split()[0] for form in forms())
    assert counts == {
        "end": 1,
        "load": 4,
        "store": 1,
        "conv": 4,
        "dwconv": 4,
        "drain": 5,
        "pool": 10,
        "add": 3 * 2 * 4,
        "binary": 5 * 3 * 4,
        "lookup": 2,
        "softmax": 2,
        "layernorm": 1,
    }
    assert len(set(forms())) == len(forms())
    assert form_of("binary", {"mode": 2, "kind": 1, "a_scalar": 0, "b_scalar": 1}) in forms()


def test_random_programs_hold_every_form(seed):
    counts: Counter[str] = Counter()
    for number in range(PROGRAMS):
        rng = np.random.default_rng([seed, number])
        counts += drawn(random_launch(rng, EDGE).program.words)
        counts += drawn(launch(EDGE, serial(rng, EDGE, 60)).program.words)
    assert set(forms()) == set(counts)
    assert not any("never" in line for line in summary(counts))
    assert "never end" in "".join(summary(Counter()))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_serial_programs_are_free_of_mistakes_and_errors(config, seed):
    rng = np.random.default_rng([seed, config.lanes])
    given = launch(config, serial(rng, config, 60), dram=regions(1, config.lanes))
    assert Simulator(config).run(given).error_code == 0


@pytest.mark.parametrize(("name", "mode"), [(n, m) for n in ("drain", "binary") for m in range(5)])
def test_every_integer_mode_differs_from_every_other_beside_ties(name, mode, seed):
    given = ties(np.random.default_rng(seed), EDGE)
    honest = Simulator(EDGE).run(given)
    words = given.program.words
    index = next(
        i
        for i, (row, values) in enumerate(map(decode, words))
        if row.name == name and values["mode"] == mode
    )
    digest = {r.index: r.digest for r in honest.records}[index]
    for other in set(range(1, 5)) - {mode} if mode else ():
        changed = words.copy()
        changed[index] = encode(name, {**decode(words[index])[1], "mode": other}, EDGE)
        program = replace(given.program, words=changed)
        result = Simulator(EDGE).run(replace(given, program=program))
        assert {r.index: r.digest for r in result.records}[index] != digest
    assert mode or honest.error_code == 0
