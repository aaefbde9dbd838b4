"""ONNX Runtime as the golden of an ONNX model, without graph optimisation.

What comes in: a `QuantizedModel` from an ONNX file and its `Network`. What goes out: a
`FrameworkGolden`. It must not know how TVM, the simulator or the RTL compute the same layers.

Isolated, a layer's own nodes are cut from the file and run on given integers. An island between
dequantize and quantize runs as the integer operator that ONNX Runtime itself puts in its place
(`kernels`), and in float32 only where there is none. Accumulated, the whole file runs with every
integer tensor as an output.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from accelsim.artifacts import I8, QuantizedModel
from accelsim.errors import InputError, ModelError, ToolError
from accelsim.importer.onnx import OnnxModel, OnnxNode, OnnxValue, proto_of
from accelsim.quantize.onnx import named_layers
from accelsim.reference.boundary import from_nhwc, to_nhwc
from accelsim.reference.golden import GoldenSet
from accelsim.reference.network import Network, ReferenceLayer
from accelsim.reference.onnxruntime.cut import ordered, slice_of
from accelsim.reference.onnxruntime.kernels import CHOICES, EXACT, Kernel, kernel_of
from accelsim.reference.onnxruntime.known import CAUSES, FLOATS, OWN, compared, known
from accelsim.reference.onnxruntime.saturation import PLACES, may_saturate
from accelsim.reference.onnxruntime.session import Session
from accelsim.reference.operators import distance_of

__all__ = ["OrtGolden", "build_onnxruntime"]

OLDEST_WHOLE = 13
_SATURATES = (
    "ONNX Runtime's 8-bit products saturate on this processor, and the layer has weights beyond ±64"
)
_INPUTS = "it reads an input of the model that is not quantized"


@dataclass(frozen=True, slots=True)
class Form:
    """A layer as ONNX Runtime runs it."""

    session: Session
    nodes: tuple[OnnxNode, ...]
    constants: Mapping[str, Any]
    operator: str  # the integer operator, or "" where it computes in float32


@dataclass(frozen=True, slots=True)
class OrtGolden:
    """The file, the integer tensor of each tensor of the network, and sessions made so far."""

    quantized: QuantizedModel
    network: Network
    model: OnnxModel
    stored: Mapping[str, str]  # tensor of the network → the file's integer tensor
    forms: dict[tuple[str, bool], Form | str] = field(default_factory=dict)
    whole: list[Session] = field(default_factory=list)
    integers: list[Session] = field(default_factory=list)

    @property
    def source(self) -> str:
        """As `framework.TITLES` names it."""
        return "onnxruntime"

    def covers(self, name: str) -> bool:
        """Whether the layer's nodes start from integers alone and ONNX Runtime takes them."""
        return isinstance(self.form(name), Form)

    def missing(self) -> dict[str, str]:
        """Layers that ONNX Runtime cannot run alone, and why."""
        reasons = {layer.output: self.form(layer.name) for layer in self.network.layers}
        return {name: reason for name, reason in reasons.items() if isinstance(reason, str)}

    def run_layer(self, name: str, inputs: tuple[I8, ...]) -> I8:
        """One layer's integer operator, or float32 nodes where there is none."""
        return self._run(name, self.form(name), inputs)

    def accumulated(self, inputs: Mapping[str, np.ndarray]) -> GoldenSet:
        """Every integer tensor of the whole file."""
        names = {layer.output: self.stored.get(layer.output) for layer in self.network.layers}
        wanted = [one for one in names.values() if one is not None]
        found = dict(zip(wanted, self._whole(inputs, wanted), strict=True))
        tensors = {
            tensor: to_nhwc(found[one], self.network.tensors[tensor])
            for tensor, one in names.items()
            if one is not None
        }
        missing = {
            tensor: "the file has no such tensor" for tensor, one in names.items() if not one
        }
        causes = self._float_causes(inputs)
        return GoldenSet("onnxruntime", "accumulated", False, tensors, missing, causes)

    def _float_causes(self, inputs: Mapping[str, np.ndarray]) -> dict[str, str]:
        """Of islands that the file computes in float32: how far from their integer kernels.

        Both start from the same integers, those of the whole file; so this counts each layer alone.
        """
        islands = {}
        for layer in self.network.layers:
            form = self.form(layer.name)
            ends = [one for one in self.model.nodes if self.stored.get(layer.output) in one.outputs]
            if isinstance(form, Form) and form.operator and ends[0].operator == "QuantizeLinear":
                islands[layer.output] = (layer, ends[0].input(0))
        tensors = dict.fromkeys(one for x, _ in islands.values() for one in (x.output, *x.inputs))
        names = [*(self.stored[one] for one in tensors), *(real for _, real in islands.values())]
        names = [name for name in names if self.model.input(name) is None]
        found = self._fed(inputs)
        if names:
            found |= zip(names, self._whole(inputs, names), strict=True)
        causes = {}
        for output, (layer, real) in islands.items():
            tensor = self.network.tensors[output]
            given = tuple(
                to_nhwc(found[self.stored[one]], self.network.tensors[one]) for one in layer.inputs
            )
            own = from_nhwc(self.run_layer(layer.name, given), tensor)
            causes[output] = compared(found[self.stored[output]], own, found[real], tensor)
        return causes

    def outputs(self, inputs: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...] | None:
        """The file's outputs."""
        return tuple(self._whole(inputs, list(self.model.outputs)))

    def integer_whole(
        self, inputs: Mapping[str, np.ndarray]
    ) -> tuple[tuple[np.ndarray, ...], dict[str, I8]]:
        """Outputs and layers' tensors with every island replaced by its integer operator.

        So the whole file in the QOperator form, on ONNX Runtime; layers of kind "host" stay in
        float32. `ModelError` before opset 13.
        """
        if self.model.opsets[""] < OLDEST_WHOLE:
            raise ModelError(f"model {self.model.name} has an opset before {OLDEST_WHOLE}")
        if not self.integers:
            self.integers.append(self._integer_session())
        names = [layer.output for layer in self.network.layers]
        wanted = [*self.model.outputs, *(self.stored[name] for name in names)]
        found = self.integers[0].run(self._fed(inputs), wanted)
        tensors = found[len(self.model.outputs) :]
        return tuple(found[: len(self.model.outputs)]), {
            name: to_nhwc(value, self.network.tensors[name])
            for name, value in zip(names, tensors, strict=True)
        }

    def _integer_session(self) -> Session:
        nodes: dict[str, OnnxNode] = {}
        constants: dict[str, Any] = {}
        ends = [*self.model.outputs, *(self.stored[name] for name in self.network.boundary)]
        for layer in self.network.layers:
            form = self.form(layer.name, floats=layer.kind == "host")
            if isinstance(form, Form):
                nodes |= {one.outputs[0]: one for one in form.nodes}
                constants |= form.constants
            else:
                ends.append(self.stored[layer.output])
        given = {value.name for value in self.model.inputs}
        rest = slice_of(self.model, ends, given | set(self.stored.values())) or ()
        nodes = {one.outputs[0]: one for one in rest if one.outputs[0] not in nodes} | nodes
        known = {*self.model.constants, *constants, *given}
        proto = proto_of(
            self.model,
            ordered(list(nodes.values()), known),
            self.model.inputs,
            list(dict.fromkeys([*self.model.outputs, *nodes_outputs(nodes, self.stored)])),
            constants,
        )
        return Session(proto, f"the integer form of {self.model.name}")

    def bound(self, name: str, inputs: tuple[I8, ...], exact: I8, own: I8) -> int | None:
        """One step where ONNX Runtime's result is not one rounding of an exact one, else None.

        A kernel with a formula in `known` must equal that formula in every element. A layer whose
        integers are accelsim's own may differ by what it promises.
        """
        return None if self.cause(name, inputs, own) is None else self._bound(name)

    def cause(self, name: str, inputs: tuple[I8, ...], own: I8) -> str | None:
        """Why ONNX Runtime's result may differ; None where it must be equal."""
        form = self.form(name)
        if not isinstance(form, Form) or form.operator in EXACT or self._only_moves(form):
            return None
        if form.operator in CAUSES:
            by_formula = self._by_formula(name, form, inputs)
            same = by_formula is not None and np.array_equal(by_formula, own)
            return CAUSES[form.operator] if same else None
        return OWN if form.operator else FLOATS

    def _only_moves(self, form: Form) -> bool:
        """Whether it moves or chooses numbers at unchanged levels."""
        ends = ("QuantizeLinear", "DequantizeLinear")
        inner = [node for node in form.nodes if node.operator not in ends]
        names = {node.input(1) for node in form.nodes if node.operator in ends}
        scales = {float(self.model.constants[name].reshape(-1)[0]) for name in names}
        nearest = all(
            node.attributes.get("mode", "nearest") == "nearest"
            for node in inner
            if node.operator == "Resize"
        )
        moves = {node.operator for node in inner} <= set(CHOICES)
        return bool(inner) and moves and nearest and len(scales) < 2

    def _bound(self, name: str) -> int:
        layer = self.network.layer(name)
        distance = distance_of(self.network, layer, self.quantized.rounding)
        return 1 if distance is None else max(1, math.ceil(distance))

    def _by_formula(self, name: str, form: Form, inputs: tuple[I8, ...]) -> I8 | None:
        layer = self.network.layer(name)
        tensor = self.network.tensors[layer.output]
        values = {**self.model.constants, **form.constants, **self._given(layer, inputs)}
        result = known(form.nodes[0], values, tensor.shape)
        if result is None:
            return None
        for clamp in form.nodes[1:]:
            low, high = (values[one] for one in clamp.inputs[1:])
            result = np.clip(result, low, high)
        return to_nhwc(result, tensor)

    def _given(self, layer: ReferenceLayer, inputs: tuple[I8, ...]) -> dict[str, np.ndarray]:
        return {
            self.stored[name]: from_nhwc(value, self.network.tensors[name])
            for name, value in zip(layer.inputs, inputs, strict=True)
        }

    def _run(self, name: str, form: Form | str, inputs: tuple[I8, ...]) -> I8:
        if isinstance(form, str):
            raise ModelError(f"layer '{name}' has no golden of ONNX Runtime: {form}")
        layer = self.network.layer(name)
        (result,) = form.session.run(self._given(layer, inputs))
        return to_nhwc(result, self.network.tensors[layer.output])

    def _whole(self, inputs: Mapping[str, np.ndarray], names: list[str]) -> list[np.ndarray]:
        if not self.whole:
            proto = proto_of(self.model, self.model.nodes, self.model.inputs, self._every_output())
            self.whole.append(Session(proto, f"model {self.model.name}"))
        return self.whole[0].run(self._fed(inputs), names)

    def _every_output(self) -> list[str]:
        """The file's outputs, its integer tensors, and what these are quantized from."""
        every = dict.fromkeys([*self.model.outputs, *self.stored.values()])
        made = {name: node for node in self.model.nodes for name in node.outputs}
        for name in self.stored.values():
            if name in made and made[name].operator == "QuantizeLinear":
                every[made[name].input(0)] = None
        return [name for name in every if self.model.input(name) is None]

    def _fed(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        given = {}
        for value in self.model.inputs:
            if value.name not in inputs:
                raise InputError(f"input '{value.name}' is missing")
            given[value.name] = np.asarray(inputs[value.name], dtype=value.dtype)
        return given

    def form(self, name: str, floats: bool = False) -> Form | str:
        """How a layer runs, or why it does not; `floats` as the file has it."""
        key = (name, floats)
        if key not in self.forms:
            self.forms[key] = self._form(self.network.layer(name), floats)
        return self.forms[key]

    def _form(self, layer: ReferenceLayer, floats: bool) -> Form | str:
        if any(one not in self.stored for one in (layer.output, *layer.inputs)):
            return "the file has no integer tensor at one of its ends"
        stops = {self.stored[one] for one in layer.inputs}
        nodes = slice_of(self.model, [self.stored[layer.output]], stops)
        if nodes is None:
            return _INPUTS
        kernel = None if floats else kernel_of(self.model, nodes, self.stored[layer.output])
        if kernel is None:
            integer = [node for node in nodes if node.operator.startswith(("QLinear", "QGemm"))]
            plain = all(node.operator[-6:] != "Linear" for node in nodes)
            operator = integer[0].operator if integer else nodes[0].operator if plain else ""
            kernel = Kernel(nodes, {}, self.model.opsets, operator)
        if may_saturate(kernel.nodes, {**self.model.constants, **kernel.constants}):
            whole = any(node.operator in PLACES for node in nodes)
            return _SATURATES if whole else self._form(layer, floats=True)
        values = [
            OnnxValue(self.stored[one], self.network.tensors[one].stored, tensor.shape)
            for one in dict.fromkeys(layer.inputs)
            for tensor in (self.network.tensors[one],)
        ]
        proto = proto_of(
            OnnxModel(
                self.model.name,
                kernel.opsets,
                self.model.inputs,
                self.model.outputs,
                kernel.nodes,
                self.model.constants,
                {},
            ),
            kernel.nodes,
            values,
            [self.stored[layer.output]],
            kernel.constants,
        )
        try:
            session = Session(proto, f"layer '{layer.name}'")
        except ToolError as error:
            if kernel.operator and not floats and "refuses" in str(error):
                return self._form(layer, floats=True)
            return str(error)
        return Form(session, kernel.nodes, kernel.constants, kernel.operator)


def nodes_outputs(nodes: Mapping[str, OnnxNode], stored: Mapping[str, str]) -> list[str]:
    """The integer tensors that some nodes give."""
    made = {name for node in nodes.values() for name in node.outputs}
    return [name for name in stored.values() if name in made]


def build_onnxruntime(quantized: QuantizedModel, network: Network) -> OrtGolden:
    """Pair the network's tensors with the file's. `ToolError` without ONNX Runtime."""
    model = quantized.original
    if not isinstance(model, OnnxModel):
        raise ModelError(f"model {quantized.name} comes without its ONNX file")
    stored = {**named_layers(model).tensors, **{name: name for name in network.direct}}
    return OrtGolden(quantized, network, model, stored)
