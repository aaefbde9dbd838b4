"""A float exported program as a module that FX quantization understands.

What comes in: an `ExportedProgram` of float aten operators. What goes out: an fx GraphModule with
`torch.nn` modules at the user's paths, computing the same. FX quantization matches modules and
plain functions, and no aten operators. It must not know how they are quantized.

Operators without an entry here stay as they are, and run on the host.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx, nn

from accelsim.errors import ModelError

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add.Tensor": operator.add,
    "add_.Tensor": operator.add,
    "mul.Tensor": operator.mul,
    "mul_.Tensor": operator.mul,
    "relu.default": nn.functional.relu,
    "relu_.default": nn.functional.relu,
    "flatten.using_ints": torch.flatten,
    "view.default": torch.reshape,
    "reshape.default": torch.reshape,
    "clamp.default": torch.clamp,
    "hardtanh.default": nn.functional.hardtanh,
    "hardtanh_.default": nn.functional.hardtanh,
    "relu6.default": nn.functional.relu6,
    "cat.default": torch.cat,
    "mean.dim": torch.mean,
    "max_pool2d.default": nn.functional.max_pool2d,
    "avg_pool2d.default": nn.functional.avg_pool2d,
    "adaptive_avg_pool2d.default": nn.functional.adaptive_avg_pool2d,
    "pad.default": nn.functional.pad,
    "sigmoid.default": torch.sigmoid,
    "tanh.default": torch.tanh,
    "gelu.default": nn.functional.gelu,
    "softmax.int": torch.softmax,
    "permute.default": torch.permute,
    "transpose.int": torch.transpose,
    "squeeze.dim": torch.squeeze,
    "unsqueeze.default": torch.unsqueeze,
}
_SKIPPED = frozenset({"dropout.default", "dropout_.default", "detach.default", "alias.default"})


def rebuild(program: torch.export.ExportedProgram, name: str) -> fx.GraphModule:
    """Build the module.

    Raises:
        ModelError: a program that changes its own buffers, or one in training mode.
    """
    if program.graph_signature.buffers_to_mutate:
        raise ModelError(f"model {name} changes its buffers; call eval() before exporting")
    return _Rebuilder(program, name).build()


class _Rebuilder:
    """Copies a graph node by node and collects the modules that it makes."""

    def __init__(self, program: torch.export.ExportedProgram, name: str) -> None:
        self._program = program
        self._name = name
        self._root = nn.Module()
        self._graph = fx.Graph()
        self._nodes: dict[fx.Node, fx.Node] = {}
        signature = program.graph_signature
        self._targets: dict[str, str] = {
            **signature.inputs_to_parameters,
            **signature.inputs_to_buffers,
            **signature.inputs_to_lifted_tensor_constants,
        }
        self._stored = {**program.state_dict, **program.constants}

    def build(self) -> fx.GraphModule:
        for node in self._program.graph.nodes:
            if node.op == "placeholder" and node.name not in self._targets:
                self._nodes[node] = self._graph.placeholder(node.name)
            elif node.op == "call_function":
                self._nodes[node] = self._operator(node)
            elif node.op == "output":
                values = [self._copy(value) for value in node.args[0]]
                self._graph.output(values[0] if len(values) == 1 else tuple(values))
        return fx.GraphModule(self._root, self._graph).eval()

    def _operator(self, node: fx.Node) -> fx.Node:
        kind = str(getattr(node.target, "__name__", node.target))
        if kind in _SKIPPED:
            return self._copy(node.args[0])  # type: ignore[no-any-return]
        made = self._module(node, kind)
        if made is not None:
            path, module = made
            path = self._place(path, module)
            return self._graph.call_module(path, (self._copy(node.args[0]),))
        target = _FUNCTIONS.get(kind, node.target)
        arguments = fx.map_arg(node.args, self._copy)
        keywords = fx.map_arg(node.kwargs, self._copy)
        copied = self._graph.call_function(target, arguments, keywords)  # type: ignore[arg-type]
        scope = _scope(node)
        own = kind.split(".")[0].strip("_")
        copied.meta["user_name"] = _leaf_path(node) or (f"{scope}/{own}" if scope else own)
        return copied

    def _copy(self, value: Any) -> Any:
        """The new node of an old one; constants become attributes of the root."""
        if not isinstance(value, fx.Node):
            return value
        if value not in self._nodes:
            attribute = "constant_" + value.name
            self._root.register_buffer(attribute, self._value(value))
            self._nodes[value] = self._graph.get_attr(attribute)
        return self._nodes[value]

    def _value(self, node: Any) -> Any:
        """A constant argument's tensor, None for an absent one."""
        if node is None:
            return None
        target = self._targets.get(node.name)
        if target is None:
            raise ModelError(
                f"model {self._name} computes a weight at run time ('{node.name}'), which is not "
                "supported"
            )
        return self._stored[target].detach()

    def _module(self, node: fx.Node, kind: str) -> tuple[str, nn.Module] | None:
        arguments: list[Any] = [*node.args, *[None] * 9]
        if kind in ("conv2d.default", "conv2d.padding", "linear.default", "batch_norm.default"):
            if not self._is_constant(arguments[1]):
                return None
            path = self._targets[arguments[1].name].rpartition(".")[0]
            path = path or node.name
            if kind == "linear.default":
                return path, self._linear(arguments)
            if kind == "batch_norm.default":
                return path, self._batch_norm(arguments)
            return path, self._conv2d(node)
        path = _leaf_path(node)
        if not path or kind not in _PARAMETERLESS:
            return None
        return path, _PARAMETERLESS[kind](arguments)

    def _is_constant(self, argument: Any) -> bool:
        return isinstance(argument, fx.Node) and argument.name in self._targets

    def _conv2d(self, node: fx.Node) -> nn.Module:
        names = ("stride", "padding", "dilation", "groups")
        options: dict[str, Any] = dict(zip(names, node.args[3:], strict=False))
        options.update({key: node.kwargs[key] for key in names if key in node.kwargs})
        weight = self._value(node.args[1])
        bias = self._value(node.args[2] if len(node.args) > 2 else node.kwargs.get("bias"))
        groups = int(options.get("groups", 1))
        settings: dict[str, Any] = {
            key: value if isinstance(value, str) else tuple(value)
            for key, value in options.items()
            if key != "groups"
        }
        module = nn.Conv2d(
            weight.shape[1] * groups,
            weight.shape[0],
            tuple(weight.shape[2:]),
            groups=groups,
            bias=bias is not None,
            **settings,
        )
        return _filled(module, weight, bias)

    def _linear(self, arguments: list[Any]) -> nn.Module:
        weight, bias = self._value(arguments[1]), self._value(arguments[2])
        return _filled(nn.Linear(weight.shape[1], weight.shape[0], bias is not None), weight, bias)

    def _batch_norm(self, arguments: list[Any]) -> nn.Module:
        if arguments[5]:
            raise ModelError(
                f"model {self._name} was exported in training mode; call eval() before exporting"
            )
        mean, variance = self._value(arguments[3]), self._value(arguments[4])
        module = nn.BatchNorm2d(len(mean), eps=float(arguments[7]))
        module.running_mean, module.running_var = mean.clone(), variance.clone()
        return _filled(module, self._value(arguments[1]), self._value(arguments[2]))

    def _place(self, path: str, module: nn.Module) -> str:
        """Put a module at a dotted path, or at PATH_1, PATH_2, … where that holds another one.

        A second use of the same module finds it there. Returns the path.
        """
        parent = self._root
        *outer, last = path.split(".")
        for part in outer:
            if part not in parent._modules:
                parent.add_module(part, nn.Module())
            parent = parent.get_submodule(part)
        name, count = last, 0
        while name in parent._modules and not _same(parent.get_submodule(name), module):
            count += 1
            name = f"{last}_{count}"
        if name not in parent._modules:
            parent.add_module(name, module.eval())
        return ".".join((*outer, name))


