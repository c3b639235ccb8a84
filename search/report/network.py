"""A network's tuning as its records tell it: the table of tasks, and the total latency after each trial."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...dialects.markup import as_text, table
from ..records.file import DEFAULT_SKETCH
from ..records.network_files import TunedNetwork
from ..records.record import duration
from ..tune.progress import TuningState, counted, sparkline
from ..tune.state import SchedulerState, TaskRow, ways_of, weighted_sum
from ..tune.table import HEADINGS, as_table
from ..tune.task_strategy import TaskHistory
from .group import RecordGroup
from .vega import Spec, chart, field, figure, layer, tips


@dataclass(frozen=True)
class NetworkTrace:
    """The state of a network after its trials, the total latency after each, and the seconds from the first to each.

    A total is the sum of weight times latency, infinite while a task has none. `places` are those of the tasks' groups
    among all groups, None for a task without records.
    """

    state: SchedulerState
    device: str
    totals_s: Sequence[float]
    elapsed_s: Sequence[float]
    places: Sequence[int | None]

    @property
    def summary(self) -> str:
        """The total at the end, after how many trials and how long."""
        total_s = self.state.latency_s
        total = duration(total_s) if math.isfinite(total_s) else "-, as not every task has a schedule"
        spent = f" in {duration(self.elapsed_s[-1])}" if self.elapsed_s and self.elapsed_s[-1] else ""
        return f"Estimated total latency: {total}; {counted(len(self.totals_s), 'trial')}{spent} on {self.device}"

    def __str__(self) -> str:
        """The table of tasks, the total, and the total's speed over trials as a line of bars."""
        shown = [as_table([HEADINGS, *map(self.state.cells, self.state.rows)]), self.summary]
        bars = sparkline(self.totals_s)
        return "\n".join(shown + ([f"speed of the whole, by trial: {bars}"] if bars else []))


def traces(networks: Sequence[TunedNetwork], groups: Sequence[RecordGroup]) -> list[NetworkTrace]:
    """The trace of each network on each device that there are records of its tasks of."""
    found = []
    for network in networks:
        hashes = {task.workload_hash for task in network.tasks}
        by_device: dict[str, dict[str, int]] = {}
        for place, group in enumerate(groups):
            if group.first.target == network.target and group.first.workload_hash in hashes:
                by_device.setdefault(group.first.device, {})[group.first.workload_hash] = place
        found += [_trace(network, device, places, groups) for device, places in by_device.items()]
    return found


def _trace(
    network: TunedNetwork, device: str, places: Mapping[str, int], groups: Sequence[RecordGroup]
) -> NetworkTrace:
    """Play the trials of all tasks again, in the order of their time stamps."""
    tuning: dict[str, TuningState] = {}
    for task in network.tasks:
        place = places.get(task.workload_hash)
        flop = 0.0 if place is None else groups[place].flop
        tuning.setdefault(task.workload_hash, TuningState(task.name, 0, flop))
    rows = [
        TaskRow(
            number,
            task.weight,
            tuning[task.workload_hash],
            TaskHistory(tuning[task.workload_hash].flop),
            task.instead_of is not None,
        )
        for number, task in enumerate(network.tasks)
    ]
    ways = ways_of([(task.workload_hash, task.instead_of) for task in network.tasks])
    state = SchedulerState(rows, 0, weighted_sum([task.weight for task in network.tasks], ways), ways)
    trials = sorted((r for place in places.values() for r in groups[place].trials), key=lambda r: r.timestamp)
    totals_s = []
    for record in trials:
        tuning[record.workload_hash].count(record, record.sketch == DEFAULT_SKETCH)
        totals_s.append(state.latency_s)
    for digest, place in places.items():
        tuning[digest].best = groups[place].best  # of the run-off
    elapsed_s = [record.timestamp - trials[0].timestamp for record in trials]
    return NetworkTrace(state, device, totals_s, elapsed_s, [places.get(t.workload_hash) for t in network.tasks])


def section(trace: NetworkTrace) -> Iterator[str]:
    """The part of a page about a network."""
    yield f"<h2>Network</h2><p>{as_text(trace.summary)}.</p>"
    yield table(HEADINGS, [_cells(trace, row) for row in trace.state.rows])
    known = [(n, t, s) for n, (t, s) in enumerate(zip(trace.elapsed_s, trace.totals_s, strict=True), 1)]
    known = [point for point in known if math.isfinite(point[2])]
    if not known:
        return
    by_trial = latency_chart("trial", [(float(n), s) for n, _, s in known], len(trace.totals_s))
    charts = [(by_trial, "after each trial, of whichever task; it begins when every task has a schedule")]
    if trace.elapsed_s[-1] > 0:
        by_time = latency_chart("seconds since the first trial", [(t, s) for _, t, s in known], trace.elapsed_s[-1])
        charts.append((by_time, "over time, pauses between runs included"))
    yield "<h3>Total latency</h3>"
    for drawn, what in charts:
        yield figure(drawn, f"Estimated latency of the whole {what}.")


def _cells(trace: NetworkTrace, row: TaskRow) -> list[str]:
    cells = [as_text(cell) for cell in trace.state.cells(row)]
    place = trace.places[row.number]
    name = HEADINGS.index("Task")
    if place is not None:
        cells[name] = f'<a href="#w{place}">{cells[name]}</a>'
    return cells


def latency_chart(x_label: str, points: Sequence[tuple[float, float]], end: float) -> Spec:
    """The total latency in ms, as steps."""
    least_s, most_s = min(s for _, s in points), max(s for _, s in points)
    top = 1e3 * min(most_s, 4 * least_s) * 1.08
    last = max(end, points[-1][0], 1e-3)
    rows = [
        {"x": x, "y": min(1e3 * total_s, top), "latency": duration(total_s)}
        for x, total_s in [*points, (last, points[-1][1])]
    ]
    mark = {"type": "line", "interpolate": "step-after", "color": "$best", "point": {"color": "$best", "size": 18}}
    x = field("x", x_label, scale={"domain": [0, last]})
    y = field("y", "ms", scale={"domain": [0, top]})
    return chart("Estimated total latency", [layer(rows, mark, x=x, y=y, tooltip=tips("latency"))])
