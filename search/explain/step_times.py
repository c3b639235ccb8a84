"""An ablation of a schedule: the time after each of its steps, and the time with each step left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.target import Target
from ...passes.build_limits import USUAL_LIMITS
from ...passes.lower.lower_te_to_loop import LowerTeToLoop
from ...passes.parametric.read import nest_of_module
from ...passes.pipeline_text import apply_schedule, parse_schedule, schedule_text
from ...passes.primitive import ScheduleError, in_words
from ..features.view import NestView
from ..measure.local import Measure, measuring
from ..measure.measurement import Measurement
from ..measure.measurer import Measurer, headline
from ..records.file import Record
from ..task import SearchTask

STOP_FACTOR = 4.0
"""Variants slower than the whole schedule by this factor are timed by probes only, which are exact to some percent."""
LAPS = 3
"""Repeats of the whole schedule and of each variant, which are timed in turn: a clock that drifts meets all of them."""

Progress = Callable[[int, int], None]
"""Called with the variants that are measured, and how many there are."""


@dataclass(frozen=True)
class VariantTime:
    """The seconds of a schedule with steps missing, checked against the reference; infinity where it has none, and why.

    `needed_by` is the number of the step, from 1, that cannot be applied without the one left out; 0 where all can be.
    """

    time_s: float = math.inf
    why: str = ""
    needed_by: int = 0


@dataclass(frozen=True)
class StepTime:
    """A step, its sentence, the time of the schedule that ends with it, and the time of the schedule without it."""

    text: str
    words: str
    after: VariantTime
    without: VariantTime


@dataclass(frozen=True)
class StepTimes:
    """The whole schedule as it was measured beside the variants, and its steps."""

    whole: Measurement
    steps: tuple[StepTime, ...]
    device: str


def step_times(task: SearchTask, schedule: str, measure: Measure = None, progress: Progress | None = None) -> StepTimes:
    """Measure a schedule, each of its beginnings, and it without each step, in worker processes; results are checked.

    A step without which later ones cannot be applied has no time, but the sentence that says which. ScheduleError where
    the whole schedule is refused.
    """
    steps = parse_schedule(schedule)
    beginnings = _beginnings(task, steps)
    shortened = [_without(task, steps, number) for number in range(len(steps))]
    wanted = list(dict.fromkeys([schedule, *(s for s in (*beginnings, *shortened) if isinstance(s, str))]))
    found, device = _measured(task, wanted, measure, progress)

    def time_of(variant: str | VariantTime) -> VariantTime:
        return variant if isinstance(variant, VariantTime) else _time(found[variant])

    rows = [
        StepTime(str(step), in_words(step), time_of(after), time_of(without))
        for step, after, without in zip(steps, beginnings, shortened, strict=True)
    ]
    return StepTimes(found[schedule], tuple(rows), device)


def recorded_times(record: Record) -> StepTimes:
    """The time that a record keeps of the whole schedule, and its steps, none of which is measured."""
    unknown = VariantTime(why="it was not measured")
    rows = [StepTime(str(step), in_words(step), unknown, unknown) for step in parse_schedule(record.schedule)]
    kept = Measurement(0, record.schedule, record.error, times_s=record.times_s, resources=record.resources)
    return StepTimes(kept, tuple(rows), record.device)


def _beginnings(task: SearchTask, steps: Sequence[ModulePass]) -> list[str | VariantTime]:
    """The schedules that end with each step; the reason where one is not worth a measurement."""
    module = task.module.clone()
    found: list[str | VariantTime] = []
    for number, step in enumerate(steps):
        apply_schedule(module, [step], USUAL_LIMITS)
        found.append(_worth_it(module, task.target, schedule_text(steps[: number + 1])))
    return found


def _worth_it(module: ModuleOp, target: Target, schedule: str) -> str | VariantTime:
    """The schedule; the reason where a nest of it would run in one thread of a GPU, which takes seconds."""
    if not target.is_gpu:
        return schedule
    stages = NestView(nest_of_module(module, target)).stages
    alone = [stage.stage.name for stage in stages if not stage.loops_of("block", "thread")]
    return VariantTime(why=f"{', '.join(alone)} would run in one thread: not measured") if alone else schedule


def _without(task: SearchTask, steps: Sequence[ModulePass], left_out: int) -> str | VariantTime:
    """The schedule without a step; the reason where that is none."""
    if isinstance(steps[left_out], LowerTeToLoop):
        return VariantTime(why="every schedule begins with it")
    copy = task.module.clone()
    others = [(number, step) for number, step in enumerate(steps) if number != left_out]
    for number, step in others:
        try:
            apply_schedule(copy, [step], USUAL_LIMITS)
        except ScheduleError as error:
            return VariantTime(why=f"step {number + 1} is refused: {_reason(error)}", needed_by=number + 1)
    return _worth_it(copy, task.target, schedule_text(step for _, step in others))


def _reason(error: ScheduleError) -> str:
    """The rule that a refusal names, without the step that it is about and what there would be instead."""
    text = headline(str(error))
    return (text.partition("}: ")[2] or text).partition("; ")[0]


def _measured(
    task: SearchTask, schedules: Sequence[str], measure: Measure, progress: Progress | None
) -> tuple[dict[str, Measurement], str]:
    """Each schedule's measurement, the first of them first of all; and the device."""
    options = measuring(measure, task.measure_options(), None, None)
    options = replace(options, timing=replace(options.timing, repeat=LAPS, stop_factor=STOP_FACTOR))
    found: dict[str, Measurement] = {}
    with Measurer(options) as measurer:
        measurer.use(task.reference.task(str(task.module)))
        for group in (schedules[:1], schedules[1:]):
            measurer.submit(group)
            for measurement in measurer.results():
                found[measurement.schedule] = measurement
                _say(progress, len(found), len(schedules))
            measurer.best_s = _least(found.values())
        again = _near(found, schedules[0])
        measurer.submit(again, fresh=True, laps=LAPS)
        found |= {measurement.schedule: measurement for measurement in measurer.results()}
        return found, measurer.device


def _near(found: dict[str, Measurement], whole: str) -> list[str]:
    """The whole schedule and the variants within a factor of 1.5, which are timed again in turn."""
    least_s = min(found[whole].times_s, default=math.inf)
    close = [text for text, each in found.items() if each.ok and min(each.times_s) < 1.5 * least_s and text != whole]
    return [whole, *close] if found[whole].ok and close else []


def _least(measurements: Iterable[Measurement]) -> float | None:
    return min((min(each.times_s) for each in measurements if each.ok), default=None)


def _time(measurement: Measurement) -> VariantTime:
    if measurement.ok:
        return VariantTime(min(measurement.times_s))
    return VariantTime(why=f"{measurement.error.value}: {headline(measurement.message)}")


def _say(progress: Progress | None, done: int, of: int) -> None:
    if progress is not None:
        progress(done, of)
