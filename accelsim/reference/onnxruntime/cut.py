"""Parts of an ONNX graph between its integer tensors.

What comes in: an `OnnxModel`, names of tensors. What goes out: nodes in execution order. It must
not know what they compute.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from accelsim.importer.onnx import OnnxModel, OnnxNode


def slice_of(
    model: OnnxModel, outputs: Sequence[str], stops: Collection[str]
) -> tuple[OnnxNode, ...] | None:
    """The nodes that give `outputs` from `stops`; None where they start from a model input."""
    made = {name: node for node in model.nodes for name in node.outputs if name}
    kept: set[str] = set()
    waiting = [name for name in outputs if name in made]
    first = set(waiting)
    while waiting:
        name = waiting.pop()
        if not name or name in model.constants or (name in stops and name not in first):
            continue
        first.discard(name)
        if name not in made:
            return None
        node = made[name]
        if node.name not in kept:
            kept.add(node.name)
            waiting.extend(node.inputs)
    return tuple(node for node in model.nodes if node.name in kept)


def ordered(nodes: Sequence[OnnxNode], known: Collection[str]) -> list[OnnxNode]:
    """Nodes in an order of execution; `known` are constants and inputs."""
    made = {name for node in nodes for name in node.outputs if name}
    ready, result, waiting = set(known), [], list(nodes)
    while waiting:
        late = []
        for node in waiting:
            if all(name in ready or name not in made for name in node.inputs):
                ready.update(node.outputs)
                result.append(node)
            else:
                late.append(node)
        if len(late) == len(waiting):
            return [*result, *late]
        waiting = late
    return result
