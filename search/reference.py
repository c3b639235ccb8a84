"""Data to check a task's candidates with: random inputs, the right outputs, and how far from those counts as right."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from ..dialects.combiner import dtype_name, epsilon, is_float
from ..dialects.te import ComputeOp, ReadOp

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Reference:
    """Inputs, expected outputs, and the tolerance `atol + rtol * abs(expected)`."""

    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]
    atol: float
    rtol: float


def make_reference(module: ModuleOp, seed: int = 0) -> Reference:
    """Random inputs for a te-level module and what the interpreter makes of them in double precision.

    Where stages weigh and add what other stages computed, such as Winograd's transforms, rounding errors grow by more
    than the lengths of sums say: what the working precision loses on these inputs is found out, and allowed four times.
    """
    from ..dialects.interpret.te import run_te

    func = next(f for f in module.ops if isinstance(f, FuncOp))
    rng = np.random.default_rng(seed)
    inputs = tuple(_random(t, rng) for t in func.function_type.inputs)
    expected = tuple(run_te(module, list(inputs)))
    atol, rtol = tolerance(func)
    if any(_transforms(op) for op in func.body.block.ops):
        rounded = run_te(module, list(inputs), "native")
        lost = max(float(np.max(np.abs(a - b.astype(np.float64)))) for a, b in zip(expected, rounded, strict=True))
        atol = max(atol, 4 * lost) if np.isfinite(lost) else atol
    return Reference(inputs, expected, atol, rtol)


def _transforms(op: Operation) -> bool:
    """True for a stage without a reduction that reads three or more elements of one that another stage computed."""
    if (
        not isinstance(op, ComputeOp)
        or op.reduce_axes
        or not all(is_float(t.type.get_element_type()) for t in op.outputs)
    ):
        return False
    counts = Counter(read.tensor for read in op.body.walk() if isinstance(read, ReadOp))
    return any(count >= 3 and isinstance(tensor.owner, ComputeOp) for tensor, count in counts.items())


def _random(tensor: object, rng: np.random.Generator) -> Array:
    assert isinstance(tensor, TensorType)
    element = tensor.get_element_type()
    dtype, shape = np.dtype(dtype_name(element)), tensor.get_shape()
    if is_float(element):
        return rng.uniform(-1.0, 1.0, shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.integers(-8, 9, shape).astype(dtype)


def tolerance(func: FuncOp) -> tuple[float, float]:
    """(atol, rtol) from the least precise float type and the longest reduction; exact where all is integer.

    A sum of K products of numbers up to 1 that is rounded K times is off by up to K * eps in the worst case, and by a
    few sqrt(K) * eps in practice; transforms and chains of stages multiply that. The bound is 4 * K * eps, at least
    64 * eps, against which a missing or repeated term of such a sum stands out for any K below 1 / (8 * eps).
    """
    eps = 0.0
    length = 1
    for op in func.body.block.ops:
        for value in op.results:
            if isinstance(value.type, TensorType):
                element = value.type.get_element_type()
                if is_float(element):
                    eps = max(eps, epsilon(element))
        if isinstance(op, ComputeOp):
            size = 1
            for axis in op.reduce_axes:
                size *= axis.extent
            length = max(length, size)
    bound = eps * max(64, 4 * length)
    return min(bound, 0.05), min(max(64 * eps, bound / 16), 0.05)
