"""A first run of a converted module, on zeros.

What comes in: the module, its inputs' types and the shapes that the file gives its tensors. What
goes out: nothing, or an error that names the layer. It must not know the file's format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import fx

from accelsim.errors import ModelError
from accelsim.importer.reasons import reason

Shape = tuple[int, ...]
DAMAGES = (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError)
"""What numbers of a file that contradict one another make NumPy, Python and PyTorch raise."""


def contradiction(layer: str, operator: str, error: BaseException) -> ModelError:
    """A refusal of a layer whose attributes, constants and shapes do not fit one another."""
    what = f" ({operator})" if operator else ""
    return ModelError(
        f"layer '{layer}'{what} cannot be computed in PyTorch ({reason(error)}); its attributes, "
        "constants and shapes must fit one another"
    )


class _Trial(fx.Interpreter):
    """Runs a module node by node, and compares shapes."""

    def __init__(self, module: fx.GraphModule, shapes: Mapping[fx.Node, Shape]) -> None:
        super().__init__(module)
        self.extra_traceback = False  # of which an error's sentence would get several lines
        self._shapes = shapes

    def run_node(self, n: fx.Node) -> Any:
        layer = str(n.meta.get("user_name", n.target))
        try:
            result = super().run_node(n)
        except DAMAGES as error:
            raise contradiction(layer, "", error) from error
        wanted = self._shapes.get(n)
        if wanted is not None and tuple(result.shape) != wanted:
            raise ModelError(
                f"layer '{layer}' gives a tensor of shape {tuple(result.shape)} where the file "
                f"says {wanted}, which is not supported; export the model again with fixed shapes"
            )
        return result


def tried(
    module: fx.GraphModule, inputs: Sequence[tuple[str, Shape]], shapes: Mapping[fx.Node, Shape]
) -> fx.GraphModule:
    """The module, which ran once.

    Args:
        module: what was converted; `shapes` has keys of its graph, in the order of its nodes.
        inputs: NumPy's name of the type, and the shape of each.
        shapes: what the file says of a node's result, where it does.

    Raises ModelError where a layer cannot be computed, or has another shape than the file says.
    """
    zeros = [torch.from_numpy(np.zeros(shape, np.dtype(dtype))) for dtype, shape in inputs]
    with torch.no_grad():
        _Trial(module, shapes).run(*zeros)
    return module
