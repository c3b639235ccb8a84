"""Measuring the configs of one task: on the measurer that all tuning uses, or by a function that stands in for it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..measure.measurer import Measurement, Measurer, MeasureTask
from ..records.file import ErrorCode, Record
from ..template.history import SKETCH_PREFIX
from ..tune.loop import versions_for
from .local_measuring import make_measurer, tolerance

if TYPE_CHECKING:
    from ..template.config import Config
    from ..template.task import TemplateTask


class Trials:
    """Turns configs into records; a context manager, after which no process stays behind."""

    def __init__(self, task: TemplateTask, option: Any, seed: int = 0) -> None:
        self._task = task
        self._seed = seed
        self._option = option
        self._simulated = option if callable(option) else None
        self._measurer: Measurer | None = None if self._simulated else make_measurer(task, option)

    def __enter__(self) -> Trials:
        if self._measurer is not None:
            self._measurer.__enter__()
            reference = self._task.reference
            near = tolerance(self._option, reference.atol, reference.rtol)
            workload = str(self._task.module)
            self._measurer.use(MeasureTask(workload, reference.inputs, reference.expected, *near))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._measurer is not None:
            self._measurer.close()

    def measure(self, configs: Sequence[Config]) -> Iterator[tuple[Config, Record]]:
        """Measure configs; yields each with its record as it is done."""
        schedules = self._task.schedules(configs)
        if self._measurer is None:
            yield from self._imagine(configs, schedules)
            return
        waiting = dict(zip(self._measurer.submit(schedules), configs, strict=True))
        for measurement in self._measurer.results():
            config = waiting.pop(measurement.job)
            yield config, self._record(config, measurement)

    def _imagine(self, configs: Sequence[Config], schedules: Sequence[str]) -> Iterator[tuple[Config, Record]]:
        assert self._simulated is not None
        times_s = list(self._simulated(self._task, configs))
        for config, schedule, time_s in zip(configs, schedules, times_s, strict=True):
            right = 0 < time_s < math.inf
            code = ErrorCode.OK if right else ErrorCode.RUNTIME_ERROR
            times = (float(time_s),) if right else ()
            yield config, self._record(config, Measurement(-1, schedule, code, "" if right else "simulated", times))

    def _record(self, config: Config, measurement: Measurement) -> Record:
        task = self._task
        versions = {} if self._measurer is None else self._measurer.versions
        return Record(
            workload_key=task.workload_key,
            workload_hash=task.compute_dag.hash,
            target=str(task.target),
            sketch=SKETCH_PREFIX + task.name,
            decisions=config.row,
            schedule=measurement.schedule,
            times_s=measurement.times_s,
            error=measurement.error,
            message=measurement.message,
            build_s=measurement.build_s,
            run_s=measurement.run_s,
            versions=versions_for(measurement.schedule, versions),
            device="simulated" if self._measurer is None else self._measurer.device,
            timestamp=time.time(),
            seed=self._seed,
            artifact=measurement.artifact,
            stopped_early=measurement.stopped_early,
            reused=measurement.reused,
            flop=float(task.flops),
            resources=measurement.resources,
            template=task.described(config),
        )
