"""The reasons why a schedule is fast: its steps one by one, limits of its blocks, counters, code, what was tried."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...backends.kernel_function import Kernel
from ...backends.missing import MissingRequirement
from ...backends.targets import resolve_target
from ...dialects.errors import Error
from ...dialects.markup import notebook
from ...dialects.target import Target, TargetAttr
from ...schedule import Schedule
from ...storage.ownership import require_ours
from ...storage.whole_file import write_whole
from ..measure.limits import Limits, Share, limits_of
from ..measure.local import Measure
from ..measure.measurer import headline
from ..records.file import Record
from ..records.record import duration
from ..report.document import PAGE_MARK, document
from ..report.group import RecordGroup
from ..report.knobs import KnobReport, knobs_of
from ..task import SearchTask
from .block_limits import BlockLimits, Roof, block_limits, machine_at, roofs
from .chapters import code_section, counters_section, knobs_section, limits_section, listing_section, steps_section
from .instructions import HotLoop, hot_loop
from .nsight import Profile, profile
from .perf_events import Counters, count
from .sections import Section, as_html, as_text
from .step_times import Progress, StepTimes, recorded_times, step_times

_COUNTED_S = 0.05
"""Runs under a counter take about so long."""


class ExplanationError(Error):
    """A schedule gives no kernel that could be explained: it does not run, or is wrong."""


@dataclass(frozen=True)
class Explanation:
    """The reasons why a schedule is as fast as it is; `print` it, show it in a notebook, or `write` it as a page.

    `times` are measured, and checked against the reference. `blocks` are those of a model whose rates are the `roofs`.
    `counters` are those of a CPU, `profile` those of a CUDA device; each says why where it counted nothing. `loop` is
    the kernel's hottest loop, None where there is no assembly to read. `knobs` are of the record's trials.
    """

    name: str
    target: str
    schedule: str
    times: StepTimes
    share: Share | None
    blocks: tuple[BlockLimits, ...]
    roofs: tuple[Roof, ...]
    loop: HotLoop | None
    source: str
    counters: Counters
    profile: Profile | None
    knobs: tuple[KnobReport, ...] = ()

    @property
    def time_s(self) -> float:
        """Seconds of a run of the whole schedule: its shortest repeat."""
        return min(self.times.whole.times_s)

    @property
    def sections(self) -> list[Section]:
        """The parts of the explanation as tables and listings."""
        launches = self.times.whole.resources
        parts = [
            self._summary(),
            steps_section(self.times),
            limits_section(self.blocks, self.roofs, self.time_s),
            counters_section(self.counters, self.profile),
            code_section(self.loop, launches),
        ]
        parts += [knobs_section(self.knobs)] if self.knobs else []
        return parts + ([listing_section(self.loop, self.source)] if self.loop is not None else [])

    def _summary(self) -> Section:
        rows = [["device", self.times.device], ["target", self.target]]
        rows.append(["time", f"{duration(self.time_s)}, its result checked against the interpreter's"])
        rows += [["of the limit", str(self.share)]] if self.share is not None else []
        return Section(f"Why {self.name} is as fast as it is", rows=rows)

    def __str__(self) -> str:
        return as_text(self.sections)

    def __repr__(self) -> str:
        return f"<Explanation of {self.name}: {duration(self.time_s)}, {len(self.times.steps)} steps>"

    def _repr_html_(self) -> str:
        return notebook(as_html(self.sections))

    def as_json(self) -> dict[str, Any]:
        """All figures as an object of JSON; a time that there is none of is null."""
        text = json.dumps({**asdict(self), "time_s": self.time_s}, default=str)
        plain: dict[str, Any] = json.loads(text, parse_constant=lambda _: None)
        return plain

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the explanation as a page that loads nothing, or as text where the path ends in `.txt`.

        FileExistsError where something lies there that is no page of ours.
        """
        output = Path(path)
        if output.suffix == ".txt":
            write_whole(output, f"{self}\n")
            return output
        require_ours(output, "page", [PAGE_MARK.encode()])
        write_whole(output, document(f"Why {self.name} is fast", as_html(self.sections)))
        return output


