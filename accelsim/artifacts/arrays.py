"""Types of arrays and shapes that all artifacts share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Shape4 = tuple[int, int, int, int]
I8 = NDArray[np.int8]
I32 = NDArray[np.int32]
F32 = NDArray[np.float32]
