"""Operators of drawn shapes in other types and with epilogues, under the untuned schedule, beside PyTorch in doubles.

`python tests/support/operator_trials.py llvm SEED PLACE` shows one trial again; benchmarks/ has to be on the path.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import ml_dtypes
import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import operator_cases
from drawn_cases import drawn
from operator_cases import Case
from torch_trials import Outcome
from xdsl.dialects.func import FuncOp

import loopwright as lw
from loopwright import te, topi
from loopwright.search.measure.reference import growth, tolerance

DTYPES = ("float16", "bfloat16", "int8", "float32", "float64")
"""Types of a case's operands, the first three of them twice as often."""
SHARES = (4, 4, 3, 1, 1)
ROUNDINGS = 4
"""Errors that are allowed, with what comes after the sum, in those that sums in 16 bits have on average."""

Epilogue = tuple[str, Callable[[te.Tensor, te.Tensor], te.Tensor], Callable[[Any, Any], Any]]

EPILOGUES: tuple[Epilogue, ...] = (
    ("", lambda y, z: y, lambda y, z: y),
    ("+ z", topi.add, lambda y, z: y + z),
    ("relu(* 2 + z)", lambda y, z: topi.nn.relu(topi.add(topi.add(y, y), z)), lambda y, z: (y + y + z).relu()),
    ("max with z", topi.maximum, torch.maximum),
    ("clipped", lambda y, z: topi.clip(y, -1, 1), lambda y, z: y.clamp(-1, 1)),
)
FLOAT_EPILOGUES: tuple[Epilogue, ...] = (
    ("gelu", lambda y, z: topi.nn.gelu(y), lambda y, z: torch.nn.functional.gelu(y)),
    ("* sigmoid", lambda y, z: topi.multiply(y, topi.sigmoid(y)), lambda y, z: y * y.sigmoid()),
    ("tanh + z", lambda y, z: topi.add(topi.tanh(y), z), lambda y, z: y.tanh() + z),
    ("to float32", lambda y, z: topi.cast(y, "float32"), lambda y, z: y),
)


@contextmanager
def _operands_of(dtype: str) -> Any:
    """Operands of cases have another type."""

    def placeholder(name: str, *shape: int) -> te.Tensor:
        return te.placeholder(shape, dtype, name)

    with patch.object(operator_cases, "placeholder", placeholder):
        yield


def try_operator(target: str, seed: int, place: int) -> Outcome:
    """A case of a seed, with a type and an epilogue drawn for it, under its untuned schedule."""
    case, r = drawn(seed)[place], Random(f"{seed} {place}")
    dtype = r.choices(DTYPES, SHARES)[0]
    said, ours, theirs = r.choice(EPILOGUES if dtype == "int8" else EPILOGUES + FLOAT_EPILOGUES)
    name = f"{target} {seed} {place}: {case.name} in {dtype} {said}"
    try:
        with _operands_of(dtype):
            tensors = case.operator.tensors()
            *_, last = tensors
            other = te.placeholder(last.shape, last.dtype, "z")
            made = ours(last, other)
    except te.ExpressionError as error:
        return Outcome("refused", str(error))
    uses = "z" in said
    tensors = [*tensors[:-1], *([other] if uses else []), made]
    try:
        wrong, schedule = _first_wrong(case, tensors, theirs, target, dtype, uses, r)
    except te.ExpressionError as error:
        return Outcome("refused", str(error))
    except Exception as error:  # whatever it is, it is no result
        return Outcome.of_error(error, name)
    return Outcome("wrong", wrong, f"{name}: {wrong}\n{schedule}") if wrong else Outcome("right")


def _first_wrong(
    case: Case,
    tensors: Sequence[te.Tensor],
    theirs: Callable[[Any, Any], Any],
    target: str,
    dtype: str,
    uses: bool,
    r: Random,
) -> tuple[str | None, str]:
    task = lw.SearchTask(lambda: list(tensors), target=target)
    rng = np.random.default_rng(r.randrange(1 << 30))
    inputs = [_random(t, rng) for t in tensors[:-1]]
    schedule = task.default_schedule
    made = task.build(schedule)(*inputs)
    device = "cuda" if target.startswith("cuda") else "cpu"
    wide = [torch.from_numpy(x.astype(np.float64)).to(device) for x in inputs]
    with torch.no_grad():
        before = case.operator.peer(torch, wide[:-1] if uses else wide)()
        typical = float(before.double().square().mean().sqrt())
        result = theirs(before, wide[-1]).double().cpu().numpy()
    return _difference(np.asarray(made), result, task, dtype, typical), schedule


def _random(tensor: te.Tensor, rng: np.random.Generator) -> Any:
    """Numbers up to 1; whole ones mostly 0, so that sums of many stay small."""
    kind = np.dtype(ml_dtypes.bfloat16) if tensor.dtype == "bfloat16" else np.dtype(tensor.dtype)
    if kind.kind in "iu":
        return rng.choice([-1, 0, 1], tensor.shape, p=(0.05, 0.9, 0.05)).astype(kind)
    return rng.uniform(-1.0, 1.0, tensor.shape).astype(kind)


def _difference(made: Any, right: Any, task: lw.SearchTask, dtype: str, typical: float) -> str | None:
    """Say where a result is wrong; `typical` is the mean of what the epilogue is computed from."""
    if made.shape != right.shape:
        return f"shape {made.shape} for {right.shape}"
    stages = list(next(f for f in task.module.ops if isinstance(f, FuncOp)).body.block.ops)
    atol, rtol = tolerance(stages)
    if made.dtype.kind in "iu":
        atol = rtol = 0.0
        fits = np.iinfo(made.dtype)
        right = np.where((right < fits.min) | (right > fits.max), made, right)  # one that overflowed on its way
    else:
        eps = float(ml_dtypes.finfo(made.dtype if dtype == "int8" else dtype).eps)
        atol = max(atol, ROUNDINGS * (growth(stages) + 4 * eps) * max(typical, 1e-3))
        rtol = max(rtol, ROUNDINGS * growth(stages))
    off = np.abs(made.astype(np.float64) - right)
    bad = ~(off <= atol + rtol * np.abs(right))
    if not bad.any():
        return None
    at = tuple(int(n) for n in np.argwhere(bad)[0])
    said = f"{int(bad.sum())} of {bad.size} off, the first at {at}: {float(made[at])} for {right[at]}"
    return f"{said} within {atol:.3g} + {rtol:.3g} of it"


if __name__ == "__main__":
    ended = try_operator(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    print(ended.kind, ended.text, ended.example, sep="\n")
