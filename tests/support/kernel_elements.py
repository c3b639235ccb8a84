"""Element types of kernels, values to try them with, and float operations, all as NumPy has them."""

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
