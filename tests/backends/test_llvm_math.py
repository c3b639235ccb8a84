"""Accuracy of the vector mathematics: units in the last place against double precision, and the limits."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from xdsl.parser import Parser

from loopwright.backends.build import build
from loopwright.backends.context import create_context
from loopwright.dialects.target import Target

Single = npt.NDArray[np.float32]


def apply(name: str, values: Single, lanes: int | None = 16) -> Single:
    """Apply a function of the math dialect to an array whose size is a multiple of the lanes."""
    value_type = f"vector<{lanes}xf32>" if lanes else "f32"
    array = f"memref<{values.size}xf32>"
    text = f"""
    func.func @apply(%in : {array} {{lw.name = "in"}}, %out : {array} {{lw.name = "out", lw.output}}) {{
      %zero = arith.constant 0 : index
      %end = arith.constant {values.size} : index
      %step = arith.constant {lanes or 1} : index
      scf.for %i = %zero to %end step %step {{
        %x = lw_kernel.load %in[%i] : {array} -> {value_type}
        %y = math.{name} %x : {value_type}
        lw_kernel.store %y, %out[%i] : {value_type}, {array}
      }}
      func.return
    }}"""
    result = build(Parser(create_context(), text).parse_module(), Target(vector_bytes=64))(values)
    assert isinstance(result, np.ndarray)
    return result


def ulps(got: Single, exact: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the distance in units in the last place of the exact value."""
    unit = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    return np.abs(got.astype(np.float64) - exact) / unit


def erf(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    from scipy.special import erf as reference

    return np.asarray(reference(x))


RANGES = [
    ("exp", np.exp, -87.0, 88.7, 1.5),
    ("exp", np.exp, -1.0, 1.0, 1.5),
    ("exp2", np.exp2, -125.0, 127.9, 1.5),
    ("log", np.log, 1e-38, 3e38, 1.5),
    ("log", np.log, 0.5, 2.0, 2.0),
    ("tanh", np.tanh, -12.0, 12.0, 2.5),
    ("tanh", np.tanh, -0.7, 0.7, 2.5),
    ("erf", erf, -4.5, 4.5, 2.0),
    ("erf", erf, -1.0, 1.0, 2.0),
]


@pytest.mark.parametrize("lanes", [None, 4, 16])
@pytest.mark.parametrize(("name", "function", "low", "high", "limit"), RANGES)
def test_accuracy(name: str, function: Any, low: float, high: float, limit: float, lanes: int | None) -> None:
    count = 1 << 17
    if name == "log" and high > 1e30:
        values = np.exp(np.linspace(np.log(low), np.log(high), count)).astype(np.float32)
    else:
        values = np.linspace(low, high, count).astype(np.float32)
    with np.errstate(divide="ignore"):
        exact = function(values.astype(np.float64))
    assert ulps(apply(name, values, lanes), exact).max() <= limit


def test_small_arguments_keep_their_relative_accuracy() -> None:
    values = (np.logspace(-37, 0, 1 << 14) * np.tile([1, -1], 1 << 13)).astype(np.float32)
    for name, function in (("tanh", np.tanh), ("erf", erf)):
        assert ulps(apply(name, values), function(values.astype(np.float64))).max() <= 2.5


ENDS = [np.inf, -np.inf, np.nan, 0.0, -0.0]
LIMITS = [
    ("exp", np.exp, [*ENDS, 88.72284, 88.8, 1000, -103.9, -104.1, -1000, 1e-40, 3e38, -3e38]),
    ("exp2", np.exp2, [*ENDS, 128, 127.99999, 1e9, -149, -150.1, -1e9, 1e-40, -126.5, -3e38]),
    ("log", np.log, [*ENDS, 1.0, -1.0, 1e-45, 1e-40, 3.4e38, 1.1754944e-38, -1e-45]),
    ("tanh", np.tanh, [*ENDS, 0.625, 9.1, 100, -100, 1e-45, 3e38, -3e38]),
    ("erf", erf, [*ENDS, 0.9, 4.0, 100, -100, 1e-45, 3e38, -3e38]),
]


@pytest.mark.parametrize("lanes", [None, 16])
@pytest.mark.parametrize(("name", "function", "values"), LIMITS)
def test_limits(name: str, function: Any, values: list[float], lanes: int | None) -> None:
    array = np.resize(np.array(values, np.float32), 16)
    got = apply(name, array, lanes)
    with np.errstate(all="ignore"):
        expected = function(array.astype(np.float64)).astype(np.float32)
    special = ~np.isfinite(expected)
    np.testing.assert_array_equal(got[special], expected[special])
    normal = np.isfinite(expected)
    np.testing.assert_allclose(got[normal], expected[normal], rtol=3e-7, atol=1.5e-45)
    if name != "log":
        np.testing.assert_array_equal(np.signbit(got[normal]), np.signbit(expected[normal]))


def test_subnormal_results_of_exp() -> None:
    values = np.linspace(-103.5, -87.4, 4096).astype(np.float32)
    exact = np.exp(values.astype(np.float64))
    assert (np.abs(apply("exp", values) - exact) <= 1.01 * 2.0**-149 + 2e-7 * exact).all()


def test_monotone_where_it_matters() -> None:
    """Softmax subtracts the maximum: exp of zero is exactly one and never above it below."""
    values = -np.linspace(0, 1e-3, 4096).astype(np.float32)
    got = apply("exp", values)
    assert got[0] == 1 and (got <= 1).all()
