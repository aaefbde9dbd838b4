"""Instructions, one module each: its values, what it touches and what it wrote.

What comes in: the name of an instruction. What goes out: its `Behaviour`, the constant BEHAVIOUR of
the module of that name. Adding an instruction adds a module here and changes none.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from accelsim.simulate.instructions.behaviour import Behaviour


@cache
def behaviour(name: str) -> Behaviour:
    """What an instruction that an engine runs does."""
    found: Behaviour = import_module(f"{__name__}.{name}").BEHAVIOUR
    return found
