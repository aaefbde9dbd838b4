"""An ONNX graph in which nothing but moves stands between a dequantize and a quantize of moves.

What comes in: an `OnnxModel`. What goes out: one that computes the same numbers, in which an
operator that computes is quantized before its result is moved, and reads what was moved in levels.
A quantize of what was dequantized with the same levels gives the same integers, and so does a move
before or behind a quantize. Functions of single elements are computed before a reshape in front of
them; reshapes that then give the shape that was there are left out. So an island has one operator
where a file has a move beside it. It must not know Relax, nor what the NPU runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from accelsim.importer.onnx import OnnxModel, OnnxNode, OnnxValue
from accelsim.quantize.names import UniqueNames

_RESHAPES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity")
_MOVES = (*_RESHAPES, "Transpose")
_ELEMENTWISE = {
    *("Relu", "Clip", "LeakyRelu", "Elu", "Celu", "Selu", "Sigmoid", "HardSigmoid", "HardSwish"),
    *("Swish", "Mish", "Gelu", "Tanh", "Erf", "Softplus", "Exp", "Log", "Sqrt", "Reciprocal"),
    *("Abs", "Neg", "Sign", "Sin", "Cos", "Floor", "Ceil", "Round"),
    *("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min"),
}
_JOINING = ("Add", "Sub", "Mul", "Max", "Min", "Softmax", "LayerNormalization")
_PRODUCTS = ("MatMul", "Gemm", "Conv")


@dataclass(frozen=True, slots=True)
class _Chain:
    """Moves of one tensor, in order, from `source` on."""

    source: str
    moves: tuple[OnnxNode, ...]


@dataclass(frozen=True, slots=True)
class _Region:
    """Functions of single elements of one tensor, in order."""

    leaf: str
    nodes: tuple[OnnxNode, ...]


def with_moves_apart(model: OnnxModel) -> OnnxModel:
    """The same network; `model` itself where no move stands beside another operator."""
    for place in range(len(model.nodes) - 1, -1, -1):
        if model.nodes[place].operator == "QuantizeLinear":
            model = _Rewriter(model, model.nodes[place]).result()
    return model


class _Rewriter:
    """One quantize of a model."""

    def __init__(self, model: OnnxModel, quantize: OnnxNode) -> None:
        self.model = model
        self.quantize = quantize
        self.made = {name: node for node in model.nodes for name in node.outputs if name}
        self.uses: dict[str, int] = dict.fromkeys(model.outputs, 1)
        for node in model.nodes:
            for name in node.inputs:
                self.uses[name] = self.uses.get(name, 0) + 1
        self.values: dict[str, OnnxValue] = dict(model.values)
        inputs = (value.name for value in model.inputs)
        self.names = UniqueNames((*self.made, *model.constants, *inputs))

    def result(self) -> OnnxModel:
        """The model with this quantize's island taken apart, or as it is."""
        behind = self.chain(self.quantize.input(0), alone=True)
        core = self.made.get(behind.source)
        if core is None or core.domain or core.operator in ("DequantizeLinear", *_MOVES):
            return self.model
        region = self.region(core)
        if region is not None:
            return self._functions(region, behind)
        joins = core.operator in _JOINING
        turned = any(node.operator == "Transpose" for node in behind.moves)
        if not joins and not (core.operator in _PRODUCTS and turned):
            return self.model
        if not all(self.is_quantized(name) for name in core.inputs):
            return self.model
        return self._joined(core, behind, sink=joins)

    def chain(self, name: str, *, alone: bool) -> _Chain:
        """The moves that give a tensor; `alone` ends them at results that others read, too."""
        moves: list[OnnxNode] = []
        while True:
            node = self.made.get(name)
            if node is None or node.domain or node.operator not in _MOVES:
                break
            if alone and self.uses[name] > 1:
                break
            moves.insert(0, node)
            name = node.input(0)
        return _Chain(name, tuple(moves))

    def is_quantized(self, name: str) -> bool:
        """Whether an operand is constant or, but for moves, dequantized."""
        if not name or name in self.model.constants:
            return True
        source = self.made.get(self.chain(name, alone=False).source)
        return source is not None and source.operator == "DequantizeLinear"

    def region(self, last: OnnxNode) -> _Region | None:
        """All that leads from one dequantized tensor, moves left out, to `last`."""
        found: dict[str, OnnxNode] = {}
        leaves: set[str] = set()
        waiting = [last]
        while waiting:
            node = waiting.pop()
            if node.domain or node.operator not in _ELEMENTWISE or len(node.outputs) != 1:
                return None
            found[node.outputs[0]] = node
            for name in node.inputs:
                before = self.made.get(name)
                if not name or self._is_number(name):
                    continue
                if before is not None and before.operator in _ELEMENTWISE and not before.domain:
                    waiting.append(before)
                else:
                    leaves.add(name)
        if len(leaves) != 1:
            return None
        inside = [name for node in found.values() for name in node.inputs]
        if any(self.uses[name] != inside.count(name) for name in found if name != last.outputs[0]):
            return None
        (leaf,) = leaves
        source = self.made.get(self.chain(leaf, alone=False).source)
        if source is None or source.operator != "DequantizeLinear":
            return None
        if any(name in self.model.constants for name in source.inputs[:1]):
            return None
        names = {node.name for node in found.values()}
        return _Region(leaf, tuple(node for node in self.model.nodes if node.name in names))

    def _is_number(self, name: str) -> bool:
        constant = self.model.constants.get(name)
        return constant is not None and constant.size == 1

    def _functions(self, region: _Region, behind: _Chain) -> OnnxModel:
        before = self.chain(region.leaf, alone=False)
        last = region.nodes[-1].outputs[0]
        if self.uses[last] > 1 or not (before.moves or behind.moves):
            return self.model
        shapes = [self._shape(name) for name in (before.source, region.leaf, last)]
        if any(shape is None for shape in shapes) or shapes[1] != shapes[2]:
            return self.model
        nodes = [
            replace(
                node,
                inputs=tuple(before.source if n == region.leaf else n for n in node.inputs),
            )
            for node in region.nodes
        ]
        for node in nodes:
            self._describe(node.outputs[0], last, shapes[0] or ())
        moves = [*before.moves, *behind.moves]
        plain = all(node.operator in _RESHAPES for node in moves)
        if plain and shapes[0] == self._shape(self.quantize.input(0)):
            ends = [replace(self.quantize, inputs=(last, *self.quantize.inputs[1:]))]
        else:
            ends = self._quantized_first(last, moves, shapes[0] or ())
        return self._rewritten([*region.nodes, *behind.moves], [*nodes, *ends])

    def _joined(self, core: OnnxNode, behind: _Chain, *, sink: bool) -> OnnxModel:
        inputs, new = [], []
        for name in core.inputs:
            chain = self.chain(name, alone=False) if name else _Chain(name, ())
            if sink and chain.moves and chain.source not in self.model.constants:
                levels = self.made[chain.source].inputs[1:]
                pair = self._pair(name, levels, self._shape(name) or ())
                new += pair
                name = pair[-1].outputs[0]
            inputs.append(name)
        if not new and (not behind.moves or self.uses[core.outputs[0]] > 1):
            return self.model
        shape = self._shape(core.outputs[0])
        ends: list[OnnxNode] = [self.quantize]
        moved = self.uses[core.outputs[0]] == 1 and behind.moves and shape is not None
        if moved:
            ends = self._quantized_first(core.outputs[0], list(behind.moves), shape or ())
        gone = [core, *(behind.moves if moved else ())]
        kept = () if moved else behind.moves
        return self._rewritten(
            [*gone, *kept], [*new, replace(core, inputs=tuple(inputs)), *kept, *ends]
        )

    def _quantized_first(
        self, name: str, moves: list[OnnxNode], shape: tuple[int, ...]
    ) -> list[OnnxNode]:
        """Quantize and dequantize of a result, its moves, and the quantize that was there."""
        pair = self._pair(name, self.quantize.inputs[1:], shape)
        last, moved = pair[-1].outputs[0], []
        for node in moves:
            result = self.names.take(f"{node.outputs[0]}_moved")
            moved.append(replace(node, inputs=(last, *node.inputs[1:]), outputs=(result,)))
            known = self.values.get(node.outputs[0])
            if known is not None:
                self.values[result] = replace(known, name=result)
            last = result
        return [*pair, *moved, replace(self.quantize, inputs=(last, *self.quantize.inputs[1:]))]

    def _pair(self, name: str, levels: tuple[str, ...], shape: tuple[int, ...]) -> list[OnnxNode]:
        zero = self.model.constants.get(levels[1]) if len(levels) > 1 else None
        stored, real = self.names.take(f"{name}_quantized"), self.names.take(f"{name}_dequantized")
        kind = "uint8" if zero is None else zero.dtype.name
        self.values[stored] = OnnxValue(stored, kind, shape)
        self.values[real] = OnnxValue(real, "float32", shape)
        return [
            OnnxNode(stored, "QuantizeLinear", "", (name, *levels), (stored,)),
            OnnxNode(real, "DequantizeLinear", "", (stored, *levels), (real,)),
        ]

    def _shape(self, name: str) -> tuple[int, ...] | None:
        value = self.values.get(name)
        return None if value is None else value.shape

    def _describe(self, name: str, like: str, shape: tuple[int, ...]) -> None:
        known = self.values.get(like)
        if known is not None:
            self.values[name] = OnnxValue(name, known.dtype, shape)

    def _rewritten(self, gone: list[OnnxNode], new: list[OnnxNode]) -> OnnxModel:
        """The model with `new` where the quantize was, and without what nothing reads any more."""
        dropped = {node.name for node in gone}
        nodes: list[OnnxNode] = []
        for node in self.model.nodes:
            if node.name == self.quantize.name:
                nodes.extend(new)
            elif node.name not in dropped:
                nodes.append(node)
        return replace(self.model, nodes=_live(nodes, self.model), values=self.values)


def _live(nodes: list[OnnxNode], model: OnnxModel) -> tuple[OnnxNode, ...]:
    wanted, kept = set(model.outputs), []
    for node in reversed(nodes):
        if any(name in wanted for name in node.outputs):
            wanted.update(node.inputs)
            kept.append(node)
    return tuple(kept[::-1])
