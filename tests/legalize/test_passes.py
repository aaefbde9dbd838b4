"""A team's passes run in order on the QDQ module before its operators are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tvm import ir, relax

from accelsim.errors import InputError, ModelError
from accelsim.legalize import legalize_module, register_pass
from accelsim.legalize import passes as registry
from tests.legalize.team import network


@pytest.fixture(autouse=True)
def no_other_pass() -> Iterator[None]:
    before = list(registry._passes)
    registry._passes[:] = []
    yield
    registry._passes[:] = before


def test_passes_run_in_the_order_of_registration() -> None:
    seen = []

    def first(module: Any) -> Any:
        seen.append("first")
        return module.with_attr("mark", 1)

    def second(module: Any) -> Any:
        seen.append(module.attrs["mark"])
        return module

    register_pass(first)
    register_pass(second)
    legalized = legalize_module(network(1))
    assert seen == ["first", 1] and legalized.module.attrs["mark"] == 1


def test_pass_of_tvm_changes_what_is_read() -> None:
    module = network(2)
    before = str(legalize_module(module).module["main"])

    @ir.transform.module_pass(opt_level=0, name="KeepFirst")
    def keep_first(module: Any, context: Any) -> Any:
        del context
        main = module["main"]
        bindings = list(main.body.blocks[0].bindings)
        joined = next(b for b in bindings if "concat" in str(b.value))
        tensor = joined.value.args[0]
        first = tensor.fields[0] if isinstance(tensor, ir.Tuple) else relax.TupleGetItem(tensor, 0)
        doubled = relax.op.concat([first, first], 1)
        changed = [
            relax.VarBinding(b.var, doubled) if b.var.same_as(joined.var) else b for b in bindings
        ]
        body = relax.SeqExpr([relax.DataflowBlock(changed)], main.body.body)
        function = relax.Function(main.params, body, main.ty.ret, True, main.attrs)
        return relax.transform.Normalize()(ir.IRModule({"main": function}))

    register_pass(keep_first)
    text = str(legalize_module(module).module["main"])
    assert "KeepFirst" in [name for name, _ in registry._passes]
    assert 0 < text.count("quantize_to_int8") < before.count("quantize_to_int8")


def test_pass_that_fails_is_named() -> None:
    def broken(module: Any) -> Any:
        raise ValueError("no such operator")

    register_pass(broken)
    with pytest.raises(ModelError, match="pass 'broken' failed: no such operator"):
        legalize_module(network(1))


def test_pass_that_returns_no_module_is_named() -> None:
    register_pass(lambda module: None, "forgetful")
    with pytest.raises(ModelError, match="'forgetful' did not return a module"):
        legalize_module(network(1))


def test_pass_is_not_registered_twice() -> None:
    register_pass(lambda module: module, "twice")
    with pytest.raises(InputError, match="'twice' is registered already"):
        register_pass(lambda module: module, "twice")
