"""Masks of an ONNX graph's softmaxes in levels: two of them, which hide an element or keep it.

What comes in: an `OnnxModel`. What goes out: one in which a mask that is chosen between 0 and a
number beside which float32 has no score (below -10^30, or minus infinity) is quantized before it is
added to dequantized scores. Its highest level is 0; the lowest one hides as the number itself does,
since a sum with either of them keeps nothing of the score. Rows with no element left give NaN with
minus infinity, and equal shares here. It must not know Relax, nor what the NPU runs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from accelsim.importer.onnx import OnnxModel, OnnxNode, OnnxValue

STEP = np.float32(2.0**100)
KEPT = np.int8(127)
_LEAST = -1e30
_SCALE, _ZERO = "accelsim mask scale", "accelsim mask zero point"
_MOVES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Transpose", "Expand")


def with_quantized_masks(model: OnnxModel) -> OnnxModel:
    """The same network; `model` itself where no softmax of dequantized scores has such a mask."""
    made = {name: node for node in model.nodes for name in node.outputs if name}
    quantized = {node.input(0) for node in model.nodes if node.operator == "QuantizeLinear"}
    adds: dict[str, int] = {}  # name of an addition → which operand is the mask
    for node in model.nodes:
        if node.operator != "Softmax" or node.outputs[0] not in quantized:
            continue
        total = made.get(node.input(0))
        if total is None or total.operator != "Add" or total.domain:
            continue
        for place in (0, 1):
            scores, mask = total.input(1 - place), total.input(place)
            if _is_dequantized(model, made, scores) and _is_mask(model, made, mask):
                adds[total.name] = place
    return _rewritten(model, adds) if adds else model


def _is_dequantized(model: OnnxModel, made: dict[str, OnnxNode], name: str) -> bool:
    """Whether scores are dequantized, perhaps times a number."""
    node = made.get(name)
    if node is not None and node.operator in ("Mul", "Div") and not node.domain:
        numbers = [one in model.constants and model.constants[one].size == 1 for one in node.inputs]
        name = node.input(1 if numbers[0] and node.operator == "Mul" else 0)
        node = made.get(name) if any(numbers) else None
    return node is not None and node.operator == "DequantizeLinear"


def _is_mask(model: OnnxModel, made: dict[str, OnnxNode], name: str) -> bool:
    """Whether a tensor is chosen between 0 and a huge negative number, element by element."""
    node = made.get(name)
    while node is not None and node.operator in _MOVES:
        node = made.get(node.input(0))
    if node is None or node.operator != "Where" or name not in model.values:
        return False
    ends = [model.constants.get(one) for one in node.inputs[1:]]
    values = [float(one.reshape(-1)[0]) for one in ends if one is not None and one.size == 1]
    return len(values) == 2 and max(values) == 0 and min(values) <= _LEAST


def _rewritten(model: OnnxModel, adds: dict[str, int]) -> OnnxModel:
    """Both nodes behind each mask, and sums that read what they give."""
    values, nodes = dict(model.values), list[OnnxNode]()
    reals: dict[str, str] = {}
    for node in model.nodes:
        if node.name in adds:
            mask = node.input(adds[node.name])
            if mask not in reals:
                stored, real = f"{mask} in levels", f"{mask} from levels"
                shape = model.values[mask].shape
                values[stored] = OnnxValue(stored, "int8", shape)
                values[real] = OnnxValue(real, "float32", shape)
                levels = (_SCALE, _ZERO)
                nodes += [
                    OnnxNode(stored, "QuantizeLinear", "", (mask, *levels), (stored,)),
                    OnnxNode(real, "DequantizeLinear", "", (stored, *levels), (real,)),
                ]
                reals[mask] = real
            inputs = list(node.inputs)
            inputs[adds[node.name]] = reals[mask]
            node = replace(node, inputs=tuple(inputs))
        nodes.append(node)
    constants = {**model.constants, _SCALE: np.asarray(STEP), _ZERO: np.asarray(KEPT)}
    return replace(model, nodes=tuple(nodes), constants=constants, values=values)
