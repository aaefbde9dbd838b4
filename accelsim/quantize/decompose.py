"""Conversion of functions that TVM's importer lacks or gets wrong, by PyTorch's decomposition.

What comes in: a node of an exported program. What goes out: Relax calls of what it is made of. It
must not know single functions, but for those that TVM's importer takes for others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from accelsim.errors import ModelError
from accelsim.importer.reasons import reason
from accelsim.quantize.constants import Constants
from accelsim.quantize.indices import index_from_start
from accelsim.quantize.rules import RANDOM, rule_of

Converter = Callable[[fx.Node, Any], Any]
_KEY = "accelsim.layer"
LONGEST = 300  # functions that one is made of, at most: factorizations have thousands


class Guarded:
    """Converters of all functions of a program: ours, then TVM's, then a decomposition.

    A function that none of them converts ends in a ModelError that names it and its layer.
    """

    def __init__(self, own: Mapping[str, Converter], constants: Constants) -> None:
        self._own = own
        self._constants = constants
        self._tvm: Mapping[str, Callable[[fx.Node], Any]] | None = None

    def table(self, program: torch.export.ExportedProgram) -> dict[str, Converter]:
        """A converter for every function that a program calls."""
        nodes = program.graph.nodes
        return {_name_of(node): self.convert for node in nodes if node.op == "call_function"}

    def convert(self, node: fx.Node, importer: Any) -> Any:
        """The Relax value of a node."""
        name = _name_of(node)
        if name in self._own:
            return self._own[name](node, importer)
        if self._tvm is None:
            index = partial(index_from_start, importer=importer, constants=self._constants)
            self._tvm = {**importer.create_convert_map(), "index.Tensor": index}
        rule = rule_of(name, node.kwargs, node.args)
        failed: BaseException | None = None
        if rule is None and self._has(node):
            try:
                return self._tvm[name](node)
            except Exception as error:  # TVM's importer asserts and raises many kinds
                failed = error
        inner = self._decomposed(node, rule)
        if inner is None:
            raise ModelError(self._refusal(node, failed))
        return self._inlined(node, inner, importer)

    def _has(self, node: fx.Node) -> bool:
        """Whether a function has a converter, be it ours or TVM's."""
        name = _name_of(node)
        aten = getattr(node.target, "namespace", "aten") == "aten"
        return name in self._own or (
            aten and name in (self._tvm or ()) and name not in RANDOM | _MISTAKEN
        )

    def _decomposed(self, node: fx.Node, rule: Callable[..., Any] | None) -> fx.GraphModule | None:
        """What a node is made of, in simpler functions; None where nothing is known."""
        target: Any = node.target
        if rule is not None:
            return _traced(node, rule, {})
        if _name_of(node) in RANDOM:
            return None
        for table in _tables():
            known = set(self._tvm or ()) - _MISTAKEN
            simpler = {
                one: way
                for one, way in table.items()
                if one is target or str(getattr(one, "__name__", "")) not in known
            }
            inner = _traced(node, target, simpler)
            calls = [] if inner is None else [one for one in inner.graph.nodes if _is_call(one)]
            if [one.target for one in calls] == [target]:
                continue  # the function itself, which has failed
            if len(calls) <= LONGEST and all(map(self._can, calls)):
                return inner
        return None

    def _can(self, node: fx.Node) -> bool:
        return self._has(node) or rule_of(_name_of(node), node.kwargs, node.args) is not None

    def _inlined(self, node: fx.Node, inner: fx.GraphModule, importer: Any) -> Any:
        outer = [one for one in pytree.tree_leaves((node.args, node.kwargs)) if _is_node(one)]
        inputs = [one for one in inner.graph.nodes if one.op == "placeholder"]
        for one, given in zip(inputs, outer, strict=True):
            importer.env[one] = importer.env[given]
            self._constants.stand_for(one, given)
        for one in inner.graph.nodes:
            if one.op == "get_attr":
                value = getattr(inner, str(one.target))
                importer.env[one] = importer._convert_pytorch_tensor_to_tvm(value)
            elif one.op == "call_function":
                try:
                    importer.env[one] = self.convert(one, importer)
                except ModelError as error:
                    raise ModelError(self._refusal(node, None)) from error
            elif one.op == "output":
                return pytree.tree_map_only(fx.Node, lambda value: importer.env[value], one.args[0])
        return None

    def _refusal(self, node: fx.Node, failed: BaseException | None) -> str:
        layer, name = layer_of(node), str(node.target)
        of = f"layer '{layer}' of model {self._constants.model}"
        if failed is None:
            return (
                f"{of} calls {name}, which neither TVM nor accelsim can convert; register a "
                "converter of it, or leave it out of the network"
            )
        return f"TVM cannot convert {name} in {of}: {reason(failed)}"


def layer_of(node: fx.Node) -> str:
    """The user's name of the layer that a node is in, or the node's own.

    An element of its result alone, which a user did not name, is no layer.
    """
    pending, seen = [node], {node}
    while pending:
        one = pending.pop(0)
        stored: Any = one.meta.get("custom")
        if isinstance(stored, dict) and _KEY in stored:
            name = str(stored[_KEY][0])
            return node.name if name.startswith("getitem") else name
        pending += [user for user in one.users if user not in seen]
        seen.update(one.users)
    return node.name


@cache
def _tables() -> tuple[Mapping[Any, Any], ...]:
    """PyTorch's decompositions: those into its core functions, then all."""
    from torch._decomp import core_aten_decompositions, decomposition_table

    return core_aten_decompositions(), decomposition_table


def _traced(
    node: fx.Node, run: Callable[..., Any], simpler: Mapping[Any, Any]
) -> fx.GraphModule | None:
    """The graph of `run` on a node's arguments, one input for each tensor among these."""
    from torch.fx.experimental.proxy_tensor import make_fx

    values, spec = pytree.tree_flatten((node.args, node.kwargs))
    places = [place for place, value in enumerate(values) if isinstance(value, fx.Node)]

    def filled(*tensors: Any) -> Any:
        given = list(values)
        for place, tensor in zip(places, tensors, strict=True):
            given[place] = tensor
        args, kwargs = pytree.tree_unflatten(given, spec)
        return run(*args, **kwargs)

    examples = [_example(values[place]) for place in places]
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            traced: fx.GraphModule = make_fx(filled, dict(simpler), tracing_mode="fake")(*examples)
    except Exception:  # whatever a decomposition raises on symbolic values
        return None
    return traced


def _is_call(node: fx.Node) -> bool:
    return node.op == "call_function" and _name_of(node) != "getitem"


def _name_of(node: fx.Node) -> str:
    return str(getattr(node.target, "__name__", node.target))


def _is_node(value: Any) -> bool:
    return isinstance(value, fx.Node)


def _example(node: fx.Node) -> torch.Tensor:
    value = node.meta["val"]
    return torch.zeros(tuple(value.shape), dtype=value.dtype)


_MISTAKEN = frozenset({"grid_sampler_2d.default", "instance_norm.default"})
"""Functions of which TVM's importer makes something else."""
