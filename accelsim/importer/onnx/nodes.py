"""Operators of an ONNX graph: checked, named and in execution order.

What comes in: a `GraphProto`. What goes out: `OnnxNode`s. It must not know what they compute.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from accelsim.errors import ModelError
from accelsim.importer.onnx.model import MICROSOFT, OnnxNode
from accelsim.importer.onnx.tensors import tensor_of

_CONTROL = ("If", "Loop", "Scan", "SequenceMap")


def nodes_of(
    graph: Any, folder: Path | None, name: str, opsets: Mapping[str, int]
) -> list[OnnxNode]:
    """The nodes in the file's order, with the file's names. Raises ModelError."""
    return [_node(node, folder, name, opsets) for node in graph.node]


def _node(node: Any, folder: Path | None, name: str, opsets: Mapping[str, int]) -> OnnxNode:
    operator, domain = str(node.op_type), "" if node.domain == "ai.onnx" else str(node.domain)
    called = node.name or next(iter(node.output), "")
    where = f"layer '{called}' ({operator}) of {name}"
    if operator in _CONTROL:
        raise ModelError(f"{where} is control flow; export the model as one straight graph")
    if domain not in opsets:
        raise ModelError(f"{where} is of the domain {domain!r}, of which the file has no opset")
    if domain == "" and not _exists(operator, opsets[""]):
        raise ModelError(f"{where} is no operator of ONNX's opset {opsets['']}")
    if domain not in ("", MICROSOFT):
        raise ModelError(f"{where} is of the domain {domain!r}, which accelsim does not know")
    attributes: dict[str, Any] = {}
    for one in node.attribute:
        if one.name in attributes:
            raise ModelError(f"{where} has the attribute '{one.name}' twice")
        attributes[str(one.name)] = _attribute(one, folder, where)
    if not any(node.output):
        raise ModelError(f"{where} has no output")
    return OnnxNode(
        str(node.name), operator, domain, tuple(node.input), tuple(node.output), attributes
    )


def _exists(operator: str, version: int) -> bool:
    from onnx import defs

    try:
        return not defs.get_schema(operator, version).deprecated
    except defs.SchemaError:
        return False


def _attribute(one: Any, folder: Path | None, where: str) -> Any:
    from onnx import AttributeProto as Kinds

    if one.ref_attr_name:
        raise ModelError(f"{where} has an attribute that refers to a function")
    plain = {Kinds.INT: "i", Kinds.FLOAT: "f"}
    many = {Kinds.INTS: "ints", Kinds.FLOATS: "floats"}
    if one.type in plain:
        return getattr(one, plain[one.type])
    if one.type in many:
        return tuple(getattr(one, many[one.type]))
    try:
        if one.type == Kinds.STRING:
            return one.s.decode()
        if one.type == Kinds.STRINGS:
            return tuple(text.decode() for text in one.strings)
    except UnicodeDecodeError:
        raise ModelError(f"{where} has an attribute '{one.name}' that is no text") from None
    if one.type == Kinds.TENSOR:
        value = tensor_of(one.t, folder, f"attribute '{one.name}' of {where}")
        if isinstance(value, str):
            raise ModelError(f"attribute '{one.name}' of {where} is {value}; it is not supported")
        return value
    raise ModelError(f"{where} has an attribute '{one.name}' of an unknown kind")


def with_names(nodes: Sequence[OnnxNode]) -> list[OnnxNode]:
    """Each node with a name of its own: a second use of one gets "_1"."""
    taken: set[str] = set()
    result = []
    for node in nodes:
        name = node.name or next(output for output in node.outputs if output)
        unique, count = name, 0
        while unique in taken:
            count += 1
            unique = f"{name}_{count}"
        taken.add(unique)
        result.append(replace(node, name=unique))
    return result


def ordered(
    nodes: Sequence[OnnxNode], known: Collection[str], outputs: Sequence[str], name: str
) -> tuple[OnnxNode, ...]:
    """The nodes that the outputs need, each behind what it reads.

    Raises ModelError for a tensor with two origins or none, and for a cycle.
    """
    producers: dict[str, OnnxNode] = {}
    for node in nodes:
        for output in filter(None, node.outputs):
            if output in producers or output in known:
                raise ModelError(
                    f"layer '{node.name}' ({node.operator}) of {name} gives '{output}', which the "
                    "model has already"
                )
            producers[output] = node
    order: dict[str, OnnxNode] = {}
    open_nodes: set[str] = set()
    for wanted in outputs:
        if wanted not in producers and wanted not in known:
            raise ModelError(f"output '{wanted}' of {name} is given by no operator")
        waiting = [producers[wanted]] if wanted in producers else []
        while waiting:
            node = waiting[-1]
            missing = [
                producers[one]
                for one in node.inputs
                if one in producers and producers[one].name not in order
            ]
            lost = next((o for o in node.inputs if o and o not in producers and o not in known), "")
            if lost:
                raise ModelError(
                    f"layer '{node.name}' ({node.operator}) of {name} reads '{lost}', which no "
                    "operator gives"
                )
            if not missing or node.name in order:
                order.setdefault(node.name, node)
                open_nodes.discard(node.name)
                waiting.pop()
                continue
            open_nodes.add(node.name)
            if any(one.name in open_nodes for one in missing):
                raise ModelError(f"model {name} is cyclic at layer '{node.name}' ({node.operator})")
            waiting.extend(missing)
    # In the file's own order as far as that is one of execution.
    place = {node.name: number for number, node in enumerate(nodes)}
    return _stable([order[one] for one in order], place)


def _stable(nodes: Sequence[OnnxNode], place: Mapping[str, int]) -> tuple[OnnxNode, ...]:
    """The file's order where each node in it comes after what it reads; else the one given."""
    filed = sorted(nodes, key=lambda node: place[node.name])
    ahead = {output for node in nodes for output in node.outputs}
    for node in filed:
        if ahead & set(node.inputs) - {""}:
            return tuple(nodes)
        ahead -= set(node.outputs)
    return tuple(filed)
