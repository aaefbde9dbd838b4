"""ONNX Runtime without graph optimisation, on one thread.

What comes in: a model and inputs. What goes out: its outputs. It must not know what they mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.errors import ToolError
from accelsim.importer.reasons import reason

Array = NDArray[Any]


class Session:
    """A model that ONNX Runtime has accepted."""

    def __init__(self, proto: Any, what: str) -> None:
        """Raises ToolError where ONNX Runtime is missing or refuses the model."""
        try:
            import onnxruntime
        except ModuleNotFoundError:
            raise ToolError(
                "the golden of .onnx models needs the package onnxruntime: install accelsim with "
                "its extra onnx"
            ) from None
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        self.what = what
        try:
            self._session = onnxruntime.InferenceSession(
                proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime raises many kinds
            raise ToolError(f"ONNX Runtime refuses {what}: {reason(error)}") from error

    def run(self, inputs: Mapping[str, Array], outputs: Sequence[str] | None = None) -> list[Array]:
        """The named outputs, or all. Raises ToolError where a kernel fails."""
        try:
            found = self._session.run(None if outputs is None else list(outputs), dict(inputs))
        except Exception as error:  # as above
            raise ToolError(f"ONNX Runtime fails on {self.what}: {reason(error)}") from error
        return [np.asarray(one) for one in found]
