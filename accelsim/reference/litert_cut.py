"""Models cut from a TensorFlow Lite file, and LiteRT's reference kernels that run them.

What comes in: the file, tensors to start from and one to end in. What goes out: a model of just the
operators between, and its result. It must not know layers, or what anything else computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accelsim.errors import ModelError, ToolError

MISSING = (
    "LiteRT's reference kernels need the package ai-edge-litert: install accelsim with its extra "
    "tflite"
)


class Cutter:
    """The file as objects of LiteRT's schema.

    Raises ToolError where LiteRT is not installed, ModelError for a file that ends too early.
    """

    def __init__(self, data: bytes) -> None:
        try:
            import flatbuffers
            from ai_edge_litert import schema_py_generated as schema
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("accelsim"):
                raise
            raise ToolError(MISSING) from None
        self._schema: Any = schema
        self._flatbuffers: Any = flatbuffers
        try:
            self._model: Any = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
        except Exception as error:  # whatever unchecked offsets lead to
            raise ModelError(
                f"the model file is damaged where only LiteRT reads it: {_first_line(error)}"
            ) from None
        self._graph: Any = self._model.subgraphs[0]
        self._makers = {
            int(tensor): operator
            for operator in self._graph.operators
            for tensor in operator.outputs
        }

    def between(self, sources: Sequence[int], target: int) -> bytes:
        """A model that computes `target` from `sources`, which are its inputs in order.

        Raises ModelError where it needs another tensor that is no constant.
        """
        kept: list[Any] = []
        wanted, seen = [target], set(sources)
        while wanted:
            index = wanted.pop()
            if index in seen or index < 0:
                continue
            seen.add(index)
            operator = self._makers.get(index)
            if operator is None:
                if self._is_constant(index):
                    continue
                name = (self._graph.tensors[index].name or b"").decode(errors="replace")
                raise ModelError(f"it reads '{name}', which is not quantized")
            if not any(operator is one for one in kept):
                kept.append(operator)
            wanted.extend(int(one) for one in operator.inputs)
        order = [one for one in self._graph.operators if any(one is other for other in kept)]
        return self._packed(order, sources, target)

    def _is_constant(self, index: int) -> bool:
        data = self._model.buffers[self._graph.tensors[index].buffer].data
        return data is not None and len(data) > 0

    def _packed(self, operators: Sequence[Any], sources: Sequence[int], target: int) -> bytes:
        schema = self._schema
        used = [int(one) for step in operators for one in (*step.inputs, *step.outputs) if one >= 0]
        indices = list(dict.fromkeys((*sources, *used)))
        places = {index: place for place, index in enumerate(indices)}
        graph = schema.SubGraphT()
        model = schema.ModelT()
        model.version, model.operatorCodes = self._model.version, self._model.operatorCodes
        model.description = "cut"
        model.buffers = [schema.BufferT()]
        graph.tensors = []
        for index in indices:
            before = self._graph.tensors[index]
            tensor = _copied(schema.TensorT(), before)
            tensor.buffer = 0
            if self._is_constant(index):
                tensor.buffer = len(model.buffers)
                model.buffers.append(self._model.buffers[before.buffer])
            graph.tensors.append(tensor)
        graph.operators = []
        for step in operators:
            operator = _copied(schema.OperatorT(), step)
            operator.inputs = [places.get(int(one), -1) for one in step.inputs]
            operator.outputs = [places[int(one)] for one in step.outputs]
            graph.operators.append(operator)
        graph.inputs = [places[index] for index in sources]
        graph.outputs = [places[target]]
        model.subgraphs = [graph]
        builder = self._flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


class Kernels:
    """A model on LiteRT's reference kernels. Raises ToolError where they refuse it."""

    def __init__(self, data: bytes, *, keep: bool = False, plain: bool = True) -> None:
        """`keep` keeps all tensors' values after a run; not `plain` has the optimised kernels."""
        try:
            from ai_edge_litert.interpreter import Interpreter, OpResolverType
        except ModuleNotFoundError:
            raise ToolError(MISSING) from None
        try:
            self._interpreter: Any = Interpreter(
                model_content=data,
                num_threads=1,
                experimental_op_resolver_type=OpResolverType.BUILTIN_REF
                if plain
                else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
                experimental_preserve_all_tensors=keep,
            )
            self._interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            raise ToolError(f"LiteRT refuses it: {_first_line(error)}") from None
        self._inputs = [int(one["index"]) for one in self._interpreter.get_input_details()]
        self._outputs = [int(one["index"]) for one in self._interpreter.get_output_details()]

    def run(self, inputs: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], ...]:
        """The outputs. Raises ToolError where a kernel fails."""
        try:
            for index, values in zip(self._inputs, inputs, strict=True):
                self._interpreter.set_tensor(index, np.ascontiguousarray(values))
            self._interpreter.invoke()
        except (RuntimeError, ValueError) as error:
            raise ToolError(f"a kernel of LiteRT failed: {_first_line(error)}") from None
        return tuple(np.array(self._interpreter.get_tensor(index)) for index in self._outputs)

    def tensors(self, indices: Mapping[str, int]) -> dict[str, NDArray[Any]]:
        """Values of tensors after a run, by name, of a model that keeps them."""
        found = {}
        for name, index in indices.items():
            found[name] = np.array(self._interpreter.get_tensor(index))
        return found


def _copied(target: Any, source: Any) -> Any:
    """The same fields in another object of the schema."""
    for name, value in vars(source).items():
        setattr(target, name, value)
    return target


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
