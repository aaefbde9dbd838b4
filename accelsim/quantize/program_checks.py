"""Known traps in a quantized exported program, found before it is imported.

What comes in: an `ExportedProgram` and its layers' names. What goes out: nothing, or a `ModelError`
that names the layer. It must not know Relax.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from accelsim.errors import ModelError
from accelsim.quantize.constants import Constants
from accelsim.quantize.names import LayerNames, is_dequantize, is_quantize, operator_name

_BYTES = (torch.uint8, torch.int8)
_EXTENTS = {torch.uint8: (0, 255), torch.int8: (-128, 127)}


def check_program(program: torch.export.ExportedProgram, names: LayerNames, model: str) -> None:
    """Check every scale, zero point and dtype, and that nothing is left in training mode.

    Raises ModelError, naming the layer: dropout or batch norm in training mode, activations or
    weights of other than 8 bits, a scale that is not a positive number, a zero point that the dtype
    does not have, or a network none of whose observers saw data.
    """
    constants = Constants(program, model)
    layers = iter(names.quantized)
    defaults: list[bool] = []
    layer = "the input"
    for node in program.graph.nodes:
        _check_training(node, model)
        if not is_quantize(node) and not is_dequantize(node):
            continue
        of_weight = constants.find(node.args[0]) is not None
        if is_quantize(node) and not of_weight:
            layer = next(layers).name
            defaults.append(_is_default(node, constants))
        where = f"the weight of '{_reader(node)}'" if of_weight else f"layer '{layer}'"
        if is_quantize(node) or of_weight:
            _check_levels(node, constants, where, model)
    if len(defaults) > 1 and all(defaults):
        raise ModelError(
            f"every activation of {model} has scale 1 and zero point 0, which is what observers "
            "give that never saw data; run the prepared model on calibration batches before it is "
            "converted"
        )


def _check_training(node: fx.Node, model: str) -> None:
    kind = operator_name(node.target)
    position = {"dropout": 2, "batch_norm": 5}.get(kind)
    if node.op != "call_function" or position is None or len(node.args) <= position:
        return
    if node.args[position] is True:
        raise ModelError(
            f"'{_path(node)}' of {model} is a {kind} in training mode; call eval() on the module, "
            "or torchao's move_exported_model_to_eval, before it is exported"
        )


def _check_levels(node: fx.Node, constants: Constants, where: str, model: str) -> None:
    channel = "channel" in str(node.target)
    dtype: Any = node.args[6 if channel else 5]
    if dtype not in _BYTES:
        kind = str(dtype).removeprefix("torch.")
        raise ModelError(
            f"{where} of {model} is quantized to {kind}; the NPU takes 8 bits: use uint8 or int8"
        )
    scale, zero = (constants.find(node.args[position]) for position in (1, 2))
    if scale is not None:
        scales = torch.as_tensor(scale).float()
        wrong = ~(torch.isfinite(scales) & (scales > 0))
        if bool(wrong.any()):
            found = float(scales.reshape(-1)[int(wrong.reshape(-1).int().argmax())])
            raise ModelError(
                f"{where} of {model} has the scale {found:g}; a positive number is needed"
            )
    if zero is not None:
        zeros, (low, high) = torch.as_tensor(zero), _EXTENTS[dtype]
        if bool(((zeros < low) | (zeros > high)).any()):
            kind = str(dtype).removeprefix("torch.")
            raise ModelError(
                f"{where} of {model} has a zero point that {kind} does not have: "
                f"{int(zeros.min())} to {int(zeros.max())}"
            )


def _is_default(node: fx.Node, constants: Constants) -> bool:
    scale, zero = (constants.find(node.args[position]) for position in (1, 2))
    if scale is None or zero is None:
        return False
    return float(torch.as_tensor(scale)) == 1.0 and int(torch.as_tensor(zero)) == 0


def _reader(node: fx.Node) -> str:
    """Path of the module whose operator reads what comes from this node."""
    reader: Any = node
    while reader.users and (is_quantize(reader) or is_dequantize(reader)):
        reader = next(iter(reader.users))
    return _path(reader)


def _path(node: fx.Node) -> str:
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return (str(stack[-1][0]) if stack else "") or node.name
