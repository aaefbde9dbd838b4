"""Conversion of exported operators whose Relax form the rest of accelsim relies on.

What comes in: an `ExportedProgram` with quantized_decomposed nodes. What goes out: the Relax module
that TVM's importer makes of it, with integer weights and constants in place of parameters. It must
not know layers or names.

TVM's importer knows no quantized_decomposed operator, its hardtanh ignores positional limits, and
it takes the batch norm of an undecomposed program for one in training mode, and at an index below
zero it reads outside of the tensor: these are replaced here through its `custom_convert_map`."""

from __future__ import annotations

from typing import Any

import torch
from tvm.relax.frontend.torch import from_exported_program

from accelsim.errors import InputError, ModelError
from accelsim.importer.reasons import reason
from accelsim.quantize.constants import Constants
from accelsim.quantize.decompose import Converter, Guarded
from accelsim.quantize.indices import index_converters
from accelsim.quantize.level_converters import level_converters
from accelsim.quantize.move_converters import move_converters
from accelsim.quantize.norm_converters import norm_converters
from accelsim.quantize.pool_converters import pool_converters
from accelsim.quantize.resize_converters import resize_converters
from accelsim.quantize.value_converters import value_converters
from accelsim.quantize.weighted_converters import weighted_converters

_registered: dict[str, Converter] = {}


def register_converter(operator: str, converter: Converter) -> None:
    """Convert an operator of PyTorch's by `converter(node, importer)`, instead of as TVM would.

    `operator` is its name with the overload, without a namespace: "flip.default". `importer.env`
    has the Relax values of the node's operands, and `importer.block_builder.emit` binds the result
    that the converter returns.

    Raises:
        InputError: the operator has a converter already, this package's or a registered one.
    """
    if operator in _registered or operator in _convert_map(None):
        raise InputError(f"a converter of {operator!r} is registered already")
    _registered[operator] = converter


def to_relax(program: torch.export.ExportedProgram, model: str) -> Any:
    """Import an exported QDQ program.

    Raises:
        ModelError: an operator without conversion, a dtype other than 8-bit integers behind a
            quantize, data-dependent scales, or dynamic shapes.
    """
    _reject_dynamic(program, model)
    constants = Constants(program, model)
    guarded = Guarded({**_registered, **_convert_map(constants)}, constants)
    try:
        return from_exported_program(
            program,
            unwrap_unit_return_tuple=True,
            run_ep_decomposition=False,
            custom_convert_map=guarded.table(program),
        )
    except ModelError:
        raise
    except Exception as error:  # TVM's importer asserts and raises many kinds
        raise ModelError(f"TVM cannot import model {model}: {reason(error)}") from error


def _reject_dynamic(program: torch.export.ExportedProgram, model: str) -> None:
    for node in program.graph.nodes:
        shape = getattr(node.meta.get("val"), "shape", ())
        if any(not isinstance(extent, int) for extent in shape):
            raise ModelError(
                f"model {model} has a dynamic shape {tuple(shape)} at '{node.name}'; "
                "export it with fixed shapes"
            )


def _convert_map(constants: Any) -> dict[str, Converter]:
    """This package's converters, which look up `constants` when they are called."""
    return {
        **level_converters(constants),
        **weighted_converters(constants),
        **norm_converters(constants),
        **pool_converters(),
        **value_converters(),
        **move_converters(),
        **index_converters(),
        **resize_converters(),
    }
