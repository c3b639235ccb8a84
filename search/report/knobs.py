"""The values of each knob, or decision, that were tried, and how fast the trials with each of them were."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..records.file import Record
from .group import RecordGroup
from .importance import decision_importance, decision_names

GOOD = 0.95
"""Part of the best speed from which a value counts as good: repeats of one kernel differ by some percent."""


@dataclass(frozen=True)
class KnobValue:
    """A value, the trials that had it, and the speeds of the best and the median one as shares of the best of all."""

    value: str
    trials: int
    best: float
    median: float


@dataclass(frozen=True)
class KnobReport:
    """A knob, its share of the importance (0 where that is not known), and its values, the best first."""

    name: str
    importance: float
    values: tuple[KnobValue, ...]

    @property
    def good(self) -> list[str]:
        """The values whose best trial reached nearly the best speed of all."""
        return [each.value for each in self.values if each.best >= GOOD]


def knobs_of(group: RecordGroup) -> list[KnobReport]:
    """The knobs of the sketch with the most right trials that had several values, the most important first."""
    chosen = _of_one_sketch(group)
    if not chosen:
        return []
    shares = dict(decision_importance(group)[1])
    least_s = min(record.time_s for record in chosen)
    found = []
    for place, name in enumerate(decision_names(group, chosen[0])):
        times: dict[str, list[float]] = {}
        for record in chosen:
            times.setdefault(_value(group, record, place, name), []).append(record.time_s)
        if len(times) > 1:
            values = [_summed_up(value, each, least_s) for value, each in times.items()]
            found.append(
                KnobReport(name, shares.get(name, 0.0), tuple(sorted(values, key=lambda v: (-v.best, v.value))))
            )
    return sorted(found, key=lambda knob: -knob.importance)


def _summed_up(value: str, times_s: Sequence[float], least_s: float) -> KnobValue:
    return KnobValue(value, len(times_s), least_s / min(times_s), least_s / statistics.median(times_s))


def _of_one_sketch(group: RecordGroup) -> list[Record]:
    counts = Counter((record.sketch, len(record.decisions)) for record in group.right if record.decisions)
    most = counts.most_common(1)[0][0] if counts else None
    return [r for r in group.right if r.decisions and (r.sketch, len(r.decisions)) == most]


def _value(group: RecordGroup, record: Record, place: int, name: str) -> str:
    """The value as people know it: that of a template's knob, or of the choices of a hole; else its position."""
    config = record.template.get("config") if record.template else None
    if isinstance(config, dict) and name in config:
        return str(config[name])
    decision = record.decisions[place]
    for sketch in group.task.sketches if group.task is not None else ():
        if sketch.name == record.sketch and sketch.n_decisions == len(record.decisions):
            choices = sketch.holes[place].choices
            return str(choices[decision]) if 0 <= decision < len(choices) else f"choice {decision}"
    return f"choice {decision}"
