"""The charts of a report: tuning curve, predictions beside measurements, roofline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...dialects.shown_text import printable
from ..measure.limits import Limits
from ..records.file import Record
from ..records.record import duration
from .group import RecordGroup
from .vega import Spec, chart, field, layer, logarithmic, tips

CURVE_TITLE = "Speed of each trial and of the best so far"
OUTCOMES = ("measured", "clearly slower, stopped early", "same binary as before", "failed")


def curve_chart(group: RecordGroup) -> Spec:
    """Speed by trial: each trial as a point, the best so far as a line; failures lie on the axis."""
    trials = group.trials
    unit = "GFLOP/s" if group.flop else "share of the best speed, %"
    best_s = min((r.time_s for r in trials), default=math.inf)

    def speed(time_s: float) -> float:
        if not math.isfinite(time_s):
            return 0.0
        return group.gflops_per_s(time_s) if group.flop else 100.0 * best_s / time_s

    end = max(2, len(trials))
    best = [{"x": n, "y": speed(t)} for n, t in enumerate(group.curve, start=1) if math.isfinite(t)]
    best += [{"x": end, "y": best[-1]["y"]}] if best else []
    x, y = field("x", "trial", scale={"domain": [0, end]}), field("y", unit, scale={"zero": True})
    layers = [layer(best, {"type": "line", "interpolate": "step-after", "color": "$best"}, x=x, y=y)]
    if group.untuned_trial is not None:
        level = [{"y": speed(group.untuned_trial.time_s), "words": "untuned"}]
        layers.append(layer(level, {"type": "rule", "strokeDash": [4, 4], "color": "$soft"}, y=field("y", unit)))
        words = {"type": "text", "align": "right", "dy": -7, "x": "width"}
        layers.append(layer(level, words, y=field("y", unit), text={"field": "words"}))
    points = [_point(group, number, record, speed(record.time_s)) for number, record in enumerate(trials, start=1)]
    layers.append(_trial_layer(points, x, y))
    return chart(CURVE_TITLE, layers)


def _trial_layer(points: Sequence[dict[str, Any]], x: Spec, y: Spec) -> Spec:
    """Points whose colour, shape and filling say what came of a trial; the nearest one is told of."""
    present = [o for o in OUTCOMES if any(point["outcome"] == o for point in points)]
    colours = {o: "$bad" if o == "failed" else "$trial" for o in OUTCOMES}
    shapes = {OUTCOMES[1]: "triangle-down", OUTCOMES[2]: "diamond", "failed": "cross"}
    fills = {OUTCOMES[0]: "$trial", "failed": "$bad"}

    def scale(values: dict[str, Any], usual: Any) -> Spec:
        return {"domain": present, "range": [values.get(o, usual) for o in present]}

    outcome = {"field": "outcome", "type": "nominal"}
    made = layer(
        points,
        {"type": "point", "size": 45, "strokeWidth": 1.2},
        x=x,
        y=y,
        stroke={**outcome, "scale": scale(colours, "$trial")},
        fill={**outcome, "scale": scale(fills, "transparent")},
        shape={**outcome, "scale": scale(shapes, "circle")},
        size={"condition": {"param": "near", "empty": False, "value": 160}, "value": 45},
        tooltip=tips("trial", "speed", "outcome", "sketch"),
    )
    made["params"] = [{"name": "near", "select": {"type": "point", "on": "pointerover", "nearest": True}}]
    return made


def _point(group: RecordGroup, number: int, record: Record, speed: float) -> dict[str, Any]:
    outcome = OUTCOMES[3] if not record.ok else OUTCOMES[1] if record.stopped_early else OUTCOMES[2 * record.reused]
    said = group.speed(record.time_s) if record.ok else record.error.value
    return {
        "x": number,
        "y": speed,
        "trial": str(number),
        "speed": said,
        "outcome": outcome,
        "sketch": printable(record.sketch),
    }


def prediction_chart(group: RecordGroup) -> Spec | None:
    """Chart of predicted places against measured speed, of candidates that the cost model had not seen; None without.

    A place is among those of a candidate's round: the scale of a prediction is the model's own, and the model that
    ships has another one than what a search learns in its place.
    """
    rounds: dict[int, list[float]] = {}
    for record in group.right:
        if record.predicted is not None:
            rounds.setdefault(record.round, []).append(record.predicted)
    pairs = [
        (_place(r.predicted, beside), r.time_s, r)
        for r in group.right
        if r.predicted is not None and len(beside := rounds[r.round]) > 1
    ]
    if len(pairs) < 3:
        return None
    rows = [
        {"x": p, "y": 1e3 * t, "round": str(r.round), "speed": group.speed(t), "sketch": printable(r.sketch)}
        for p, t, r in pairs
    ]
    times = [1e3 * time_s for _, time_s, _ in pairs]
    points = layer(
        rows,
        {"type": "point", "filled": True, "color": "$trial", "size": 45},
        x=field("x", "place in its round, as predicted (0: slowest, 1: fastest)", scale={"domain": [0, 1]}),
        y=logarithmic("y", "measured, ms (up: faster)", min(times) / 1.2, max(times) * 1.2, reverse=True),
        tooltip=tips("speed", "round", "sketch"),
    )
    return chart("What the model predicted beside what was measured", [points], 240)


def _place(predicted: float, beside: Sequence[float]) -> float:
    """The share of others that are predicted slower, of equal ones half."""
    slower, equal = sum(p < predicted for p in beside), sum(p == predicted for p in beside) - 1
    return (slower + equal / 2) / (len(beside) - 1)


def roofline_chart(group: RecordGroup, limits: Limits) -> Spec | None:
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
    floor, top = min(min(speeds) / 3, peak / 30), 2 * max(peak, *speeds)
    x = logarithmic("x", "FLOP per byte of inputs and outputs", low, high)
    y = logarithmic("y", "GFLOP/s", floor, top)
    start = max(low, floor / limits.gbytes_per_s)
    middle = math.sqrt(start * ridge)
    roof = [(start, limits.gbytes_per_s * start), (ridge, peak), (high, peak)]
    flat = [{"x": high, "y": peak, "words": f"{peak:.4g} GFLOP/s"}]
    slope = [{"x": middle, "y": limits.gbytes_per_s * middle, "words": f"{limits.gbytes_per_s:.4g} GB/s"}]
    order = sorted(zip(speeds, shown, strict=True), key=lambda pair: -pair[0])
    layers = [
        layer([{"x": a, "y": b} for a, b in roof], {"type": "line", "color": "$text"}, x=x, y=y),
        layer(flat, {"type": "text", "align": "right", "dx": -4, "dy": -9}, x=x, y=y, text={"field": "words"}),
        layer(slope, {"type": "text", "align": "left", "dx": 8, "dy": 9}, x=x, y=y, text={"field": "words"}),
        layer(
            [{"x": intensity, "y": floor}, {"x": intensity, "y": reachable}],
            {"type": "line", "color": "$soft", "strokeDash": [4, 4], "strokeWidth": 1},
            x=x,
            y=y,
        ),
    ]
    for place, (speed, (name, record)) in enumerate(order):  # the faster one's words above, the other's below
        rows = [
            {
                "x": intensity,
                "y": speed,
                "schedule": name,
                "speed": f"{speed:.4g} GFLOP/s, {duration(record.time_s)}",
                "of the limit": str(group.share(record, limits)),
                "words": f"{name} {speed:.4g}",
            }
        ]
        colour = "$best" if name == "tuned" else "$trial"
        mark = {"type": "point", "filled": True, "opacity": 1, "size": 110, "color": colour}
        layers.append(layer(rows, mark, x=x, y=y, tooltip=tips("schedule", "speed", "of the limit")))
        label = {"type": "text", "align": "left", "dx": 9, "dy": -7 if place == 0 else 12}
        layers.append(layer(rows, label, x=x, y=y, text={"field": "words"}))
    return chart("Roofline", layers)
