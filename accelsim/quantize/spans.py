"""User's names on Relax calls, and the members of each layer.

What comes in: calls and names. What goes out: calls with a span, and what the spans say. It must
not know where the names come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
from tvm import relax
from tvm.ir import SourceName, Span

_MEMBERS = "accelsim.members"
_REASONS = "accelsim.reasons"


def named_span(name: str) -> Any:
    """A span that carries `name` and no position."""
    return Span(SourceName(name), 0, 0, 0, 0)


def with_span(call: Any, name: str) -> Any:
    """The same call with the user's name on it."""
    return relax.Call(call.op, call.args, call.attrs, call.ty_args, named_span(name))


def span_name(expr: Any) -> str | None:
    """The user's name on a call, or None where it has none."""
    span = getattr(expr, "span", None)
    source = getattr(span, "source_name", None)
    return str(source.name) if source is not None else None


def with_members(module: Any, members: Mapping[str, tuple[str, ...]]) -> Any:
    """The module with the members of each layer in its attributes."""
    value = {name: list(layer) for name, layer in members.items()}
    return module.with_attr(_MEMBERS, tvm.runtime.convert(value))


def with_reasons(module: Any, reasons: Mapping[str, str]) -> Any:
    """The module with reasons of layers that no hardware of fixed scales could run."""
    return module.with_attr(_REASONS, tvm.runtime.convert(dict(reasons))) if reasons else module


def layer_reasons(module: Any) -> dict[str, str]:
    """Layer name → why it stays on the host, as far as its model's reader knew."""
    stored = module.attrs[_REASONS] if module.attrs and _REASONS in module.attrs else {}
    return {str(name): str(stored[name]) for name in stored}


def layer_members(module: Any) -> dict[str, tuple[str, ...]]:
    """Layer name → the user's operators that it computes, in execution order.

    A convolution with a folded batch norm and a fused ReLU lists all three.
    """
    stored = module.attrs[_MEMBERS] if module.attrs and _MEMBERS in module.attrs else {}
    return {str(name): tuple(str(member) for member in stored[name]) for name in stored}
