"""From what was measured to what is to blame.

What comes in: rungs, facts about the input, layers and their comparisons. What goes out: faults,
that of the earliest rung first. It must not know how anything was computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from accelsim.artifacts import Comparison, LayerReport
from accelsim.diagnose.noise import noisiest
from accelsim.diagnose.record import Fault, InputFacts, LayerRow, Rung
from accelsim.verify.layers import Whole

DROWNED_DB = 10.0  # of an output without classes: less signal over noise is another result
MODULES = {"sim": "simulator", "rtl": "rtl"}
MANY_CLIPPED = 0.01


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a verdict rests on."""

    rungs: Sequence[Rung]
    label: int | None
    inputs: Sequence[InputFacts]
    traps: Sequence[str]
    rows: Sequence[LayerRow]
    layers: Sequence[LayerReport]
    drift: str  # first layer of the whole network where framework and integer reference differ
    backends: Sequence[str]
    whole: Whole

    def rung(self, name: str) -> Rung | None:
        """A rung that has outputs."""
        return next((one for one in self.rungs if one.name == name and one.outputs), None)


def faults(evidence: Evidence) -> list[Fault]:
    """Everything that is wrong, in the order of the rungs."""
    found = [*_preprocessing(evidence)]
    if not found:
        found += _quantization(evidence)
    return [*found, *_compiler(evidence), *_backends(evidence)]


def _preprocessing(evidence: Evidence) -> Iterator[Fault]:
    first = evidence.rung("float")
    details = [*map(ranges, evidence.inputs), *evidence.traps]
    wrong = (
        first is not None
        and first.classes is not None
        and evidence.label is not None
        and first.classes[0] != evidence.label
    )
    if wrong:
        assert first is not None and first.classes is not None
        sentence = (
            f"the float network already says {first.classes[0]}, not {evidence.label}: the input "
            "is not what it was trained on, or it is a sample that it gets wrong"
        )
        yield Fault("preprocessing", sentence, details=tuple(details))
        return
    for facts in evidence.inputs:
        hurts = facts.clipped >= MANY_CLIPPED and _changed(evidence)
        if facts.far or hurts:
            sentence = (
                f"{facts.clipped:.0%} of input {facts.name} lie outside of the calibrated range "
                "and saturate at the first quantize"
            )
        elif facts.faint:
            sentence = (
                f"input {facts.name} reaches {facts.levels} of the levels of its quantize: it is "
                "far smaller than what was calibrated"
            )
        else:
            continue
        yield Fault("preprocessing", sentence, details=tuple(details))
        return


def ranges(facts: InputFacts) -> str:
    """One input and what its quantize makes of it, as a sentence."""
    return (
        f"input {facts.name} has {facts.low:g} to {facts.high:g}, its quantize holds "
        f"{facts.range_low:g} to {facts.range_high:g}: {facts.clipped:.1%} clipped, "
        f"{facts.levels} levels reached"
    )


def _changed(evidence: Evidence) -> bool:
    """Whether int8 answers otherwise than float."""
    first, second = evidence.rung("float"), _int8(evidence)
    return first is not None and second is not None and _differ(first, second)


def _int8(evidence: Evidence) -> Rung | None:
    """The first int8 rung: the framework's, or else the QDQ graph on TVM."""
    return evidence.rung("framework") or evidence.rung("qdq")


def _differ(one: Rung, other: Rung) -> bool:
    """Whether two rungs give another result: another class, or an output that noise drowns."""
    if one.classes is not None and other.classes is not None:
        return one.classes != other.classes
    return other.output_db is not None and other.output_db < DROWNED_DB


def _quantization(evidence: Evidence) -> Iterator[Fault]:
    first, second = evidence.rung("float"), _int8(evidence)
    if first is None or second is None:
        return
    if _differ(first, second):
        what = "its output has next to no signal left"
        if first.classes is not None and second.classes is not None:
            what = f"it says {_spoken(second)} where float says {_spoken(first)}"
        loud = noisiest(list(evidence.rows))
        details = [
            f"layer {row.name} ({row.operator}): {row.sqnr_db:.1f} dB left, {row.lost_db:.1f} dB "
            f"lost here, {row.clipped:.1%} of it clipped"
            for row in loud
        ]
        details.append(
            "accelsim quantize --sensitivity ranks layers; --keep-float NAME leaves one in float"
        )
        sentence = f"float is right and {second.title} are not: {what}"
        yield Fault("quantization", sentence, loud[0].name if loud else "", tuple(details))
        return
    near, integer = evidence.rung("qdq"), evidence.rung("integer")
    if near is not None and integer is not None and near.classes is not None:
        same = integer.classes == second.classes
        if same and near.classes != second.classes:
            yield Fault(
                "quantization",
                f"a near tie: TVM's rounding of the same int8 network says {_spoken(near)}, the "
                f"framework and the integer reference {_spoken(second)}",
            )


