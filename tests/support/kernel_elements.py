"""Element types of kernels, values to try them with, and operations, all as NumPy has them."""

from collections.abc import Callable
from typing import Any

import numpy as np

DTYPE: dict[str, type[Any]] = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.bool_,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
}
FLOATS = ["f16", "f32", "f64"]
INTEGERS = ["i8", "i32", "i64"]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5]
FLOAT_BINARY: dict[str, Callable[..., Any]] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "math.copysign": np.copysign,
}
FLOAT_UNARY: dict[str, Callable[..., Any]] = {
    "arith.negf": np.negative,
    "math.absf": np.abs,
    "math.ceil": np.ceil,
    "math.floor": np.floor,
    "math.roundeven": np.rint,
    "math.trunc": np.trunc,
    "math.sqrt": np.sqrt,
}


def c_division(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rounded towards zero, as C does."""
    return (np.trunc(a.astype(np.longdouble) / b)).astype(a.dtype)


INTEGER_BINARY: dict[str, Callable[..., Any]] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.divsi": c_division,
    "arith.remsi": lambda a, b: a - b * c_division(a, b),
    "arith.floordivsi": np.floor_divide,
    "arith.ceildivsi": lambda a, b: -np.floor_divide(-a, b),
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
}


def sample(kind: str, seed: int, special: bool = False) -> np.ndarray:
    """Sixteen values: floats in [-4, 4) and, if `special`, zeros, infinities and NaN; integers that are not 0."""
    rng = np.random.default_rng(seed)
    if kind[0] == "f":
        floats = rng.uniform(-4, 4, 16)
        if special:
            floats[: len(SPECIAL)] = rng.permutation(SPECIAL)
        return floats.astype(DTYPE[kind])
    limits = np.iinfo(DTYPE[kind])
    values = rng.integers(limits.min // 2, limits.max // 2, 16, dtype=DTYPE[kind])
    values[values == 0] = 3
    return values


def values(kind: str, size: int, seed: int = 0) -> np.ndarray:
    """Numbers from 1 to 99, or bits."""
    rng = np.random.default_rng(seed)
    if kind == "i1":
        return rng.integers(0, 2, size).astype(np.bool_)
    return rng.integers(1, 100, size).astype(DTYPE[kind])
