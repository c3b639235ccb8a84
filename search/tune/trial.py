"""A candidate that is being measured, and the record of what became of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..measure.limits import Limits
from ..measure.measurement import Measurement, Measuring
from ..records import file as rec
from ..records.file import DEFAULT_SKETCH, Record, Role
from ..sketch.space import Described
from ..strategies.strategy import Proposal
from .options import Tunable, TuningOptions


@dataclass(frozen=True)
class Trial:
    """A proposal (None: the untuned schedule), the round it is of, and what the cost model expects."""

    proposal: Proposal | None
    round: int = 0
    predicted: float | None = None


def record_of(
    task: Tunable, trial: Trial, measurement: Measurement, measurer: Measuring, options: TuningOptions, role: Role
) -> Record:
    """The record of one measurement."""
    proposal = trial.proposal
    return Record(
        workload_key=task.workload_key,
        workload_hash=task.hash,
        target=task.target,
        sketch=DEFAULT_SKETCH if proposal is None else task.spaces[proposal.space].name,
        decisions=() if proposal is None else proposal.row,
        schedule=measurement.schedule,
        times_s=measurement.times_s,
        error=measurement.error,
        message=measurement.message,
        build_s=measurement.build_s,
        run_s=measurement.run_s,
        versions=_versions_for(measurement.schedule, measurer.versions),
        device=measurer.device,
        timestamp=time.time(),
        seed=options.seed,
        artifact=measurement.artifact,
        stopped_early=measurement.stopped_early,
        reused=measurement.reused,
        role=role,
        round=trial.round,
        predicted=trial.predicted,
        flop=task.flop,
        resources=measurement.resources,
        template=_described(task, proposal),
        limits=options.limits.as_json() if isinstance(options.limits, Limits) else {},
        fleet=measurement.fleet,
    )


def measurement_of(record: Record) -> Measurement:
    """A record's result, which a measurer may reuse for candidates that compile to the same artifact."""
    return Measurement(
        job=-1,
        schedule=record.schedule,
        error=record.error,
        message=record.message,
        times_s=record.times_s,
        artifact=record.artifact,
        stopped_early=record.stopped_early,
    )


def _described(task: Tunable, proposal: Proposal | None) -> dict[str, Any]:
    """The field `template` of the record of a proposal, or of the untuned schedule."""
    if proposal is None:
        return task.described_default()
    space = task.spaces[proposal.space]
    return space.described(proposal.row) if isinstance(space, Described) else {}


def _versions_for(schedule: str, versions: Mapping[str, str]) -> dict[str, str]:
    """The versions of packages, and of those primitives that the schedule uses."""
    used = rec.primitives_of(schedule)
    return {n: v for n, v in versions.items() if n in used or not rec.is_primitive(n)}
