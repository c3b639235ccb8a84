"""An operator held to plain NumPy: its te-level IR verifies, prints and parses back, and loops of it give the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.dialects.math import Math
from xdsl.parser import Parser

from loopwright import te
from loopwright.dialects.interpret.loop import run_loops
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.target import Lw
from loopwright.dialects.te import ComputeOp, LwTe
from loopwright.passes.lower.lower_te_to_loop import lower_te_to_loop

Array = np.ndarray[Any, Any]
TOLERANCE = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}


@dataclass(frozen=True)
class Input:
    """Random data of a shape and type: floats are normal, integers span the type or `[low, high)`."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: int = -20
    high: int = 20
    positive: bool = False

    def make(self, rng: np.random.Generator) -> Array:
        if self.dtype == "bool":
            return rng.integers(0, 2, self.shape).astype(bool)
        if self.dtype.startswith("int"):
            return rng.integers(self.low, self.high, self.shape).astype(self.dtype)
        values = rng.standard_normal(self.shape)
        return (np.abs(values) + 0.1 if self.positive else values).astype(self.dtype)


def f32(*shape: int) -> Input:
    return Input(shape)


def positive(*shape: int) -> Input:
    return Input(shape, positive=True)


def of(dtype: str, *shape: int) -> Input:
    return Input(shape, dtype)


def reparsed(module: ModuleOp) -> ModuleOp:
    """The module after printing and parsing, which must change nothing."""
    context = Context()
    for dialect in (Builtin, Func, Arith, Math, Lw, LwTe):
        context.load_dialect(dialect)
    text = str(module)
    again = Parser(context, text).parse_module()
    again.verify()
    assert str(again) == text
    assert module.is_structurally_equivalent(again)
    return again


def check_lowered(module: ModuleOp, arrays: Sequence[Array], results: Sequence[Array]) -> None:
    """Loops, interpreted one element at a time, give the same (small programs only: it takes a microsecond a step)."""
    computes = [op for op in module.walk() if isinstance(op, ComputeOp)]
    if sum(prod(a.extent for a in op.axes.data) for op in computes) > 20_000:
        return
    loops = module.clone()
    lower_te_to_loop(loops)
    for result, lowered in zip(results, run_loops(loops, arrays), strict=True):
        assert lowered.dtype == result.dtype
        limit = 1e-4 if result.dtype != np.float16 else 4e-3
        np.testing.assert_allclose(lowered.astype(np.float64), result.astype(np.float64), rtol=limit, atol=limit)


def check(
    operator: Callable[..., Any], reference: Callable[..., Any], *inputs: Input, tolerance: float | None = None
) -> None:
    rng = np.random.default_rng(7)
    arrays = [i.make(rng) for i in inputs]
    placeholders = [te.placeholder(i.shape, i.dtype, f"x{k}") for k, i in enumerate(inputs)]
    outputs = operator(*placeholders)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    module = te.create_module([*placeholders, *outputs])
    module.verify()
    results = run_te(reparsed(module), arrays)
    check_lowered(module, arrays, results)
    expected = reference(*arrays)
    expected = expected if isinstance(expected, list | tuple) else [expected]
    assert len(results) == len(expected)
    for output, result, wanted in zip(outputs, results, expected, strict=True):
        wanted = np.asarray(wanted)
        assert result.shape == wanted.shape == output.shape
        assert result.dtype == np.dtype(output.dtype)
        if result.dtype.kind != "f":
            np.testing.assert_array_equal(result, wanted)
            continue
        limit = tolerance or TOLERANCE[output.dtype]
        scale = max(1.0, float(np.abs(wanted).max()))
        np.testing.assert_allclose(result.astype(np.float64), wanted.astype(np.float64), rtol=limit, atol=limit * scale)