def explain(
    x: Schedule | SearchTask,
    schedule: str | None = None,
    *,
    target: str | Target | None = None,
    measure: Measure = None,
    group: RecordGroup | None = None,
    limits: Limits | None = None,
    recorded: Record | None = None,
    counters: bool = True,
    progress: Progress | None = None,
) -> Explanation:
    """Measure why a schedule is fast: each of its steps, the limits of its blocks, hardware counters, its code.

    `x` is a Schedule of a workload on tensors, or a task with a `schedule` as text (the best that is known unless
    given). The machine's limits are measured first unless given. Every variant is measured in worker processes, in the
    terms of `measure`, and its result is checked. `group` are records of the task, for the knobs. Without `counters` no
    hardware is asked. Given a `recorded` schedule nothing is measured, and its device need not be here.
    ExplanationError where the schedule itself does not run or is wrong.
    """
    task, text = _asked(x, schedule if recorded is None else recorded.schedule, target)
    dtype = task.compute_dag.dtype
    known = limits or limits_of(task.target, filter(None, [dtype] if recorded is None else ()))
    times = step_times(task, text, measure, progress) if recorded is None else recorded_times(recorded)
    counters = counters and recorded is None
    if not times.whole.ok:
        raise ExplanationError(f"{task.name}: {times.whole.error.value}: {headline(times.whole.message)}")
    kernel = task.build(text)
    machine = machine_at(task.target, known, dtype)
    share = None
    if known is not None:
        share = known.share(task.flops, task.compute_dag.moved_bytes, min(times.whole.times_s), dtype)
    return Explanation(
        name=task.name,
        target=str(task.target),
        schedule=text,
        times=times,
        share=share,
        blocks=tuple(block_limits(task.schedule_module(text), task.target, machine)),
        roofs=tuple(roofs(task.target, machine, known, dtype)),
        loop=_loop(kernel),
        source=kernel.source,
        counters=_counters(task, kernel, times) if counters else Counters({}, "they were not asked for"),
        profile=_profile(task, text, times) if counters else None,
        knobs=tuple(knobs_of(group)) if group is not None else (),
    )


def _asked(x: Schedule | SearchTask, schedule: str | None, target: str | Target | None) -> tuple[SearchTask, str]:
    if isinstance(x, Schedule):
        if schedule is not None:
            raise TypeError("explain takes a Schedule alone, or a task with a schedule as text: got both")
        task = SearchTask(x.workload, target=_target_of(x, target))
        task.name = Schedule(x.workload).blocks[-1]
        return task, x.pipeline
    if not isinstance(x, SearchTask):
        raise TypeError(f"explain takes a Schedule or a SearchTask, got {type(x).__name__}")
    if target is not None:
        raise TypeError(f"explain takes no target beside a task, which has one: {x.target}")
    return x, x.known_schedule() if schedule is None else schedule


def _target_of(schedule: Schedule, target: str | Target | None) -> str | Target:
    if target is not None:
        return resolve_target(target)
    given = schedule.module.attributes.get("lw.target")
    return given.data if isinstance(given, TargetAttr) else "llvm"


def _loop(kernel: Kernel) -> HotLoop | None:
    """The hottest loop by source lines; None where no compiler is here that could show it."""
    try:
        return hot_loop(kernel.assembly_by_line)
    except MissingRequirement:
        return None


def _profile(task: SearchTask, schedule: str, times: StepTimes) -> Profile | None:
    return profile(task, schedule, max(1, len(times.whole.resources))) if task.target.kind == "cuda" else None


def _counters(task: SearchTask, kernel: Kernel, times: StepTimes) -> Counters:
    if task.target.kind != "llvm":
        return Counters({}, f"those of this CPU say nothing of a kernel for {task.target.kind}")
    inputs = task.reference.inputs
    kernel(*inputs)
    runs = max(1, math.ceil(_COUNTED_S / min(times.whole.times_s)))
    return count(lambda: kernel(*inputs), min(runs, 1000))
