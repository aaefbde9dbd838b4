"""Tensors of an ONNX file as NumPy arrays, bounded before anything is allocated.

What comes in: a `TensorProto` and the folder of its file. What goes out: an array, or the name of
an element type that NumPy lacks. It must not know which operator reads the tensor.
"""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.errors import ModelError

LIMIT_BYTES = 1 << 31
"""No tensor may be larger, whatever is announced."""

_FIELDS = {  # element type → where a tensor without raw data keeps it
    "float32": "float_data",
    "float64": "double_data",
    "int64": "int64_data",
    "uint32": "uint64_data",
    "uint64": "uint64_data",
}


def dtype_of(kind: int) -> str:
    """NumPy's name of an element type, or ONNX's own in capitals where accelsim has none."""
    from onnx import TensorProto, helper

    try:
        name = TensorProto.DataType.Name(kind)
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind))
    except (ValueError, KeyError, TypeError):
        return f"TYPE {kind}"
    plain = dtype.kind in "fiub" and dtype.isbuiltin == 1
    return dtype.name if plain and name.lower().replace("bool", "b") != "bfloat16" else name


def tensor_of(proto: Any, folder: Path | None, where: str) -> NDArray[Any] | str:
    """The values of a tensor, or the name of its element type where NumPy lacks it.

    `folder` is that of the file, for external data; `where` begins a message, as in "tensor 'w' of
    net.onnx". Raises ModelError.
    """
    kind = dtype_of(proto.data_type)
    if not kind.islower():
        return kind
    dtype, shape = np.dtype(kind), tuple(int(extent) for extent in proto.dims)
    if any(extent < 0 for extent in shape):
        raise ModelError(f"{where} has the shape {shape}")
    size = prod(shape)
    if size * dtype.itemsize > LIMIT_BYTES:
        raise ModelError(
            f"{where} announces {size * dtype.itemsize:,} bytes; {LIMIT_BYTES:,} are the limit"
        )
    if proto.HasField("segment"):
        raise ModelError(f"{where} is one segment of several, which is not supported")
    if proto.data_location == 1:  # TensorProto.EXTERNAL
        data = _external(proto, folder, size * dtype.itemsize, where)
        return np.frombuffer(data, dtype).reshape(shape)
    if proto.HasField("raw_data"):
        if len(proto.raw_data) != size * dtype.itemsize:
            raise ModelError(
                f"{where} of {kind} and shape {shape} has {len(proto.raw_data)} bytes of data, not "
                f"{size * dtype.itemsize}"
            )
        return np.frombuffer(proto.raw_data, dtype.newbyteorder("<")).astype(dtype).reshape(shape)
    return _typed(proto, dtype, shape, where)


def _typed(proto: Any, dtype: np.dtype[Any], shape: tuple[int, ...], where: str) -> NDArray[Any]:
    """Values of a tensor that keeps them one by one."""
    values = getattr(proto, _FIELDS.get(dtype.name, "int32_data"))
    if len(values) != prod(shape):
        raise ModelError(
            f"{where} of {dtype.name} and shape {shape} has {len(values)} values, not {prod(shape)}"
        )
    if dtype == np.float16:
        return np.array(values, np.uint16).view(np.float16).reshape(shape)
    numbers = np.array(values) if len(values) else np.zeros(0, dtype)
    if dtype.kind in "iu" and numbers.size:
        limits = np.iinfo(dtype)
        if int(numbers.min()) < limits.min or int(numbers.max()) > limits.max:
            raise ModelError(f"{where} of {dtype.name} has values beyond that type")
    return numbers.astype(dtype).reshape(shape)


def _external(proto: Any, folder: Path | None, size: int, where: str) -> bytes:
    """Data in a file beside the model. Raises ModelError for any other place."""
    entries = {entry.key: entry.value for entry in proto.external_data}
    location = entries.get("location", "")
    if folder is None or not location:
        raise ModelError(f"{where} has its data in another file, which is not named")
    folder = folder.resolve()
    path = (folder / location).resolve()
    if Path(location).is_absolute() or not path.is_relative_to(folder):
        raise ModelError(f"{where} has its data in {location!r}, which is not beside the model")
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", size))
    except ValueError:
        raise ModelError(f"{where} has its data at a place that is no number") from None
    try:
        whole = path.stat().st_size if path.is_file() else -1
    except OSError:
        whole = -1
    if whole < 0:
        raise ModelError(f"{where} has its data in {location!r}, which does not exist")
    if length != size or offset < 0 or offset + size > whole:
        raise ModelError(
            f"{where} needs {size:,} bytes at {offset:,} of {location!r}, which has {whole:,} bytes"
        )
    with path.open("rb") as file:
        file.seek(offset)
        return bytes(file.read(size))
