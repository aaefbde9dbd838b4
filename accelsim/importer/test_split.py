"""A labelled test split inside a `.pt2`, so that a quantized model carries what it is judged by.

What comes in: arrays, or the extra entry of an archive from anywhere. What goes out: the entry's
text, or the arrays. It must not know the model.

The entry is base64 of an uncompressed `.npz` with `inputs` and `labels`: torch.export writes extra
entries as text.
"""

from __future__ import annotations

import base64
import binascii
import io
import zipfile
from pathlib import Path

import numpy as np

from accelsim.errors import ModelError

ENTRY = "accelsim.test.npz"
LIMIT_BYTES = 64 << 20


def pack_split(inputs: np.ndarray, labels: np.ndarray) -> str | None:
    """The entry's text; None for a split above `LIMIT_BYTES`."""
    if inputs.nbytes + labels.nbytes > LIMIT_BYTES:
        return None
    buffer = io.BytesIO()
    np.savez(buffer, inputs=inputs, labels=labels)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def unpack_split(text: str | bytes, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels. Raises ModelError for an entry that is damaged or too large."""
    try:
        data = base64.b64decode(text, validate=True)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            announced = sum(entry.file_size for entry in archive.infolist())
        if announced > 2 * LIMIT_BYTES:
            raise ModelError(f"the test split in {path} announces {announced:,} bytes")
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            return stored["inputs"], stored["labels"]
    except (binascii.Error, ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ModelError(f"the test split in {path} is damaged") from error
