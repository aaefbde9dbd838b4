"""A case through the whole compiler: legalized, partitioned, scheduled, and run on every backend.

What comes in: `Compiled`. What goes out: where its outputs differ from the peer's. It must not know
any peer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accelsim.artifacts import Backend, Launch, Program
from accelsim.codegen.launch import to_graph, to_nhwc
from accelsim.codegen.placement import place
from accelsim.emit import compile_region, launch_memory, read_tensor
from accelsim.peers.case import Compiled
from accelsim.quantize import layer_members
from accelsim.spec.config import Config


def difference(case: Compiled, config: Config, backends: Sequence[Backend]) -> str:
    """Where an output first differs from the peer's, or why there is none; nothing if all equal."""
    found = _program(case, config)
    if isinstance(found, str):
        return found
    names = [f"in{number}" for number in range(len(case.inputs))]
    inputs = {
        name: to_nhwc(values, found.tensors[name].layout)
        for name, values in zip(names, case.inputs, strict=True)
    }
    (output,) = found.outputs
    for backend in backends:
        result = backend(Launch(found, launch_memory(found, inputs)))
        if result.error_code:
            return f"{result.backend} stopped with error {result.error_code}"
        values = to_graph(read_tensor(found, result.dram, output), found.tensors[output].layout)
        wrong = values != case.expected
        if wrong.any():
            at = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
            return (
                f"{int(wrong.sum())} of {wrong.size} elements differ; {at}: the peer has "
                f"{case.expected[at]}, not {values[at]}"
            )
    return ""


def _program(case: Compiled, config: Config) -> Program | str:
    """The one program of the network, or what the host would have to do."""
    model = case.model()
    placed = place(model, config, layer_members(model.qdq), compile_region)
    if len(placed.programs) != 1:
        reasons = "; ".join(one.reason for one in placed.legalized.host_ops) or "no layer"
        return f"left to the host: {reasons}"
    return placed.programs[0]
