"""Operators of small odd shapes on NaN, infinities, zeros, denormals and limits of integers, beside the interpreter.

`python tests/support/special_trials.py llvm SEED` shows one trial again.
"""

from __future__ import annotations

import sys
import traceback
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx_trials import Outcome

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.interpret.te import run_te

Array = npt.NDArray[Any]
DTYPES = (*("float32",) * 5, "float64", "float16", "int32", "int8", "uint8", "int64", "int16")
CASTS = ("float32", "float16", "float64", "int8", "uint8", "int32", "int64", "bool", "int16", "uint16", "uint32")
EXTENTS = (1, 2, 3, 5, 7, 16, 17, 33, 65, 100, 130)
OF_INTEGERS = ("abs", "identity", "negative", "sign", "square")
OF_FLOATS = (
    *(*OF_INTEGERS, "ceil", "cos", "erf", "exp", "exp2", "floor", "log", "log2", "reciprocal", "round", "rsqrt"),
    *("sigmoid", "sin", "sqrt", "tan", "tanh", "trunc"),
)
OF_TWO = (
    *("add", "subtract", "multiply", "floor_divide", "mod", "maximum", "minimum", "greater", "greater_equal"),
    *("less", "less_equal", "equal", "not_equal"),
)
ACTIVATIONS = ("elu", "gelu", "hard_sigmoid", "hard_swish", "leaky_relu", "relu", "relu6", "silu", "softplus")
REDUCTIONS = ("max", "min", "argmax", "argmin", "sum", "prod")
FIRM = ("max", "min", "argmax", "argmin")
"""Reductions whose result is an operand or a place: of others the order of huge terms decides what is lost."""
ERRORS = {2: 8e-3, 4: 2e-5, 8: 1e-11}
"""Relative errors that are allowed, by the bytes of the narrower of operand and result. A choice."""


def try_special(target: str, seed: int) -> Outcome:
    """An operator that is drawn by the seed, under its untuned schedule and a random candidate."""
    r = Random(f"special {seed}")
    name, operands, result, firm = _drawn(r)
    inputs = [_values(r, x, firm, "mod" in name or "divide" in name) for x in operands]
    said = f"{target} {seed}: {name} {operands[0].dtype} {operands[0].shape}"
    try:
        task = lw.SearchTask([*operands, result], target=target)
        rows = r.choice(list(task.sketches))
        schedules = [task.default_schedule, *map(rows.schedule, rows.sample(np.random.default_rng(seed), 1))]
        expected = [run_te(task.module, inputs, accumulate)[0] for accumulate in ("wide", "native")]
        for schedule in schedules:
            if wrong := _difference(np.asarray(task.build(schedule)(*inputs)), expected, inputs[0].dtype):
                return Outcome("wrong", wrong, f"{said}: {wrong}\n{schedule}")
    except Exception as error:  # whatever it is, it is no result
        frame = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__} at {frame.filename.rpartition('/')[2]}:{frame.lineno}: {str(error)[:400]}"
        return Outcome("traceback", text, f"{said}: {text}")
    return Outcome("right")


def _drawn(r: Random) -> tuple[str, list[te.Tensor], te.Tensor, bool]:
    """An operator's name, its operands, its result, and True where huge operands lose nothing."""
    dtype = r.choice(DTYPES)
    floats = dtype.startswith("float")
    shape = tuple(r.choice(EXTENTS) for _ in range(r.choice((1, 2, 2, 3))))
    x, axis = te.placeholder(shape, dtype, "x"), r.randrange(len(shape))
    kind = r.choice(("one", "two", "reduction", "reduction", "cast", "pool", *(("activation", "softmax") * floats)))
    if kind == "two":
        name, y = r.choice(OF_TWO), te.placeholder(shape, dtype, "y")
        return name, [x, y], getattr(topi, name)(x, y), True
    if kind == "reduction":
        name = r.choice(REDUCTIONS)
        return f"{name} over {axis}", [x], getattr(topi, name)(x, axis), name in FIRM
    if kind == "cast":
        name = r.choice(CASTS)
        return f"cast to {name}", [x], topi.cast(x, name), True
    if kind == "pool":
        images = te.placeholder(
            (r.choice((1, 2)), r.choice((1, 3, 8)), r.choice((5, 14)), r.choice((7, 33))), dtype, "x"
        )
        return "max_pool", [images], topi.nn.max_pool(images, r.choice((2, 3)), r.choice((1, 2)), 1), True
    if kind == "softmax":
        name = r.choice(("softmax", "log_softmax"))
        return f"{name} along {axis}", [x], getattr(topi.nn, name)(x, axis), False
    name = r.choice(ACTIVATIONS if kind == "activation" else OF_FLOATS if floats else OF_INTEGERS)
    return name, [x], getattr(topi.nn if kind == "activation" else topi, name)(x), True


def _values(r: Random, tensor: te.Tensor, huge: bool, divides: bool) -> Array:
    rng, kind = np.random.default_rng(r.randrange(1 << 30)), np.dtype(tensor.dtype)
    if kind.kind in "iu":
        i = np.iinfo(kind)
        drawn = rng.integers(i.min, i.max, tensor.shape, dtype=kind, endpoint=True)
        ends = rng.choice(np.array([i.min, i.max, 0, 1, i.max - 1, i.min + 1], kind), tensor.shape)
        whole = np.where(rng.random(tensor.shape) < 0.4, ends, drawn)
        return np.where(whole == 0, 3, whole).astype(kind) if divides else whole
    f = np.finfo(kind)
    usual = (rng.standard_normal(tensor.shape) * rng.choice([1e-3, 1.0, 30.0], tensor.shape)).astype(kind)
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 3 * f.smallest_subnormal, -f.smallest_normal, 1.0, 0.5, 1.5, 2.5]
    pool = np.array([*special, *((f.max, -f.max) * huge)], kind)
    some = pool[r.choice((slice(None), slice(0, 3), slice(1, 3), slice(3, 7), slice(7, None)))]
    share = r.choice((0.0, 0.02, 0.3))
    return np.where(rng.random(tensor.shape) < share, rng.choice(some, tensor.shape), usual)


def _difference(got: Array, expected: list[Array], operand: np.dtype[Any]) -> str:
    """Say where a result is neither that of double precision nor that of the types as they are."""
    wide, native = expected
    if got.shape != wide.shape or got.dtype != wide.dtype:
        return f"{got.dtype} {got.shape} for {wide.dtype} {wide.shape}"
    bad = ~(_near(got, wide, operand) | _near(got, native, operand))
    if not bad.any():
        return ""
    at = tuple(int(n) for n in np.argwhere(bad)[0])
    return f"{int(bad.sum())} of {bad.size}, the first at {at}: {got[at]} for {wide[at]} or {native[at]}"


def _near(got: Array, right: Array, operand: np.dtype[Any]) -> Array:
    if got.dtype.kind != "f":
        return np.asarray(got == right)
    error = ERRORS[min(got.dtype.itemsize, operand.itemsize if operand.kind == "f" else 8)]
    with np.errstate(all="ignore"):
        a, b = got.astype(np.float64), right.astype(np.float64)
        most = float(np.max(np.abs(np.where(np.isfinite(b), b, 0.0)), initial=0.0))
        room = error * (np.abs(b) + min(most, 10.0)) + 8 * float(np.finfo(got.dtype).smallest_normal)
        return np.asarray((np.abs(a - b) <= room) | (a == b) | (np.isnan(a) & np.isnan(b)))


if __name__ == "__main__":
    ended = try_special(sys.argv[1], int(sys.argv[2]))
    print(ended.kind, ended.example, sep="\n")
