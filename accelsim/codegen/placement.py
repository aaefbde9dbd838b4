"""Which layers run on the NPU of one configuration: those whose region compiles.

What comes in: a `QuantizedModel`, a configuration and a region compiler. What goes out: regions
with their programs, and a legalized module that leaves layers that no tiling fits to the host. It
must not know how a program is embedded in a library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from accelsim.artifacts import Layer, Program, QuantizedModel, Region
from accelsim.errors import ModelError, ProgramError
from accelsim.legalize import Legalized, legalize
from accelsim.partition import Stages, partition, regions_of
from accelsim.spec.config import Config

CompileRegion = Callable[[Region, Config], Program]


@dataclass(frozen=True, slots=True)
class Placement:
    """A partitioned network. `programs` are in the order of `regions`."""

    legalized: Legalized
    stages: Stages
    regions: tuple[Region, ...]
    programs: tuple[Program, ...]


def place(
    quantized: QuantizedModel,
    config: Config,
    members: Mapping[str, tuple[str, ...]],
    compile_one: CompileRegion,
) -> Placement:
    """Partition and compile; what does not fit goes to the host, and the rest is tried again.

    Raises ModelError where a region does not compile though each of its layers does, or though its
    layers were refused before.
    """
    refused: dict[str, str] = {}
    while True:
        legalized = legalize(quantized, refused)
        stages = partition(legalized)
        regions = regions_of(stages.merged, legalized.layers, members)
        programs = []
        found: dict[str, str] = {}
        for region in regions:
            try:
                programs.append(compile_one(region, config))
            except (ModelError, ProgramError) as error:
                reasons = _refusals(region, config, compile_one)
                if not reasons.keys() - refused.keys():
                    raise ModelError(f"{region.symbol} cannot be compiled: {error}") from error
                found |= reasons
        if not found:
            return Placement(legalized, stages, regions, tuple(programs))
        refused |= found


def _refusals(region: Region, config: Config, compile_one: CompileRegion) -> dict[str, str]:
    """Layer name → why that layer alone does not compile."""
    reasons = {}
    for layer in region.layers:
        try:
            compile_one(_alone(region, layer), config)
        except (ModelError, ProgramError) as error:
            reasons[layer.name] = f"it does not fit configuration {config.name}: {error}"
    return reasons


def _alone(region: Region, layer: Layer) -> Region:
    """A region of one layer."""
    names = (*layer.inputs, layer.output)
    return Region(
        symbol=region.symbol,
        tensors={name: region.tensors[name] for name in names},
        inputs=tuple(dict.fromkeys(layer.inputs)),
        outputs=(layer.output,),
        layers=(layer,),
    )
