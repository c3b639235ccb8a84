"""Reports of a kernel: its error, time, speed and share of the device's limits, and how they are printed."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..dialects.shown_text import one_line
from ._errors import UserError

if TYPE_CHECKING:
    from ..backends.kernel_function import Kernel
    from ..dialects.target import Target
    from ..search.measure.limits import Limits
    from ..search.measure.tolerance import Tolerance
    from ..search.records.file import Record
    from ._source import AnyTask

_REPLAYS = "# Replays a schedule of"
"""Start of the scripts that `write_replay` writes, by which they are known again."""


@dataclass(frozen=True)
class Check:
    """The error of a kernel's outputs against the reference; right where every element is within the tolerance."""

    max_abs_error: float
    tolerance: Tolerance
    """That of the output with the largest error."""
    right: bool

    def __str__(self) -> str:
        verdict = "right" if self.right else "WRONG"
        atol, rtol = self.tolerance
        allowed = f"{atol:.1e} + {rtol:.1e} * |value| allowed" if atol or rtol else "exact"
        return f"{verdict}: max abs error {self.max_abs_error:.2e} against NumPy ({allowed})"


def check(task: AnyTask, kernel: Kernel) -> Check:
    """Run a kernel of a task on its reference inputs and compare with what NumPy gives in double precision."""
    import numpy as np

    reference = task.reference
    results = kernel(*reference.inputs)
    found, right = [], True
    outputs = results if isinstance(results, tuple) else (results,)
    for got, expected, tolerance in zip(outputs, reference.expected, reference.tolerances, strict=True):
        wide, wanted = got.astype(np.float64), expected.astype(np.float64)
        same = (wide == wanted) | (np.isnan(wide) & np.isnan(wanted))
        with np.errstate(invalid="ignore"):
            error = np.where(same, 0.0, np.abs(wide - wanted))
            allowed = tolerance.atol + tolerance.rtol * np.abs(wanted)
        right &= bool((same | (error <= allowed)).all())
        found.append((float(error.max()), tolerance))
    return Check(*max(found, key=lambda each: each[0]), right)


def limits_once(target: Target, dtypes: Iterable[str | None]) -> Limits | Callable[[], Limits | None]:
    """The limits of a target; where it is this CPU, a function that measures them when it is called first.

    It takes most of a second, and is to be called when nothing else runs: a search has its first trial before.
    """
    known = limits_for(target, ())
    return known or cache(partial(limits_for, target, tuple(dtypes)))


def limits_for(target: Target, dtypes: Iterable[str | None], record: Record | None = None) -> Limits | None:
    """The limits that a record keeps, else those of the target, which are measured now where it is this CPU.

    To be asked for while nothing else runs. None where they are not known.
    """
    from ..search.measure.limits import Limits, limits_of

    kept = None if record is None else Limits.from_json(record.limits)
    return kept or limits_of(target, filter(None, dtypes))


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Lines of a name and a text."""
    return "\n".join(f"  {name:<10}{text}" for name, text in rows)


def speed_rows(task: AnyTask, time_s: float, limits: Limits | None) -> list[tuple[str, str]]:
    """Return rows of a table that say what `time_s` means for a task."""
    dag = task.compute_dag
    share = None if limits is None else limits.share(task.flops, dag.moved_bytes, time_s, dag.dtype)
    speed = f"{task.flops / time_s / 1e9:.4g} GFLOP/s"
    return [
        ("speed", speed if share is None else f"{speed}, {share}"),
        ("memory", f"{dag.moved_bytes / time_s / 1e9:.4g} GB/s of inputs and outputs"),
    ]


def speed_json(task: AnyTask, time_s: float, limits: Limits | None) -> dict[str, Any]:
    """The same for scripts; what is not known is null."""
    dag = task.compute_dag
    share = None if limits is None else limits.share(task.flops, dag.moved_bytes, time_s, dag.dtype)
    return {
        "flop": task.flops,
        "gflops_per_s": task.flops / time_s / 1e9,
        "moved_bytes": dag.moved_bytes,
        "peak_gflops_per_s": None if limits is None else limits.peak(dag.dtype),
        "peak_gbytes_per_s": None if limits is None else limits.gbytes_per_s,
        "limit_gflops_per_s": None if share is None else share.limit_gflops_per_s,
        "limit_share": None if share is None else share.share,
        "limits_source": None if limits is None else limits.source,
    }


def place(task: AnyTask) -> str:
    """The device of a task in a word or two: `2 threads` of a CPU, `target cuda ...`."""
    target = task.target
    if target.is_gpu:
        return f"target {' '.join(filter(None, (target.kind, target.model)))}"
    return f"{target.cores} thread{'s' if target.cores > 1 else ''}"


def write_replay(records: Path, task: AnyTask, schedule: str) -> Path:
    """Write the shell script beside records that applies a schedule to its workload with stock `xdsl-opt`."""
    from ..storage.ownership import require_ours
    from ..storage.whole_file import write_whole

    digest = task.compute_dag.hash
    path = records.with_name(f"{records.stem}.{digest}.replay.sh")
    try:
        require_ours(path, "script of ours", [_REPLAYS.encode()])
        write_whole(path, replay_script(task.name, str(task.module), schedule, f"END.{digest}"))
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    return path


def replay_script(name: str, workload: str, schedule: str, end: str) -> str:
    """Return a script that hands a workload to `xdsl-opt` with a schedule, and with the options it is called with."""
    command = f'exec {_xdsl_opt()} "$@" -p {shlex.quote(schedule)}'
    return f"#!/bin/sh\n{_REPLAYS} {one_line(name)}.\n{command} <<'{end}'\n{workload.rstrip()}\n{end}\n"


def replay_command(script: Path) -> str:
    """Return the shell command that runs a script."""
    return f"sh {shlex.quote(os.fspath(script))}"


def _xdsl_opt() -> str:
    """`xdsl-opt`, or where it is beside this Python when the shell would not find it."""
    own = Path(sys.executable).with_name("xdsl-opt")
    return "xdsl-opt" if shutil.which("xdsl-opt") or not own.is_file() else shlex.quote(str(own))
