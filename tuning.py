"""A front door in one call: tune a program or a network, and get what runs it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from .backends.kernel_function import Kernel
from .backends.targets import resolve_target
from .dialects.target import Target
from .graph.compiler import compile
from .graph.network import Network
from .graph.network_run_off import compile_tuned
from .graph.runtime.network import CompiledNetwork
from .graph.tasks import tasks_to_tune
from .opening import AnyNetwork, opened
from .search.measure.local import Measure
from .search.task import SearchTask
from .search.tune.options import TuningError, TuningOptions
from .search.tune.progress import Progress
from .search.tune.scheduler import TaskScheduler
from .search.workload import Workload
from .storage.folders import cache_folder
from .te import Tensor

TRIALS = 64
"""Trials of a program, and of each task of a network, unless told otherwise."""
ENDLESS = 1_000_000
"""Trials where a time limit is what ends a search: more than any machine measures in a week."""

Program = str | Workload | Callable[..., Sequence[Tensor]] | Tensor | Sequence[Tensor] | ModuleOp
"""A program of one kernel: te tensors (an output, or inputs and outputs), a function that returns them, the name of a
registered one, or a te-level module."""


def tune(
    program: Program,
    target: str | Target = "llvm",
    *,
    args: Iterable[Any] = (),
    trials: int | None = None,
    time_limit_s: float | None = None,
    records: str | os.PathLike[str] | None = None,
    measure: Measure = None,
    progress: bool | Progress = True,
) -> Kernel:
    """Search for a fast schedule of a program, and return the kernel built with it: `lw.tune(tensor, trials=64)(x)`.

    `trials` schedules are measured (64; with `time_limit_s` alone, as many as it allows), those in `records` included,
    a file that is gone on with; without one it lies in this user's cache folder, so that the next call with as many
    trials measures nothing. `lw.SearchTask` has what this is made of. TuningError where no schedule gives a right
    kernel; what is wrong with arguments is refused as there.
    """
    task = SearchTask(program, tuple(args), target)
    place = _beside_or_cached(records, None, f"{task.name}.{task.compute_dag.hash}")
    options = TuningOptions(
        num_measure_trials=_count(trials, time_limit_s, 1),
        time_limit_s=time_limit_s,
        records=place,
        progress=progress,
    )
    return task.build(task.tune(options, measure).best.schedule)


def optimize(
    model: AnyNetwork,
    target: str | Target = "llvm",
    *,
    trials: int | None = None,
    time_limit_s: float | None = None,
    records: str | os.PathLike[str] | None = None,
    measure: Measure = None,
    progress: bool = True,
    precision: str | None = None,
) -> CompiledNetwork:
    """Tune the kernels of a network, and compile it with the best of them: `lw.optimize("model.onnx", "cuda")(x)`.

    The model is a network, or the path of an ONNX model. `trials` are for all kernels together (64 for each distinct
    one; with `time_limit_s` alone, as many as it allows), those in `records` included, a file that is gone on with;
    without one it lies beside the model, or in this user's cache folder where that cannot be. `precision` is that of
    `lw.compile`, which with `lw.TaskScheduler` is what this is made of. On CPUs and CUDA devices convolutions are tuned
    by Winograd's transforms with tiles of 2, too, which are as exact. On CPUs a kernel whose untuned schedule is faster
    among the others of the network goes back to it, which the file of records keeps. TuningError where there is a
    kernel that no schedule makes right.
    """
    net, device = opened(model), resolve_target(target)
    tasks, weights = tasks_to_tune(net, device, precision)
    place = _beside_or_cached(records, None if isinstance(model, Network) else model, net.name)
    if tasks:
        options = TuningOptions(
            num_measure_trials=_count(trials, time_limit_s, len(tasks)),
            time_limit_s=time_limit_s,
            records=place,
            progress=progress,
        )
        result = TaskScheduler(tasks, weights, load_records=place).tune(options, measure)
        if result.failure:
            raise TuningError(result.failure)
    if place is None or not Path(place).is_file():
        return compile(net, device, precision=precision)
    return compile_tuned(net, device, place, precision=precision, measure=measure)


def _count(trials: int | None, time_limit_s: float | None, tasks: int) -> int:
    if trials is not None:
        return trials
    return TRIALS * tasks if time_limit_s is None else ENDLESS


def _beside_or_cached(
    records: str | os.PathLike[str] | None, model: str | os.PathLike[str] | None, name: str
) -> str | os.PathLike[str] | None:
    """The record file that is asked for, or the one beside a model that can be written to, or one in the cache."""
    if records is not None:
        return records
    if model is not None and os.access(Path(model).absolute().parent, os.W_OK):
        return Path(model).with_suffix(".jsonl")
    folder = cache_folder("records")
    return None if folder is None else folder / f"{name}.jsonl"
