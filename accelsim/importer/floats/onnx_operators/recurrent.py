"""Recurrent layers, step by step: LSTM, GRU and RNN of a fixed number of steps.

What comes in: a node with constant weights. What goes out: linear layers, sigmoids and products,
one of each for every step, so that they are calibrated and quantized like any other layer.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import fx, nn

from accelsim.importer.floats.network import linear

if TYPE_CHECKING:
    from accelsim.importer.floats.onnx_graph import OnnxGraph
    from accelsim.importer.onnx.model import OnnxNode

MOST = 256  # steps: each has layers of its own
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
KNOWN = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh"), "RNN": ("tanh",)}
State = tuple[fx.Node | None, fx.Node | None]  # hidden, and an LSTM's cell; None is zero


@dataclass(frozen=True, slots=True)
class Weights:
    """Of one direction: rows are gates, one after the other, of `size` each."""

    own: np.ndarray
    back: np.ndarray
    own_bias: np.ndarray
    back_bias: np.ndarray
    size: int


def recurrent(graph: OnnxGraph, node: OnnxNode) -> tuple[fx.Node, ...]:
    """LSTM, GRU or RNN, in one direction or both."""
    steps, batch, _ = graph.shape(node.input(0))
    found = _weights(graph, node, steps)
    net, size = graph.net, found[0].size
    starts = [_start(graph, node, place, len(found)) for place in (5, 6)]
    backward = str(node.attributes.get("direction", "forward")) == "reverse"
    sides: list[list[fx.Node]] = []
    ends: list[State] = []
    for number, weights in enumerate(found):
        name = f"{node.name}/{number}" if len(found) > 1 else node.name
        layer = linear(weights.own, weights.own_bias)
        given = net.module(f"{name}/input", layer, graph.node(node.input(0)))
        state: State = (starts[0][number], starts[1][number])
        order = range(steps) if not (backward or number) else reversed(range(steps))
        made: dict[int, fx.Node] = {}
        for step in order:
            x = net.call(f"{name}/step_{step}", torch.select, given, 0, step)
            state = _STEPS[node.operator](graph, node, f"{name}/step_{step}", x, state, weights)
            assert state[0] is not None
            made[step] = state[0]
        sides.append([made[step] for step in range(steps)])
        ends.append(state)
    rows_of = [[_row(graph, node, h, (1, 1, batch, size)) for h in side] for side in sides]
    along = [net.call(f"{node.name}/steps", torch.cat, side, dim=0) for side in rows_of]
    every = along[0] if len(along) == 1 else net.call(node.name, torch.cat, along, dim=1)
    results = [every]
    for place in (0, 1):
        last = [state[place] for state in ends if state[place] is not None]
        rows = [_row(graph, node, one, (1, batch, size)) for one in last]
        if rows:
            results.append(
                rows[0] if len(rows) == 1 else net.call(node.name, torch.cat, rows, dim=0)
            )
    return tuple(results)


def _row(graph: OnnxGraph, node: OnnxNode, x: Any, shape: tuple[int, ...]) -> fx.Node:
    return graph.net.call(f"{node.name}/row", torch.reshape, x, shape)


def _weights(graph: OnnxGraph, node: OnnxNode, steps: int) -> list[Weights]:
    named, kind = node.attributes, node.operator
    count = GATES[kind]
    own, back = (graph.constant(node.input(place)) for place in (1, 2))
    bias = graph.constant(node.input(3)) if node.input(3) else None
    if own is None or back is None or (node.input(3) and bias is None):
        raise graph.wrong(node, "computes its weights")
    directions, size = own.shape[0], own.shape[1] // count
    wanted = tuple(one.lower() for one in named.get("activations", KNOWN[kind] * directions))
    plain = wanted == KNOWN[kind] * directions and not named.get("layout", 0)
    if not plain or named.get("clip", 0) or named.get("input_forget", 0):
        raise graph.wrong(node, "has other activations, limits, coupled gates or batches first")
    if node.input(4) or node.input(7):
        raise graph.wrong(node, "has lengths of its own for each sample, or peepholes")
    if steps > MOST:
        raise graph.wrong(node, f"has {steps} steps, more than {MOST}")
    if bias is None:
        bias = np.zeros((directions, 2 * count * size), np.float32)
    halves = np.split(bias, 2, axis=1)
    return [Weights(own[k], back[k], halves[0][k], halves[1][k], size) for k in range(directions)]


def _start(graph: OnnxGraph, node: OnnxNode, place: int, count: int) -> list[fx.Node | None]:
    """The state before the first step, for each direction."""
    if not node.input(place) or (place == 6 and node.operator != "LSTM"):
        return [None] * count
    whole = graph.node(node.input(place))
    return [
        graph.net.call(f"{node.name}/start_{k}", torch.select, whole, 0, k) for k in range(count)
    ]


def _gate(
    graph: OnnxGraph, name: str, x: fx.Node, place: int, size: int, kind: nn.Module
) -> fx.Node:
    part = (slice(None), slice(place * size, (place + 1) * size))
    taken = graph.net.call(f"{name}/gate_{place}", operator.getitem, x, part)
    return graph.net.module(f"{name}/gate_{place}", kind, taken)


def _rnn(
    graph: OnnxGraph, node: OnnxNode, name: str, x: fx.Node, state: State, w: Weights
) -> State:
    total = _fed_back(graph, name, x, state[0], w.back, w.back_bias)
    return graph.net.module(f"{name}/tanh", nn.Tanh(), total), None


def _fed_back(
    graph: OnnxGraph, name: str, x: fx.Node, h: fx.Node | None, back: Any, bias: Any
) -> fx.Node:
    """x plus what the state before adds; of a state of zeros that is the bias alone."""
    if h is None:
        return graph.net.call(f"{name}/bias", operator.add, x, graph.net.constant(bias.copy()))
    more = graph.net.module(f"{name}/state", linear(back, bias), h)
    return graph.net.call(f"{name}/sum", operator.add, x, more)


def _lstm(
    graph: OnnxGraph, node: OnnxNode, name: str, x: fx.Node, state: State, w: Weights
) -> State:
    net, (hidden, cell) = graph.net, state
    total = _fed_back(graph, name, x, hidden, w.back, w.back_bias)
    new, shown, keep = (
        _gate(graph, name, total, place, w.size, nn.Sigmoid()) for place in range(3)
    )
    fresh = net.call(
        f"{name}/new", operator.mul, new, _gate(graph, name, total, 3, w.size, nn.Tanh())
    )
    if cell is not None:
        kept = net.call(f"{name}/kept", operator.mul, keep, cell)
        fresh = net.call(f"{name}/cell", operator.add, kept, fresh)
    bent = net.module(f"{name}/tanh", nn.Tanh(), fresh)
    return net.call(f"{name}/hidden", operator.mul, shown, bent), fresh


def _gru(
    graph: OnnxGraph, node: OnnxNode, name: str, x: fx.Node, state: State, w: Weights
) -> State:
    net, hidden, size = graph.net, state[0], w.size
    gates, rest = (slice(None), slice(0, 2 * size)), (slice(None), slice(2 * size, None))
    ahead = net.call(f"{name}/gates", operator.getitem, x, gates)
    total = _fed_back(graph, name, ahead, hidden, w.back[: 2 * size], w.back_bias[: 2 * size])
    update, reset = (_gate(graph, name, total, place, size, nn.Sigmoid()) for place in (0, 1))
    own = net.call(f"{name}/own", operator.getitem, x, rest)
    back, bias = w.back[2 * size :], w.back_bias[2 * size :]
    late = bool(node.attributes.get("linear_before_reset", 0))
    if late and hidden is not None:
        fed = net.module(f"{name}/back", linear(back, bias), hidden)
        more = net.call(f"{name}/reset", operator.mul, reset, fed)
    elif late:
        more = net.call(f"{name}/reset", operator.mul, reset, net.constant(bias.copy()))
    elif hidden is not None:
        held = net.call(f"{name}/reset", operator.mul, reset, hidden)
        more = net.module(f"{name}/back", linear(back, bias), held)
    else:
        more = net.constant(bias.copy())
    raised = net.call(f"{name}/sum_new", operator.add, own, more)
    new = net.module(f"{name}/tanh", nn.Tanh(), raised)
    if hidden is None:  # (1 - z) · new
        share = net.call(f"{name}/share", operator.mul, update, new)
        return net.call(f"{name}/hidden", operator.sub, new, share), None
    change = net.call(f"{name}/change", operator.sub, hidden, new)
    share = net.call(f"{name}/share", operator.mul, update, change)
    return net.call(f"{name}/hidden", operator.add, new, share), None


_STEPS: dict[str, Any] = {"LSTM": _lstm, "GRU": _gru, "RNN": _rnn}
RULES: dict[str, Any] = dict.fromkeys(_STEPS, recurrent)
