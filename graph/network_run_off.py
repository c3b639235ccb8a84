"""The run-off of a tuned network with its untuned kernels: beside the others a schedule may be slower than alone.

A trial of a kernel runs it again and again on data of its own. In a network the data comes from the kernel before,
other kernels have used the caches since, and on a host that others use the fastest of many trials was also the one that
was disturbed least. On a Xeon, whose other cores were busy, a MobileNet v1 on one thread took 10.6 ms with what a
search of 270 s had found, and 9.4 without. So both ways are timed step by step in the network itself, in turn, and a
kernel whose untuned schedule is faster there goes back to it.
"""

from __future__ import annotations

import os
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from ..backends.host_memory import host_memory_bytes
from ..backends.targets import resolve_target
from ..dialects.target import Target
from ..search.measure.backend_api import backend_path, load_backend
from ..search.measure.local import Measure, runs_here
from ..search.records import file as rec
from ..search.records.file import DEFAULT_SKETCH, Record, Role
from .chosen_schedules import UntunedWarning
from .compiler import compile
from .network import Network
from .runtime.executor import Executor
from .runtime.network import CompiledNetwork

LAPS = 12
"""Timed runs of each network, in turn, each behind one that brings its data to the caches. A choice."""
MOST_S = 5.0
"""Seconds for all of them where a network is slow; four of each are timed in any case. A choice."""
FASTER_LAPS = 0.75
"""Part of the laps in which the untuned schedule must be faster. Of two that are as fast, 9 of 12 laps are won by one
of them in 7 of 100 run-offs, and then nothing is lost by taking it."""
_FEWEST = 4
"""Laps that are timed however slow a network is: three of four is the least that is most of them. A choice."""


def compile_tuned(
    net: Network,
    target: str | Target,
    records: str | os.PathLike[str],
    *,
    winograd: bool = True,
    precision: str | None = None,
    measure: Measure = None,
) -> CompiledNetwork:
    """Compile a network with the records of its search, as `lw.compile` does, after a run-off on CPUs.

    A kernel whose untuned schedule is faster among the others of the network is compiled with that; `records` gets the
    outcome, so that `lw.compile` with the file makes the same choice. On GPUs, which nobody else uses meanwhile and
    whose own clock is read, and where `measure` had candidates run on another machine, there is none.
    """
    device = resolve_target(target)
    tuned = compile(net, device, records, winograd=winograd, precision=precision)
    if device.kind != "llvm" or not runs_here(measure) or 4 * tuned.package.constant_bytes > host_memory_bytes():
        return tuned
    known = rec.load(records)
    rivals = rivals_of(tuned, known, device)
    if not rivals:
        return tuned
    kept = {kernel.workload_key for kernel in tuned.kernels} - {rival.key for rival in rivals}
    given = [r for r in known if r.workload_key in kept] + [rival.untuned for rival in rivals]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UntunedWarning)  # said of the tuned network, if at all
        other = compile(net, device, given, winograd=winograd, precision=precision)
    ratios = lap_ratios(tuned.executor(), other.executor())
    back = [rival for rival in rivals if is_faster(ratios.get(rival.key, ()))]
    if not back:
        return tuned
    rec.append(records, [record for rival in back for record in rival.outcome(median(ratios[rival.key]))])
    return compile(net, device, records, winograd=winograd, precision=precision)


@dataclass(frozen=True)
class Rival:
    """A kernel of a tuned network with two schedules: the records of the one that was chosen and of the untuned one."""

    chosen: Record
    untuned: Record

    @property
    def key(self) -> str:
        return self.chosen.workload_key

    def outcome(self, ratio: float) -> tuple[Record, Record]:
        """The records of a run-off that the untuned schedule won, in `ratio` of the time of the chosen one.

        Times of a network are no times of trials, with which later ones compete: the winner's is the time that the
        chosen schedule had as a trial, multiplied by the ratio. Nothing was built or run for either as a trial is.
        """
        times_s = (self.chosen.time_s * ratio,)
        lost = replace(self.chosen, role=Role.FINAL)
        won = replace(self.untuned, role=Role.WINNER, times_s=times_s, round=0, stopped_early=False)
        now = time.time()
        first, second = (replace(each, timestamp=now, predicted=None, build_s=0.0, run_s=0.0) for each in (lost, won))
        return first, second


def rivals_of(tuned: CompiledNetwork, known: Iterable[Record], target: Target) -> list[Rival]:
    """Return the kernels whose schedule is that of a record, where the untuned one was tried, too, and is another.

    Both are of this target and of this machine's CPU: of another one nothing is found out here.
    """
    device = load_backend(backend_path(target.kind)).device_name()
    schedules = {kernel.workload_key: kernel.schedule for kernel in tuned.kernels if kernel.tuned}
    groups: dict[str, list[Record]] = {key: [] for key in schedules}
    for record in known:
        if record.ok and record.target == str(target) and record.workload_key in groups:
            groups[record.workload_key].append(record)
    found = []
    for key, group in groups.items():
        untuned = [record for record in group if record.sketch == DEFAULT_SKETCH and record.device == device]
        if not untuned:
            continue
        chosen = rec.best(group)
        if chosen.device == device and chosen.schedule == schedules[key] != untuned[-1].schedule:
            found.append(Rival(chosen, untuned[-1]))
    return found


def lap_ratios(tuned: Executor, untuned: Executor) -> Mapping[str, Sequence[float]]:
    """Time both networks step by step in turn: by workload that both have, the untuned over the tuned time each lap."""
    found: dict[str, list[float]] = defaultdict(list)
    end_s = time.perf_counter() + MOST_S
    for lap in range(LAPS):
        if lap >= _FEWEST and time.perf_counter() > end_s:
            break
        first, second = _times_s(tuned), _times_s(untuned)
        for key in first.keys() & second.keys():
            found[key].append(second[key] / first[key] if first[key] else 1.0)
    return found


def is_faster(ratios: Sequence[float]) -> bool:
    """True where the untuned schedule took less time in the middle lap, and in most of them."""
    return bool(ratios) and median(ratios) < 1 and sum(r < 1 for r in ratios) >= FASTER_LAPS * len(ratios)


def _times_s(executor: Executor) -> dict[str, float]:
    """Seconds of a run by workload, all steps of a kernel together."""
    found: dict[str, float] = defaultdict(float)
    for row in executor.profile(repeat=1):
        found[row.kernel.workload_key] += row.time_s
    return found
