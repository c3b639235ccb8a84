"""Parts of a report as the output of a notebook's cell, with charts as pictures."""

from __future__ import annotations

import base64

from ...dialects.markup import as_text, notebook, table
from ..tune.state import SchedulerState
from ..tune.table import HEADINGS
from .charts import curve_chart
from .group import RecordGroup
from .page import best_schedule, figures
from .vega import ANYWHERE, MissingCharts, Spec, picture


def search_output(line: str, group: RecordGroup | None = None) -> str:
    """A search in a line, with the figures, the curve and the best schedule of its records, if there are any."""
    parts = [f"<p>{as_text(line)}</p>"]
    if group is not None:
        parts += [figures(group, group.limits), drawing(curve_chart(group)), *best_schedule(group)]
    return notebook("".join(parts))


def task_table(state: SchedulerState) -> str:
    """The table of a network's tasks, as a part of a cell's output."""
    return table(HEADINGS, [list(map(as_text, state.cells(row))) for row in state.rows])


def drawing(spec: Spec) -> str:
    """A chart as an image that needs no script; a sentence where the library that draws is not installed."""
    try:
        svg = picture(spec, ANYWHERE)
    except MissingCharts as error:
        return f'<p class="soft">{as_text(str(error))}.</p>'
    data = base64.b64encode(svg.encode()).decode()
    return (
        f'<img src="data:image/svg+xml;base64,{data}" alt="{as_text(spec["description"])}" '
        'style="max-width:100%;height:auto">'
    )