def _spoken(one: Rung) -> str:
    assert one.classes is not None
    return ", ".join(map(str, one.classes))


def _compiler(evidence: Evidence) -> Iterator[Fault]:
    """Framework and integer reference differ, or simulator and RTL agree on something else."""
    for layer in evidence.layers:
        for backend in evidence.backends:
            equal = _of(layer, backend, "integer", "isolated")
            own = _of(layer, backend, "framework", "isolated")
            exact = equal is not None and equal.status == "equal"
            if exact and own is not None and own.gate and own.status == "different":
                sentence = (
                    f"layer {layer.name}: the integer reference differs from the framework on the "
                    f"same inputs, {_counted(own)}"
                )
                yield Fault("compiler", sentence, layer.name, _where(own))
                return
    second, integer = _int8(evidence), evidence.rung("integer")
    if second is not None and integer is not None and _another(second, integer):
        sentence = (
            f"the integer reference says otherwise than {second.title}, though each layer alone "
            "gives what the framework's does"
        )
        if evidence.drift:
            sentence += f": differences add up from layer {evidence.drift} on"
        yield Fault("compiler", sentence, evidence.drift)


def _another(one: Rung, other: Rung) -> bool:
    return one.classes is not None and other.classes is not None and one.classes != other.classes


def _backends(evidence: Evidence) -> Iterator[Fault]:
    """Backends against the integer reference; equal ones that differ from it blame the program."""
    wrong = {name: _first_wrong(evidence, name) for name in evidence.backends}
    if len(wrong) == 2 and all(wrong.values()) and _alike(wrong):
        layer, found = next(one for one in wrong.values() if one is not None)
        sentence = (
            f"layer {layer.name}: simulator and RTL agree and the integer reference differs, "
            f"{_counted(found)}: the program is wrong"
        )
        yield Fault("compiler", sentence, layer.name, _where(found))
        return
    for name, one in wrong.items():
        if one is not None:
            layer, found = one
            what = f"differs from the integer reference, {_counted(found)}"
            if found.status == "missing":
                what = found.cause or "gave no result"
            sentence = f"layer {layer.name}, {found.mode}: the {_called(name)} {what}"
            if name == "sim" and "rtl" not in evidence.backends:
                sentence += "; --backend sim --backend rtl tells whether the program is to blame"
            yield Fault(MODULES[name], sentence, layer.name, _where(found))
        elif name in evidence.whole.failures:
            yield Fault(MODULES[name], evidence.whole.failures[name])
        elif _outputs_differ(evidence, name):
            yield Fault(
                "compiler",
                f"every layer on the {_called(name)} equals the integer reference, and the class "
                "does not: the host's part of the compiled network is wrong",
            )


def _outputs_differ(evidence: Evidence, name: str) -> bool:
    own, integer = evidence.rung(name), evidence.rung("integer")
    return own is not None and integer is not None and _another(integer, own)


def _called(backend: str) -> str:
    return {"sim": "simulator", "rtl": "RTL"}[backend]


def _first_wrong(evidence: Evidence, backend: str) -> tuple[LayerReport, Comparison] | None:
    """The first layer that is wrong on its own; else the first that is in the whole network."""
    for mode in ("isolated", "accumulated"):
        for layer in evidence.layers:
            found = _of(layer, backend, "integer", mode)
            if found is not None and found.status in ("different", "missing"):
                return layer, found
    return None


def _alike(wrong: dict[str, tuple[LayerReport, Comparison] | None]) -> bool:
    """Whether two backends are wrong in the same layer by the same elements and values."""
    one, other = wrong.values()
    if one is None or other is None or one[0].name != other[0].name:
        return False
    a, b = one[1], other[1]
    if a.status == "missing" or b.status == "missing" or a.first is None or b.first is None:
        return False
    same_first = (a.first.index, a.first.actual) == (b.first.index, b.first.actual)
    return (a.mode, a.mismatches, a.max_abs_diff) == (
        (b.mode, b.mismatches, b.max_abs_diff)
    ) and same_first


def _of(layer: LayerReport, backend: str, golden: str, mode: str) -> Comparison | None:
    wanted = (backend, golden, mode)
    return next((c for c in layer.compare if (c.actual, c.golden, c.mode) == wanted), None)


def _counted(c: Comparison) -> str:
    return f"{c.mismatches:,} of {c.elements:,} elements by at most {c.max_abs_diff}"


def _where(c: Comparison) -> tuple[str, ...]:
    """Where a comparison first differs, and its cause where that is known."""
    cause = () if c.cause is None or c.status == "missing" else (c.cause,)
    if c.first is None:
        return cause
    text = f"first at [n, h, w, c] = {list(c.first.index)}: expected {c.first.expected}, got "
    text += str(c.first.actual)
    if c.first.instruction >= 0:
        text += f"; tile {c.first.tile}, instruction {c.first.instruction}"
    return (text, *([c.first.text] if c.first.text else []), *cause)
