"""Operators element by element and those that move elements, against plain NumPy; all are tested in one of these."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checked_operators import Array, Input, check, f32, of, positive

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.interpret.te import run_te
from loopwright.topi import testing as ref


def erf(x: Array) -> Array:
    from math import erf as scalar

    return np.vectorize(scalar)(x.astype(np.float64))


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x.astype(np.float64)))


ELEMENTWISE: dict[str, tuple[Callable[..., Any], Callable[..., Any], Input]] = {
    "relu": (topi.nn.relu, lambda x: np.maximum(x, 0), f32(5, 7)),
    "relu int32": (topi.nn.relu, lambda x: np.maximum(x, 0), of("int32", 5, 7)),
    "relu int8": (topi.nn.relu, lambda x: np.maximum(x, 0), of("int8", 5, 7)),
    "relu6": (topi.nn.relu6, lambda x: np.clip(x, 0, 6), f32(5, 7)),
    "leaky_relu": (lambda x: topi.nn.leaky_relu(x, 0.2), lambda x: np.where(x > 0, x, 0.2 * x), f32(5, 7)),
    "gelu": (topi.nn.gelu, lambda x: x * 0.5 * (1 + erf(x * np.sqrt(0.5))), f32(5, 7)),
    "gelu tanh": (
        lambda x: topi.nn.gelu(x, "tanh"),
        lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
        f32(5, 7),
    ),
    "silu": (topi.nn.silu, lambda x: x * sigmoid(x), f32(5, 7)),
    "hard_sigmoid": (topi.nn.hard_sigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1), f32(5, 7)),
    "hard_swish": (topi.nn.hard_swish, lambda x: x * np.clip(x + 3, 0, 6) / 6, f32(5, 7)),
    "elu": (lambda x: topi.nn.elu(x, 0.7), lambda x: np.where(x > 0, x, 0.7 * np.expm1(x)), f32(5, 7)),
    "softplus": (topi.nn.softplus, lambda x: np.logaddexp(x, 0), f32(5, 7)),
    "identity": (topi.identity, lambda x: x, f32(5, 7)),
    "negative": (topi.negative, np.negative, f32(5, 7)),
    "negative int32": (topi.negative, np.negative, of("int32", 5, 7)),
    "exp": (topi.exp, np.exp, f32(5, 7)),
    "exp float16": (topi.exp, lambda x: np.exp(x.astype(np.float64)), of("float16", 5, 7)),
    "exp2": (topi.exp2, np.exp2, f32(5, 7)),
    "log": (topi.log, np.log, positive(5, 7)),
    "log2": (topi.log2, np.log2, positive(5, 7)),
    "sqrt": (topi.sqrt, np.sqrt, positive(5, 7)),
    "rsqrt": (topi.rsqrt, lambda x: 1 / np.sqrt(x), positive(5, 7)),
    "sin": (topi.sin, np.sin, f32(5, 7)),
    "cos": (topi.cos, np.cos, f32(5, 7)),
    "tan": (topi.tan, np.tan, of("float64", 5, 7)),
    "tanh": (topi.tanh, np.tanh, f32(5, 7)),
    "sigmoid": (topi.sigmoid, sigmoid, f32(5, 7)),
    "erf": (topi.erf, erf, f32(5, 7)),
    "abs": (topi.abs, np.abs, f32(5, 7)),
    "abs int32": (topi.abs, np.abs, of("int32", 5, 7)),
    "floor": (topi.floor, np.floor, f32(5, 7)),
    "ceil": (topi.ceil, np.ceil, f32(5, 7)),
    "round": (topi.round, np.round, f32(5, 7)),
    "trunc": (topi.trunc, np.trunc, f32(5, 7)),
    "sign": (topi.sign, np.sign, f32(5, 7)),
    "sign int8": (topi.sign, np.sign, of("int8", 5, 7)),
    "square": (topi.square, np.square, f32(5, 7)),
    "reciprocal": (topi.reciprocal, np.reciprocal, positive(5, 7)),
    "clip": (lambda x: topi.clip(x, -0.5, 0.7), lambda x: np.clip(x, -0.5, 0.7), f32(5, 7)),
    "clip int32": (lambda x: topi.clip(x, -5, 7), lambda x: np.clip(x, -5, 7), of("int32", 5, 7)),
    "logical_not": (topi.logical_not, np.logical_not, of("bool", 5, 7)),
    "rank 0": (topi.exp, np.exp, f32()),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name: str) -> None:
    operator, reference, data = ELEMENTWISE[name]
    check(operator, reference, data)


@pytest.mark.parametrize("name", ["sigmoid", "gelu", "gelu tanh", "silu", "elu", "softplus"])
def test_functions_of_several_steps_are_rounded_once(name: str) -> None:
    operator, reference, _ = ELEMENTWISE[name]
    data = np.linspace(-6, 6, 500, dtype="float16")
    x = te.placeholder(data.shape, "float16")
    (found,) = run_te(te.create_module([x, operator(x)]), [data], accumulate="native")
    wanted = reference(data.astype(np.float64))
    assert found.dtype == np.float16
    assert (np.abs(found - wanted) <= np.spacing(np.abs(wanted).astype(np.float16)) * 0.51 + 1e-6).all()


@pytest.mark.parametrize("other", [True, False, np.bool_(True), "tensor"])
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_larger_and_smaller_of_conditions(name: str, other: Any) -> None:
    """Also as networks compile them: on the CPU, not by the interpreter alone."""
    ours, numpys = getattr(topi, name), getattr(np, name)
    if isinstance(other, str):
        check(ours, numpys, of("bool", 5, 7), of("bool", 7))
        return
    check(lambda x: ours(x, other), lambda x: numpys(x, other), of("bool", 5, 7))
    net = lw.Network("net")
    net.output(getattr(net, name)(net.input("x", (5,), "bool"), other))
    values = np.array([True, False, True, False, False])
    run = lw.compile(net, "llvm cores=1", processes=1).executor()
    run.set_input("x", values)
    run.run()
    np.testing.assert_array_equal(run.get_output(0), numpys(values, other))


@pytest.mark.parametrize("source", ["float16", "float32", "float64", "int8", "int32", "int64", "bool"])
@pytest.mark.parametrize("target", ["float16", "float32", "float64", "int8", "int32", "int64", "bool"])
def test_cast(source: str, target: str) -> None:
    check(lambda x: topi.cast(x, target), lambda x: x.astype(target), of(source, 5, 7))


def test_prelu_and_bias_add() -> None:
    check(topi.nn.prelu, lambda x, s: np.where(x > 0, x, x * s[:, None]), f32(2, 5, 7), f32(5))
    check(topi.nn.bias_add, lambda x, b: x + b[:, None], f32(2, 5, 7), f32(5))
    check(lambda x, b: topi.nn.bias_add(x, b, -1), lambda x, b: x + b, f32(2, 5, 7), f32(7))


def test_pad() -> None:
    check(
        lambda x: topi.nn.pad(x, (1, 0, 2), (0, 3, 1), -1.5),
        lambda x: np.pad(x, [(1, 0), (0, 3), (2, 1)], constant_values=-1.5),
        f32(3, 5, 7),
    )
    check(lambda x: topi.nn.pad(x, (2, 1)), lambda x: np.pad(x, [(2, 2), (1, 1)]), of("int8", 5, 7))


BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any], str]] = {
    "add": (topi.add, np.add, "float32 int32 int8"),
    "subtract": (topi.subtract, np.subtract, "float32 int32"),
    "multiply": (topi.multiply, np.multiply, "float32 float16 int32"),
    "divide": (topi.divide, np.divide, "float32 float64"),
    "floor_divide": (topi.floor_divide, np.floor_divide, "float64 int32"),
    "mod": (topi.mod, np.mod, "float64 int32"),
    "maximum": (topi.maximum, np.maximum, "float32 int32 int8"),
    "minimum": (topi.minimum, np.minimum, "float32 int32"),
    "equal": (topi.equal, np.equal, "float32 int32"),
    "not_equal": (topi.not_equal, np.not_equal, "float32 int32"),
    "less": (topi.less, np.less, "float32 int32"),
    "less_equal": (topi.less_equal, np.less_equal, "float32 int32"),
    "greater": (topi.greater, np.greater, "float32 int32"),
    "greater_equal": (topi.greater_equal, np.greater_equal, "float32 int32"),
    "logical_and": (topi.logical_and, np.logical_and, "bool"),
    "logical_or": (topi.logical_or, np.logical_or, "bool"),
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.few(8)
def test_broadcasting(name: str) -> None:
    operator, reference, dtypes = BINARY[name]
    for dtype in dtypes.split():
        for left, right in (((5, 7), (5, 7)), ((3, 1, 7), (5, 1)), ((7,), (2, 5, 7)), ((), (3,)), ((1, 1), (5, 7))):
            second = Input(right, dtype, 1, 9) if "div" in name or name == "mod" else of(dtype, *right)
            check(operator, lambda x, y: reference(x, y), of(dtype, *left), second)


def test_operators_of_tensors_and_numbers() -> None:
    check(lambda x: 2.0 - x * 3 + x / 4.0, lambda x: 2.0 - x * 3 + x / 4.0, f32(5, 7))
    check(lambda x: -x + 1, lambda x: -x + 1, of("int32", 5))
    check(lambda x, y: (x - y) * y, lambda x, y: (x - y) * y, f32(5, 1), f32(7))
    check(lambda x: 1.0 / x**2.0, lambda x: 1 / x.astype(np.float64) ** 2, positive(5, 7))
    check(lambda x, y: topi.power(x, y), lambda x, y: x**y, positive(5, 7), f32(7))
    check(lambda x: topi.maximum(0.25, x), lambda x: np.maximum(0.25, x), f32(5, 7))


def test_where() -> None:
    check(topi.where, np.where, of("bool", 5, 7), f32(7), f32(5, 1))
    check(lambda c, x: topi.where(c, x, 0.0), lambda c, x: np.where(c != 0, x, 0.0), of("int32", 5, 7), f32(5, 7))


MOVES: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[Input]]] = {
    "transpose": (lambda x: topi.transpose(x, (1, 2, 0)), lambda x: x.transpose(1, 2, 0), [f32(5, 7, 3)]),
    "transpose all": (topi.transpose, np.transpose, [of("int8", 5, 7, 3)]),
    "reshape": (lambda x: topi.reshape(x, (7, -1, 6)), lambda x: x.reshape(7, -1, 6), [f32(6, 7, 13)]),
    "reshape split": (lambda x: topi.reshape(x, (6, 2, 5, 7)), lambda x: x.reshape(6, 2, 5, 7), [f32(6, 70)]),
    "reshape merge": (lambda x: topi.reshape(x, (42, 13)), lambda x: x.reshape(42, 13), [f32(6, 7, 13)]),
    "reshape mixed": (lambda x: topi.reshape(x, (14, 3, 13)), lambda x: x.reshape(14, 3, 13), [f32(6, 7, 13)]),
    "reshape rank 0": (lambda x: topi.reshape(x, ()), lambda x: x.reshape(()), [f32(1, 1)]),
    "flatten": (topi.flatten, lambda x: x.reshape(3, -1), [f32(3, 5, 7)]),
    "squeeze": (topi.squeeze, np.squeeze, [f32(1, 5, 1, 7)]),
    "squeeze one": (lambda x: topi.squeeze(x, 2), lambda x: x.squeeze(2), [f32(1, 5, 1, 7)]),
    "expand_dims": (lambda x: topi.expand_dims(x, 1, 2), lambda x: x[:, None, None], [f32(5, 7)]),
    "expand_dims end": (lambda x: topi.expand_dims(x, -1), lambda x: x[..., None], [f32(5, 7)]),
    "broadcast_to": (lambda x: topi.broadcast_to(x, (3, 5, 7)), lambda x: np.broadcast_to(x, (3, 5, 7)), [f32(5, 1)]),
    "concatenate": (
        lambda x, y, z: topi.concatenate([x, y, z], 1),
        lambda x, y, z: np.concatenate([x, y, z], 1),
        [f32(5, 7), f32(5, 1), f32(5, 3)],
    ),
    "concatenate one": (lambda x: topi.concatenate([x]), lambda x: x, [f32(5, 7)]),
    "stack": (lambda x, y: topi.stack([x, y], -1), lambda x, y: np.stack([x, y], -1), [f32(5, 7), f32(5, 7)]),
    "stack rank 0": (lambda x, y: topi.stack([x, y]), lambda x, y: np.stack([x, y]), [f32(), f32()]),
    "split": (lambda x: topi.split(x, 3, 1), lambda x: np.split(x, 3, 1), [f32(5, 21)]),
    "split at": (lambda x: topi.split(x, [2, 5], -1), lambda x: np.split(x, [2, 5], -1), [f32(5, 7)]),
    "strided_slice": (
        lambda x: topi.strided_slice(x, (1, 0), (5, 100), (2, 3)), lambda x: x[1:5:2, 0:100:3], [f32(7, 11)]
    ),
    "strided_slice back": (
        lambda x: topi.strided_slice(x, (4, -1), (0, -9), (-2, -3)), lambda x: x[4:0:-2, -1:-9:-3], [f32(5, 11)]
    ),
    "strided_slice axes": (
        lambda x: topi.strided_slice(x, (-3,), (100,), axes=(1,)), lambda x: x[:, -3:], [f32(5, 11)]
    ),
    "flip": (lambda x: topi.flip(x, 1), lambda x: x[:, ::-1], [f32(5, 7)]),
    "tile": (lambda x: topi.tile(x, (2, 3)), lambda x: np.tile(x, (2, 3)), [f32(5, 7)]),
    "repeat": (lambda x: topi.repeat(x, 3, 1), lambda x: np.repeat(x, 3, 1), [f32(5, 7)]),
    "take": (
        lambda x, i: topi.take(x, i, 1), lambda x, i: x.take(i, 1), [f32(5, 7, 3), Input((2, 2), "int32", 0, 7)]
    ),
    "full": (lambda x: [topi.full((3, 5), 2.5) + x], lambda x: np.full((3, 5), 2.5, np.float32) + x, [f32(5)]),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_moves(name: str) -> None:
    operator, reference, inputs = MOVES[name]
    check(operator, lambda *a: _listed(reference(*a)), *inputs)


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("mode", ["asymmetric", "half_pixel", "align_corners"])
@pytest.mark.parametrize("method", ["nearest", "bilinear"])
@pytest.mark.parametrize("size", [(6, 22), (23, 5), (11, 13), (1, 1), (13, 29)])
@pytest.mark.few(12)
def test_resize(method: str, mode: str, size: Any) -> None:
    check(
        lambda x: topi.resize2d(x, size, method=method, coordinate_mode=mode),
        lambda x: ref.resize2d_python(x, size, method, mode),
        f32(1, 2, 11, 13),
    )
    check(
        lambda x: topi.resize2d(x, size, "NHWC", method, mode),
        lambda x: ref.resize2d_python(x.transpose(0, 3, 1, 2), size, method, mode).transpose(0, 2, 3, 1),
        f32(1, 11, 13, 2),
    )


def test_every_public_operator_is_tested() -> None:
    """A new operator needs a test here: every public name of topi and topi.nn is used in these files."""
    text = "".join(path.read_text() for path in sorted(Path(__file__).parent.glob("test_topi*.py")))
    for module in (topi, topi.nn):
        names = [n for n, value in vars(module).items() if inspect.isfunction(value)]
        assert len(names) > 30
        assert not [n for n in names if not re.search(rf"topi\.(nn\.)?{n}\b", text)]
