"""Tables of functions: TFLite's equal LiteRT's kernels, and qnnpack's PyTorch's, on all inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from accelsim.legalize.frame import Leaf
from accelsim.legalize.functions import NAMED, Chain, Results
from accelsim.legalize.integer_op import Quantization
from accelsim.legalize.tables import result_steps
from accelsim.peers.litert_model import TfliteTensor, tflite_model

INT8 = (-128, 127)
SLOPE = 0.3
CASES = 24
CHAINS: dict[str, Chain] = {
    "LOGISTIC": (("sigmoid", ("x",)),),
    "TANH": (("tanh", ("x",)),),
    "EXP": (("exp", ("x",)),),
    "GELU": (("nn.gelu", ("x",)),),
    "ELU": next(chain for chain, name in NAMED.items() if name == "elu"),
    "LEAKY_RELU": (("nn.leakyrelu", ("x", float(np.float32(SLOPE)))),),
    "ABS": (("abs", ("x",)),),
    "LOG": (("log", ("x",)),),
    "SQRT": (("sqrt", ("x",)),),
    "RSQRT": (("rsqrt", ("x",)),),
    "GELU by tanh": (("nn.gelu_tanh", ("x",)),),
    "HARD_SWISH": next(chain for chain, name in NAMED.items() if name == "hard_swish"),
}
FIXED = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}
OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "GELU": ("GeluOptions", {"approximate": False}),
    "GELU by tanh": ("GeluOptions", {"approximate": True}),
    "LEAKY_RELU": ("LeakyReluOptions", {"alpha": SLOPE}),
}
FROM_ZERO = ("SQRT", "RSQRT")  # LiteRT fails where a stored integer means less
FIRST_VERSION = ("HARD_SWISH", "ELU")
ALL = np.arange(-128, 128).astype(np.int8).reshape(1, 256)


def draw(rng: np.random.Generator, case: int) -> Quantization:
    """A third of the scales are powers of two, with which results lie on ties."""
    exponent = float(rng.integers(-9, 1)) if case % 3 == 0 else rng.uniform(-9, 0)
    return Quantization(np.float32(2.0**exponent), int(rng.integers(-128, 128)), "int8", INT8)


def results(chain: Chain, source: Quantization, reals: Any = None) -> Results:
    reals = np.zeros(256, np.float32) if reals is None else reals
    return Results(Leaf(None, ALL.shape, source, "nc"), reals, chain)


def lite(operator: str, source: Quantization, target: Quantization) -> Any:
    """The outputs of LiteRT's own kernel, without delegates."""
    options, fields = OPTIONS.get(operator, ("", {}))
    tensors = [
        TfliteTensor(ALL.shape, (float(one.scale),), one.zero_point) for one in (source, target)
    ]
    version = 1 if operator in FIRST_VERSION else 2
    name = operator.split()[0]
    model = tflite_model(name, tensors[:1], tensors[1:], options, version=version, **fields)
    interpreter = Interpreter(
        model_content=model,
        num_threads=1,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        if operator == "ELU"  # which the other resolver lacks
        else OpResolverType.BUILTIN_REF,
    )
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], ALL)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0]


@pytest.mark.parametrize("operator", CHAINS)
def test_table_equals_the_kernel_of_litert(operator: str) -> None:
    rng = np.random.default_rng(len(operator))
    compared = 0
    for case in range(CASES):
        source, target = draw(rng, case), draw(rng, case)
        if operator in FIXED:
            scale, zero_point = FIXED[operator]
            target = Quantization(np.float32(scale), zero_point, "int8", INT8)
        if operator in FROM_ZERO:
            source = replace(source, zero_point=-128)
        steps = result_steps(results(CHAINS[operator], source), target, "tflite")
        if steps is not None:
            table = np.clip(steps, *INT8)
            np.testing.assert_array_equal(table, lite(operator, source, target))
            compared += table.size
    assert compared > 256 * CASES // 2


def test_function_that_tflite_lacks_has_no_table() -> None:
    source = draw(np.random.default_rng(1), 1)
    assert result_steps(results((("sin", ("x",)),), source), source, "tflite") is None


def test_hard_swish_is_rounded_after_the_zero_point_as_qnnpack_does() -> None:
    rng = np.random.default_rng(4)
    chain, engine = CHAINS["HARD_SWISH"], torch.backends.quantized.engine
    torch.backends.quantized.engine = "qnnpack"
    try:
        for case in range(CASES):
            source, target = draw(rng, case), draw(rng, case)
            steps = result_steps(results(chain, source), target, "qnnpack")
            x = torch._make_per_tensor_quantized_tensor(
                torch.from_numpy((ALL.astype(np.int16) + 128).astype(np.uint8)),
                *(float(source.scale), source.zero_point + 128),
            )
            to = (float(target.scale), target.zero_point + 128)
            golden = torch.ops.quantized.hardswish(x, *to).int_repr().numpy()[0]
            np.testing.assert_array_equal(np.clip(steps, *INT8) + 128, golden)
    finally:
        torch.backends.quantized.engine = engine
