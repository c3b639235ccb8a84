"""Cases of the drawn lists under sampled candidates of all their sketches, beside the interpreter and PyTorch.

`python tests/support/case_trials.py llvm families 91 PLACE float16` shows one trial again; it takes PyTorch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import conv_families
import drawn_cases
import element_cases
import mixed_cases
import pool_cases
from operator_cases import Case
from torch_trials import Outcome

import loopwright as lw
from loopwright import te
from loopwright.search.measure.buffers import wrong_elements
from loopwright.search.measure.reference import Reference

LISTS: dict[str, Callable[[int], tuple[Case, ...]]] = {
    "drawn": drawn_cases.drawn,
    "mixed": mixed_cases.mixed,
    "elements": element_cases.of_elements,
    "pools": pool_cases.pools,
    "families": conv_families.families,
}
"""The cases of a seed of each list."""
_SMALL: dict[tuple[Any, str], Any] = {
    (drawn_cases, "MOST"): {"conv": 4.0e7, "product": 8.0e7, "bytes": 4.0e6},
    (mixed_cases, "MOST_PRODUCTS"): 4e7,
    (mixed_cases, "MOST_BYTES"): 4e6,
    (element_cases, "MOST_BYTES"): 4e6,
    (pool_cases, "MOST_BYTES"): 2e6,
    (conv_families, "MOST"): 4e7,
}
"""Costs of cases at most: what is asked is if they are right, not how fast they are."""
_OTHERWISE = ("one-hot", "cast")
"""Cases whose inputs PyTorch takes otherwise where they are outside of a range: its calls are no judges of them."""
_SAMPLED = 6
"""Candidates of a case that are tried beside the untuned one."""


@contextmanager
def _usual_type(dtype: str) -> Iterator[None]:
    """Operands whose type is not named have this one."""
    made = te.placeholder

    def placeholder(shape: Sequence[int], given: str | None = None, name: str = "placeholder", **words: Any) -> Any:
        return made(shape, given or words.pop("dtype", dtype), name, **words)

    with patch.object(te, "placeholder", placeholder):
        yield


def case_of(name: str, seed: int, place: int) -> Case:
    """The case of a small list at a place, counted round."""
    with ExitStack() as stack:
        for (module, bound), value in _SMALL.items():
            stack.enter_context(patch.object(module, bound, value))
        cases = LISTS[name](seed)
    return cases[place % len(cases)]


def try_case(target: str, name: str, seed: int, place: int, dtype: str = "float32") -> Outcome:
    """A case of a list under its untuned schedule and sampled candidates."""
    case = case_of(name, seed, place)
    said = f"{target} {name} {seed} {place} {dtype}: {case.name}"
    schedule = ""
    try:
        with _usual_type(dtype):
            tensors = case.operator.tensors()
        task = lw.SearchTask(lambda: list(tensors), target=target)
        reference = task.reference
        if not case.name.startswith(_OTHERWISE) and (wrong := _unlike_torch(case, reference)):
            return Outcome("wrong", wrong, f"{said}: the interpreter is unlike PyTorch: {wrong}")
        for schedule in _schedules(task, seed * 1_000 + place):
            try:
                kernel = task.build(schedule)
            except lw.ScheduleError as error:
                return Outcome("traceback", str(error), f"{said}: refused: {str(error)[:400]}\n{schedule}")
            found = kernel(*reference.inputs)
            if wrong := _unlike(found, reference):
                return Outcome("wrong", wrong, f"{said}: {wrong}\n{schedule}")
    except te.ExpressionError as error:
        return Outcome("refused", str(error))
    except Exception as error:  # whatever it is, it is no result
        return Outcome.of_error(error, said, f"\n{schedule}")
    return Outcome("right")


def _schedules(task: lw.SearchTask, seed: int) -> Iterator[str]:
    """The untuned schedule, then candidates of sketches that are taken at random, within their limits."""
    rng = np.random.default_rng(seed)
    yield task.default_schedule
    for _ in range(_SAMPLED):
        sketch = task.sketches[int(rng.integers(len(task.sketches)))]
        for row in sketch.sample(rng, 1):
            yield sketch.schedule(row)


def _unlike(found: Any, reference: Reference) -> str | None:
    """Say where outputs are wrong."""
    outputs = found if isinstance(found, tuple | list) else [found]
    for got, wanted, tolerance in zip(outputs, reference.expected, reference.tolerances, strict=True):
        bad = wrong_elements(np.asarray(got), wanted, tolerance.bounds(wanted))
        if bad is not None:
            return _first(bad, got, wanted, tolerance)
    return None


def _first(off: Any, got: Any, wanted: Any, tolerance: Any) -> str:
    """Say how many elements are off, and the first of them."""
    at = tuple(int(n) for n in np.argwhere(off)[0])
    return f"{int(off.sum())} of {off.size} off, the first at {at}: {got[at]} for {wanted[at]} in {tolerance}"


def _unlike_torch(case: Case, reference: Reference) -> str | None:
    """Say where what is expected is unlike what PyTorch makes of the inputs in double precision."""
    arrays = [_wide(array) for array in reference.inputs]
    with torch.no_grad():
        right = case.operator.peer(torch, arrays)()
    right = [right] if torch.is_tensor(right) else list(right)
    if len(right) != len(reference.expected):
        return f"{len(right)} outputs of PyTorch, {len(reference.expected)} expected"
    for theirs, ours, tolerance in zip(right, reference.expected, reference.tolerances, strict=True):
        wanted = theirs.float().numpy() if theirs.dtype == torch.bfloat16 else theirs.numpy()
        if wanted.shape == (1, *ours.shape):  # PyTorch reflects behind a batch alone
            wanted = wanted[0]
        if wanted.shape != ours.shape:
            return f"shape {ours.shape} for {wanted.shape}"
        if ours.dtype.kind in "iub":
            wide = np.asarray(wanted, np.float64)
            off = np.asarray(ours, np.float64) != wide
        else:
            with np.errstate(all="ignore"):
                wide, mine = np.asarray(wanted, np.float64), np.asarray(ours, np.float64)
                off = ~(np.abs(mine - wide) <= 4 * tolerance.atol + 4 * tolerance.rtol * np.abs(wide))
                off &= ~(np.isnan(mine) & np.isnan(wide)) & (mine != wide)
        if off.any():
            return _first(off, ours, wanted, tolerance)
    return None


def _wide(array: Any) -> Any:
    """An array for PyTorch, floats in double precision."""
    is_float = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
    return torch.from_numpy(array.astype(np.float64) if is_float else array.copy())


if __name__ == "__main__":
    *words, dtype = sys.argv[1:] if len(sys.argv) > 5 else [*sys.argv[1:], "float32"]
    ended = try_case(words[0], words[1], int(words[2]), int(words[3]), dtype)
    print(ended.kind, ended.text, ended.example, sep="\n")
