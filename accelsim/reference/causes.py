"""Why PyTorch's kernel may differ from the integer reference, established by computing it.

What comes in: a layer, its inputs and PyTorch's output. What goes out: a sentence, or None. It must
not know tolerances: a cause counts only where it explains every output.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from accelsim.artifacts import I8
from accelsim.reference.integer import Reference, build_network
from accelsim.reference.operators import HOST, family


def torch_cause(
    reference: Reference, layer_name: str, inputs: tuple[I8, ...], torch_output: I8
) -> str | None:
    """The cause of a difference between reference and PyTorch in one isolated layer.

    None where no known cause gives exactly PyTorch's outputs: then it is a defect of one of them.
    """
    layer = reference.network.layer(layer_name)
    causes = {} if layer.family == HOST else family(layer.family).causes
    alone = replace(reference.network, layers=(layer,))
    for rounding, cause in causes.items():
        other = build_network(alone, rounding).run_layer(layer_name, inputs)
        if np.array_equal(other, torch_output):
            return cause
    return None