def _same(first: nn.Module, second: nn.Module) -> bool:
    """Whether two modules of this file compute the same: kind, settings and tensors."""
    if type(first) is not type(second) or first.extra_repr() != second.extra_repr():
        return False
    tensors, others = first.state_dict(), second.state_dict()
    return tensors.keys() == others.keys() and all(
        torch.equal(tensor, others[name]) for name, tensor in tensors.items()
    )


def _filled(module: nn.Module, weight: torch.Tensor | None, bias: torch.Tensor | None) -> nn.Module:
    if weight is not None:
        module.weight = nn.Parameter(weight.clone(), requires_grad=False)
    if bias is not None:
        module.bias = nn.Parameter(bias.clone(), requires_grad=False)
    return module


def _max_pool(arguments: list[Any]) -> nn.Module:
    return nn.MaxPool2d(
        arguments[1],
        arguments[2] or None,
        arguments[3] or 0,
        arguments[4] or 1,
        ceil_mode=bool(arguments[5]),
    )


def _average_pool(arguments: list[Any]) -> nn.Module:
    include = True if arguments[5] is None else bool(arguments[5])
    return nn.AvgPool2d(
        arguments[1],
        arguments[2] or None,
        arguments[3] or 0,
        bool(arguments[4]),
        include,
        arguments[6],
    )


def _hardtanh(arguments: list[Any]) -> nn.Module:
    low = -1.0 if arguments[1] is None else float(arguments[1])
    high = 1.0 if arguments[2] is None else float(arguments[2])
    return nn.ReLU6() if (low, high) == (0.0, 6.0) else nn.Hardtanh(low, high)


_PARAMETERLESS: dict[str, Callable[[list[Any]], nn.Module]] = {
    "relu.default": lambda _: nn.ReLU(),
    "relu_.default": lambda _: nn.ReLU(),
    "relu6.default": lambda _: nn.ReLU6(),
    "hardtanh.default": _hardtanh,
    "hardtanh_.default": _hardtanh,
    "max_pool2d.default": _max_pool,
    "avg_pool2d.default": _average_pool,
    "adaptive_avg_pool2d.default": lambda arguments: nn.AdaptiveAvgPool2d(tuple(arguments[1])),
    "flatten.using_ints": lambda arguments: nn.Flatten(
        1 if arguments[1] is None else arguments[1], -1 if arguments[2] is None else arguments[2]
    ),
}


def _stack(node: fx.Node) -> list[tuple[str, str]]:
    entries = (node.meta.get("nn_module_stack") or {}).values()
    return [(str(entry[0]), str(entry[1])) for entry in entries]


def _leaf_path(node: fx.Node) -> str:
    """Path of the torch.nn module that the operator came from, "" for a function call."""
    stack = _stack(node)
    if stack and "torch.nn.modules." in stack[-1][1] and "container" not in stack[-1][1]:
        return stack[-1][0].split("@")[0]
    return ""


def _scope(node: fx.Node) -> str:
    """Path of the user's module whose forward calls the operator."""
    stack = _stack(node)
    return stack[-1][0].split("@")[0] if stack and ".<locals>." not in stack[-1][1] else ""
