"""`.onnx` file → `OnnxModel`.

What comes in: a path. What goes out: a checked graph with inferred shapes, its constants folded.
Nothing of the file is executed, and nothing larger than the file and the data beside it is
allocated but for folded constants, which are bounded. It must not know quantization.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from accelsim.errors import ModelError, ToolError
from accelsim.importer.onnx.fold import folded
from accelsim.importer.onnx.model import (
    MICROSOFT,
    Array,
    OnnxModel,
    OnnxNode,
    OnnxValue,
    proto_of,
)
from accelsim.importer.onnx.nodes import nodes_of, ordered, with_names
from accelsim.importer.onnx.tensors import LIMIT_BYTES, dtype_of, tensor_of

OLDEST = 7
LIMIT_NODES = 100_000
_PASSES = 8  # folding a shape may make further ones known
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_TRUNCATED = "is no ONNX model, or is truncated or damaged"


def read_onnx(path: Path) -> OnnxModel:
    """Read and check a file. Raises ModelError in one sentence, ToolError without ONNX."""
    name = path.name
    try:
        data = path.read_bytes() if path.stat().st_size <= LIMIT_BYTES else None
    except OSError as error:
        raise ModelError(f"cannot read model file {path}: {error.strerror}") from None
    if data is None:
        raise ModelError(f"model file {name} is larger than {LIMIT_BYTES:,} bytes")
    return parse_onnx(data, name, path.parent)


def parse_onnx(data: bytes, name: str, folder: Path | None = None) -> OnnxModel:
    """The same from bytes; `folder` may hold external data."""
    proto = _proto(data, name)
    opsets = _opsets(proto, name)
    constants, foreign = _initializers(proto.graph, folder, name)
    inputs = _inputs(proto.graph, constants, name)
    outputs = tuple(one.name for one in proto.graph.output)
    _refuse_outputs(proto.graph, name)
    if not inputs:
        raise ModelError(f"model {name} has no inputs")
    if not outputs or len(set(outputs)) != len(outputs):
        raise ModelError(f"model {name} has no outputs, or one twice")
    if len(proto.graph.node) > LIMIT_NODES:
        raise ModelError(f"model {name} has more than {LIMIT_NODES:,} operators")
    named = with_names(nodes_of(proto.graph, folder, name, opsets))
    known = {one.name for one in inputs} | constants.keys() | foreign.keys()
    nodes = ordered(named, known, outputs, name)
    _refuse_foreign(nodes, foreign, name)
    used = {node.domain for node in nodes} | {"", MICROSOFT}
    versions = {domain: version for domain, version in opsets.items() if domain in used}
    model = OnnxModel(
        name, {MICROSOFT: 1, **versions}, inputs, outputs, nodes, constants, _by_name(inputs)
    )
    data = _self_contained(proto, constants) if _is_split(proto) else data
    return replace(_folded(model), data=data)


def _is_split(proto: Any) -> bool:
    return any(one.data_location == 1 for one in proto.graph.initializer)


def _self_contained(proto: Any, constants: dict[str, Array]) -> bytes:
    """The file with its external data in it."""
    from onnx import numpy_helper

    for one in proto.graph.initializer:
        if one.data_location == 1:
            one.CopyFrom(numpy_helper.from_array(constants[one.name], one.name))
    return bytes(proto.SerializeToString())


def _proto(data: bytes, name: str) -> Any:
    try:
        import onnx
    except ModuleNotFoundError:
        raise ToolError(
            "reading .onnx files needs the package onnx: install accelsim with its extra onnx"
        ) from None
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        proto = onnx.ModelProto.FromString(data)
    except (DecodeError, RuntimeError, RecursionError, UnicodeDecodeError):
        raise ModelError(f"model file {name} {_TRUNCATED}") from None
    if not proto.ir_version or not proto.opset_import or not proto.graph.node:
        raise ModelError(f"model file {name} {_TRUNCATED}")
    if not all(isinstance(text, str) and not _CONTROL.search(text) for text in _texts(proto)):
        raise ModelError(f"model file {name} has a name that is no text, so it is damaged")
    if proto.functions:
        raise ModelError(
            f"model {name} has functions of its own; expand them with "
            "onnx.inliner.inline_local_functions"
        )
    if proto.graph.sparse_initializer:
        raise ModelError(f"model {name} has sparse tensors; store them densely")
    return proto


def _texts(proto: Any) -> Iterator[Any]:
    """Every name in a model; one that is no UTF-8 comes as bytes."""
    graph = proto.graph
    yield from (one.domain for one in proto.opset_import)
    yield from (one.name for one in (*graph.input, *graph.output, *graph.initializer))
    yield from (dim.dim_param for one in graph.input for dim in one.type.tensor_type.shape.dim)
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (text for one in node.attribute for text in (one.name, one.ref_attr_name))
    for one in graph.initializer:
        yield from (text for entry in one.external_data for text in (entry.key, entry.value))


def _opsets(proto: Any, name: str) -> dict[str, int]:
    from onnx import defs

    found: dict[str, int] = {}
    for one in proto.opset_import:
        domain = "" if one.domain == "ai.onnx" else one.domain
        if found.setdefault(domain, int(one.version)) != one.version:
            raise ModelError(f"model {name} has two opsets of domain {domain!r}")
    newest = defs.onnx_opset_version()
    if not OLDEST <= found.get("", 0) <= newest:
        raise ModelError(
            f"model {name} has opset {found.get('', 'none')}; {OLDEST} to {newest} are supported: "
            "convert it with onnx.version_converter"
        )
    return found


def _initializers(
    graph: Any, folder: Path | None, name: str
) -> tuple[dict[str, Array], dict[str, str]]:
    """Constants by name, and element types of those that NumPy cannot hold."""
    constants: dict[str, Array] = {}
    foreign: dict[str, str] = {}
    for one in graph.initializer:
        if not one.name or one.name in constants or one.name in foreign:
            raise ModelError(f"model {name} has two tensors {one.name!r}, or one without a name")
        value = tensor_of(one, folder, f"tensor '{one.name}' of {name}")
        if isinstance(value, str):
            foreign[one.name] = value
        else:
            value.flags.writeable = False
            constants[one.name] = value
    return constants, foreign


def _inputs(graph: Any, constants: dict[str, Array], name: str) -> tuple[OnnxValue, ...]:
    """What the user gives: graph inputs that have no initial value."""
    found: dict[str, OnnxValue] = {}
    for one in graph.input:
        if one.name in constants:
            continue
        where = f"input '{one.name}' of {name}"
        if not one.name or one.name in found:
            raise ModelError(f"model {name} has two inputs {one.name!r}, or one without a name")
        if one.type.WhichOneof("value") != "tensor_type":
            raise ModelError(f"{where} is no tensor")
        kind = dtype_of(one.type.tensor_type.elem_type)
        if not one.type.tensor_type.HasField("shape"):
            raise ModelError(f"{where} has no shape; {_FIX}")
        shape = tuple(_extents(one.type.tensor_type.shape.dim, where))
        if not kind.islower():
            raise ModelError(f"{where} is {kind}, which is not supported")
        if prod(shape) * np.dtype(kind).itemsize > LIMIT_BYTES:
            raise ModelError(f"{where} has the shape {shape}, more than {LIMIT_BYTES:,} bytes")
        found[one.name] = OnnxValue(one.name, kind, shape)
    return tuple(found.values())


_FIX = "fix its shape with onnx.tools.update_model_dims.update_inputs_outputs_dims"


def _extents(dims: Sequence[Any], where: str) -> Iterator[int]:
    """Fixed extents; a batch that is left open is 1. Raises ModelError for any other open one."""
    for axis, dim in enumerate(dims):
        if dim.HasField("dim_value"):
            extent = int(dim.dim_value)
            if extent == 0 or (extent < 0 and axis):
                raise ModelError(f"{where} has an axis {axis} of {extent} elements")
            yield max(extent, 1)
        elif axis == 0:
            yield 1
        else:
            raise ModelError(f"{where} leaves its axis {axis} ({dim.dim_param!r}) open; {_FIX}")


def _refuse_outputs(graph: Any, name: str) -> None:
    """Raises ModelError for an output that is declared as something without numbers."""
    for one in graph.output:
        kind = one.type.WhichOneof("value")
        if kind not in (None, "tensor_type"):
            raise ModelError(f"output '{one.name}' of {name} is no tensor")
        dtype = dtype_of(one.type.tensor_type.elem_type) if kind else ""
        if dtype == "STRING":
            raise ModelError(f"output '{one.name}' of {name} is {dtype}, which is not supported")


def _refuse_foreign(nodes: Sequence[OnnxNode], foreign: dict[str, str], name: str) -> None:
    for node in nodes:
        for one in node.inputs:
            if one in foreign:
                raise ModelError(
                    f"layer '{node.name}' ({node.operator}) of {name} reads {foreign[one]} numbers "
                    f"('{one}'); quantized tensors must be int8 or uint8"
                )


def _by_name(values: Sequence[OnnxValue]) -> dict[str, OnnxValue]:
    return {value.name: value for value in values}


@dataclass(slots=True)
class _Shapes:
    """What ONNX infers of a model."""

    values: dict[str, OnnxValue]

    @staticmethod
    def of(model: OnnxModel) -> _Shapes:
        """Raises ModelError where ONNX finds a contradiction."""
        from onnx import shape_inference

        proto = proto_of(model, model.nodes, model.inputs, model.outputs)
        try:
            inferred = shape_inference.infer_shapes(proto, data_prop=True, strict_mode=True)
        except Exception as error:  # ONNX raises many kinds, also for what it merely cannot tell
            try:
                inferred = shape_inference.infer_shapes(proto, data_prop=True)
            except Exception:  # and these for contradictions alone
                lines = str(error).strip().splitlines() or [type(error).__name__]
                text = lines[0][:120].rstrip(". ")
                raise ModelError(f"model {model.name} contradicts itself: {text}") from None
        values = _by_name(model.inputs)
        for one in (*inferred.graph.value_info, *inferred.graph.output):
            kind = one.type.tensor_type
            dims = list(kind.shape.dim)
            known = kind.HasField("shape") and all(dim.HasField("dim_value") for dim in dims)
            dtype = dtype_of(kind.elem_type)
            if known and dtype.islower():
                shape = tuple(int(dim.dim_value) for dim in dims)
                values[one.name] = OnnxValue(one.name, dtype, shape)
        return _Shapes(values)


def _folded(model: OnnxModel) -> OnnxModel:
    """Infer shapes and fold what follows from them, until nothing more does."""
    for _ in range(_PASSES):
        values = _Shapes.of(model).values
        _refuse_extents(model, values)
        constants, kept = dict(model.constants), []
        shapes = {name: value.shape for name, value in values.items()}
        for node in model.nodes:
            result = folded(node, constants, shapes)
            if result is None:
                kept.append(node)
            else:
                constants[node.outputs[0]] = result
        done = len(kept) == len(model.nodes)
        model = replace(model, nodes=tuple(kept), constants=constants, values=values)
        if done:
            break
    if not model.nodes:
        raise ModelError(f"model {model.name} computes nothing from its inputs")
    return model


def _refuse_extents(model: OnnxModel, values: dict[str, OnnxValue]) -> None:
    for node in model.nodes:
        for name in node.outputs:
            value = values.get(name)
            if value is not None and (
                0 in value.shape or prod(value.shape) * np.dtype(value.dtype).itemsize > LIMIT_BYTES
            ):
                raise ModelError(
                    f"layer '{node.name}' ({node.operator}) of {model.name} gives a tensor of "
                    f"shape {value.shape}"
                )
