"""Families of operators: found in their folder, registered from elsewhere, free to claim chains."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accelsim.errors import InputError
from accelsim.reference import flow, operators
from accelsim.reference.flow import Claim, Island
from accelsim.reference.kernels import Emitter, Kernel, Values
from accelsim.reference.network import ReferenceLayer
from accelsim.reference.operators import Operator
from accelsim.reference.site import Site
from tests.reference import qnnpack
from tests.reference.qdq import op
from tests.reference.single import Input, layer, stored

ROOM = Path(operators.__file__).parents[1]
SHARED = ("flow", "graph", "integer", "pytorch", "torch_layer", "causes", "kernels", "site")


@pytest.fixture
def registered() -> Iterator[list[Operator]]:
    """Families to take out again."""
    added: list[Operator] = []
    yield added
    for one in added:
        del operators._registry()[one.name]


def joined(island: Island) -> Claim | None:
    node = island.ending.value
    if not isinstance(node, flow.Node) or node.operator != "relax.concat":
        return None
    (sources,) = node.operands
    return Claim("concat", None, tuple(sources), node.shape)


def joined_kernel(site: Site) -> Kernel:
    def emit(emit: Emitter, x: list[Any], p: Values) -> Any:
        return emit(op.concat([emit.load(value, side) for side, value in enumerate(x)], 1))

    return Kernel(emit, {})


def squared(island: Island) -> Claim | None:
    """The chain x·clip(x + 3, 0, 6), whatever its order: any nodes that start at one source."""
    nodes = [one for one in flow.walked(island.last) if isinstance(one, flow.Node)]
    wanted = {"relax.multiply", "relax.clip", "relax.add"}
    if {node.operator for node in nodes} != wanted or len(island.sources()) != 1:
        return None
    module, starts = island.code()
    assert starts == [source.tensor for source in island.sources()]
    assert module["main"].params[0].ty.dtype == "uint8"
    return Claim("chain", None, island.sources(), island.output.shape)


def chain(module: Any, x: Any) -> Any:
    shifted = module.emit(op.add(x, flow_constant(3.0)))
    return module.emit(op.multiply(x, module.emit(op.clip(shifted, 0.0, 6.0))))


def flow_constant(value: float) -> Any:
    from tests.reference.qdq import constant

    return constant(value, "float32")


def test_every_module_of_the_folder_is_one_family_of_its_own_name() -> None:
    modules = {path.stem for path in (ROOM / "operators").glob("*.py")} - {"__init__"}
    assert {one.name for one in operators.operators()} == modules
    assert len(modules) >= 5


def test_shared_modules_know_no_operator() -> None:
    words = {"conv2d", "linear", "matmul", "pool", "concat", "Affine", "Pool", "bias", "conv"}
    for name in SHARED:
        text = (ROOM / f"{name}.py").read_text()
        code = re.sub(r'""".*?"""|#.*', "", text, flags=re.S)
        found = words & set(re.findall(r"\w+", code))
        assert found <= ({"bias"} if name == "kernels" else set()), name


def test_family_from_elsewhere_joins_three_inputs(registered: list[Operator], seed: int) -> None:
    operator = Operator("joined", joined, joined_kernel)
    operators.register(operator)
    registered.append(operator)
    shapes = [(2, channels, 3, 4) for channels in (1, 3, 2)]
    inputs = [Input(shape, np.float32(0.5), 9) for shape in shapes]
    run = layer("cat", inputs, lambda m, *x: m.emit(op.concat(list(x), 1)), np.float32(0.5), 9)
    values = [stored(np.random.default_rng([seed, i]), shape) for i, shape in enumerate(shapes)]
    (only,) = run.layers
    assert (only.kind, only.op, only.family, len(only.inputs)) == ("integer", "concat", "joined", 3)
    actual = run.run_layer("cat", tuple(qnnpack.nhwc(value) for value in values))
    np.testing.assert_array_equal(actual, qnnpack.nhwc(np.concatenate(values, 1)))


def test_chain_of_elementwise_operators_is_claimed_whole(registered: list[Operator]) -> None:
    source = [Input((1, 256), np.float32(0.1), 9)]
    alone: ReferenceLayer = layer("swish", source, chain, np.float32(0.1), 9).layers[0]
    assert (alone.kind, alone.op) == ("integer", "lookup")
    operator = Operator(
        "chain", squared, lambda site: Kernel(lambda emit, x, p: emit.load(x[0]), {}), rank=-1
    )
    operators.register(operator)
    registered.append(operator)
    assert operators.operators()[0].name == "chain"
    claimed = layer("swish", source, chain, np.float32(0.1), 9).layers[0]
    assert (claimed.kind, claimed.op, claimed.inputs) == ("integer", "chain", ("in0",))


def test_name_that_is_taken_is_refused() -> None:
    operator = operators.family("add")
    with pytest.raises(InputError, match="operator family 'add' already"):
        operators.register(operator)
    with pytest.raises(InputError, match="no operator family 'absent'"):
        operators.family("absent")
