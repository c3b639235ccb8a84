"""The charts of a report: tuning curve, predictions beside measurements, roofline."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..measure.limits import Limits
from ..records.file import Record
from ..records.record import duration
from .group import RecordGroup
from .svg import Chart

CURVE_TITLE = "Speed of each trial and of the best so far"


def curve_chart(group: RecordGroup) -> str:
    """Speed by trial: each trial as a point, the best so far as a line; failures lie on the axis."""
    trials = group.trials
    unit = "GFLOP/s" if group.flop else "share of the best speed, %"
    best_s = min((r.time_s for r in trials), default=math.inf)

    def speed(time_s: float) -> float:
        if not math.isfinite(time_s):
            return 0.0
        return group.gflops_per_s(time_s) if group.flop else 100.0 * best_s / time_s

    top = 1.08 * speed(best_s) or 1.0
    chart = Chart(CURVE_TITLE, "trial", unit, (0, max(2, len(trials))), (0.0, top))
    steps: list[tuple[float, float]] = []
    for number, time_s in enumerate(group.curve, start=1):
        if math.isfinite(time_s):
            steps += [(number, steps[-1][1] if steps else speed(time_s)), (number, speed(time_s))]
    if steps:
        chart.line([*steps, (max(2, len(trials)), steps[-1][1])], "best")
    if group.untuned_trial is not None and speed(group.untuned_trial.time_s) < top:
        level = speed(group.untuned_trial.time_s)
        chart.line([(0, level), (max(2, len(trials)), level)], "drop")
        chart.text((0, level), "untuned", "start", (4, -5))
    for number, record in enumerate(trials, start=1):
        if record.ok:
            style = "early" if record.stopped_early else "twin" if record.reused else "trial"
            chart.dot((number, speed(record.time_s)), style, _note(group, number, record))
        else:
            chart.cross((number, 0.0), "failed", f"trial {number}: {record.error.value}, sketch {record.sketch}")
    return str(chart)


def _note(group: RecordGroup, number: int, record: Record) -> str:
    extra = " (stopped early)" if record.stopped_early else " (same binary as before)" if record.reused else ""
    return f"trial {number}: {group.speed(record.time_s)}{extra}, sketch {record.sketch}"


def prediction_chart(group: RecordGroup) -> str | None:
    """Chart of predicted against measured speed, of candidates that the cost model had not seen; None without any."""
    pairs = [(r.predicted, r.time_s, r) for r in group.right if r.predicted is not None]
    if len(pairs) < 3:
        return None
    scores, times = [p for p, _, _ in pairs], [1e3 * t for _, t, _ in pairs]
    chart = Chart(
        "What the model predicted beside what was measured",
        "predicted (larger: faster)",
        "measured, ms (up: faster)",
        _widened(scores),
        (max(times) * 1.2, min(times) / 1.2),
        log_y=True,
        height=260,
    )
    for score, time_s, record in pairs:
        chart.dot((score, 1e3 * time_s), "trial", f"round {record.round}: {group.speed(time_s)}")
    return str(chart)


def _widened(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = 0.05 * (high - low) or 0.5
    return low - margin, high + margin


def roofline_chart(group: RecordGroup, limits: Limits) -> str | None:
    """The best and the untuned schedule below what the device allows at this arithmetic intensity."""
    peak = limits.peak(group.dtype)
    if group.best is None or peak is None or not group.flop or not group.moved_bytes:
        return None
    intensity = group.flop / group.moved_bytes
    ridge = peak / limits.gbytes_per_s
    reachable = min(peak, limits.gbytes_per_s * intensity)
    shown = [("tuned", group.best)] + ([("untuned", group.untuned)] if group.untuned is not None else [])
    speeds = [group.gflops_per_s(r.time_s) for _, r in shown]
    low, high = min(intensity, ridge) / 8, max(intensity, ridge) * 8
    floor = min(min(speeds) / 3, peak / 30)
    chart = Chart(
        "Roofline",
        "FLOP per byte of inputs and outputs",
        "GFLOP/s",
        (low, high),
        (floor, peak * 2),
        log_x=True,
        log_y=True,
    )
    start = max(low, floor / limits.gbytes_per_s)
    chart.line([(start, limits.gbytes_per_s * start), (ridge, peak), (high, peak)], "roof")
    chart.text((high, peak), f"{peak:.4g} GFLOP/s", "end", (-4, -6))
    middle = math.sqrt(start * ridge)
    chart.text((middle, limits.gbytes_per_s * middle), f"{limits.gbytes_per_s:.4g} GB/s", "end", (-8, -4))
    chart.line([(intensity, floor), (intensity, reachable)], "drop")
    for (name, record), speed in zip(shown, speeds, strict=True):
        note = f"{name}: {speed:.4g} GFLOP/s, {duration(record.time_s)}; {group.share(record, limits)}"
        chart.dot((intensity, speed), "trial" if name == "untuned" else "winner", note, 5)
        chart.text((intensity, speed), f"{name} {speed:.4g}", "start", (9, 4))
    return str(chart)
