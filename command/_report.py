"""Reports of a kernel: its error, time, speed and share of the CPU's peak, and how they are printed."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..backends.kernel_function import Kernel
    from ..dialects.target import Target
    from ._source import AnyTask

_PEAK_TYPES = ("float32", "float64")


@dataclass(frozen=True)
class Check:
    """The error of a kernel's outputs against the reference; right where every element is within the tolerance."""

    max_abs_error: float
    atol: float
    rtol: float
    right: bool

    def __str__(self) -> str:
        verdict = "right" if self.right else "WRONG"
        allowed = "exact" if not self.atol and not self.rtol else f"{self.atol:.1e} + {self.rtol:.1e} * |value| allowed"
        return f"{verdict}: max abs error {self.max_abs_error:.2e} against NumPy ({allowed})"


def check(task: AnyTask, kernel: Kernel) -> Check:
    """Run a kernel of a task on its reference inputs and compare with what NumPy gives in double precision."""
    import numpy as np

    reference = task.reference
    results = kernel(*reference.inputs)
    worst, right = 0.0, True
    outputs = results if isinstance(results, tuple) else (results,)
    for got, expected in zip(outputs, reference.expected, strict=True):
        wide, wanted = got.astype(np.float64), expected.astype(np.float64)
        same = (wide == wanted) | (np.isnan(wide) & np.isnan(wanted))
        with np.errstate(invalid="ignore"):
            error = np.where(same, 0.0, np.abs(wide - wanted))
            allowed = reference.atol + reference.rtol * np.abs(wanted)
        right &= bool((same | (error <= allowed)).all())
        worst = max(worst, float(error.max()))
    return Check(worst, reference.atol, reference.rtol, right)


def peak(task: AnyTask) -> float | None:
    """GFLOP/s that this CPU reaches with FMA in registers on as many threads; None for types it is not measured for."""
    types = {str(array.dtype) for array in task.reference.inputs}
    dtype = next(iter(types)) if len(types) == 1 else ""
    return _measured_peak(task.target, dtype) if dtype in _PEAK_TYPES else None


@cache
def _measured_peak(target: Target, dtype: str) -> float:
    """Compile and time the kernel of FMAs, once for a target and a type."""
    from ..backends.llvm.peak import peak_gflops_per_s

    return peak_gflops_per_s(target, dtype)


def moved_bytes(task: AnyTask) -> int:
    """Bytes of all inputs and outputs: what moves at least where nothing is in a cache."""
    return sum(array.nbytes for array in (*task.reference.inputs, *task.reference.expected))


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Lines of a name and a text."""
    return "\n".join(f"  {name:<10}{text}" for name, text in rows)


def speed_rows(task: AnyTask, time_s: float, peak_gflops_per_s: float | None) -> list[tuple[str, str]]:
    """Return rows of a table that say what `time_s` means for a task."""
    speed = task.flops / time_s / 1e9
    rows = []
    if peak_gflops_per_s is None:
        rows.append(("speed", f"{speed:.1f} GFLOP/s"))
    else:
        share, limit = speed / peak_gflops_per_s, f"{peak_gflops_per_s:.0f} GFLOP/s on {threads(task)}"
        rows.append(("speed", f"{speed:.1f} GFLOP/s, {share:.1%} of this CPU's measured peak of {limit}"))
    rows.append(("memory", f"{moved_bytes(task) / time_s / 1e9:.1f} GB/s of inputs and outputs"))
    return rows


def threads(task: AnyTask) -> str:
    """`1 thread`, `2 threads`."""
    return f"{task.target.cores} thread{'s' if task.target.cores > 1 else ''}"


def replay_command(workload: Path, schedule: str) -> str:
    """Return the shell command that applies a schedule to a workload with stock `xdsl-opt`."""
    return f"{_xdsl_opt()} {shlex.quote(os.fspath(workload))} -p {shlex.quote(schedule)}"


def _xdsl_opt() -> str:
    """`xdsl-opt`, or where it is beside this Python when the shell would not find it."""
    own = Path(sys.executable).with_name("xdsl-opt")
    if shutil.which("xdsl-opt") or not own.is_file():
        return "xdsl-opt"
    here = Path.cwd()
    return shlex.quote(str(own.relative_to(here) if own.is_relative_to(here) else own))
