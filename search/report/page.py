"""A report: one HTML page about all records given, with charts inline and nothing loaded from elsewhere."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from ...dialects.markup import as_text, cut, facts, folded, table
from ...passes.primitive import ScheduleError
from ..features.catalogue import PRIOR, catalogue
from ..measure.limits import Limits, why_unknown
from ..measure.measurer import headline
from ..records.file import Record, Role
from ..records.record import duration
from ..tune.progress import counted
from .charts import curve_chart, prediction_chart, roofline_chart
from .document import document
from .group import RecordGroup, repeats
from .importance import FEWEST, Importance, decision_importance, feature_importance
from .knobs import KnobReport, knobs_of
from .network import NetworkTrace, section
from .pace import pace_of
from .steps import Step, steps_of
from .vega import figure, scripts

FindLimits = Callable[[RecordGroup], Limits | None]

_MOST_BARS = 14
"""Of a chart: more do not fit a screen's height."""
_FEATURES = {feature.name: f"{feature.text}, {feature.unit}" for feature in (*catalogue(), PRIOR)}
"""The meaning of each feature of the cost model, and its unit."""
_NO_OPERATIONS = "operations of a run are not known"
_WITHOUT_IR = (
    '<p class="soft">The workload\'s IR is not at hand, so what the steps change is not shown; '
    "<code>loopwright report --workload-file FILE.mlir</code> takes it.</p>"
)


def page(
    all_groups: Sequence[RecordGroup], title: str, find_limits: FindLimits, networks: Sequence[NetworkTrace] = ()
) -> str:
    """The page as text."""
    body = "".join(_body(all_groups, title, find_limits, networks))
    return document(title, body, scripts())


def _body(
    all_groups: Sequence[RecordGroup], title: str, find_limits: FindLimits, networks: Sequence[NetworkTrace]
) -> Iterator[str]:
    records = [r for group in all_groups for r in group.records]
    yield f"<h1>{as_text(title)}</h1>"
    if not records:
        yield "<p>There are no records.</p>"
        return
    workloads = counted(len(all_groups), "workload")
    yield f'<p class="soft">{len(records)} measurements of {workloads}, {_when(records)}.</p>'
    pace = pace_of(r for group in all_groups for r in group.trials)
    if pace is not None:
        yield f'<p class="soft">{as_text(str(pace))}.</p>'
    for trace in networks:
        yield from section(trace)
    if len(all_groups) > 1:
        yield _overview(all_groups)
    for number, group in enumerate(all_groups):
        yield from _section(group, number, find_limits)
    versions = {f"{name} {version}" for r in records for name, version in r.versions.items() if name[:3] != "lw-"}
    yield f'<h2>Made with</h2><p class="soft">{as_text(", ".join(sorted(versions)) or "versions not recorded")}</p>'


def _when(records: Sequence[Record]) -> str:
    stamps = [r.timestamp for r in records if r.timestamp]
    if not stamps:
        return "at a time not recorded"
    first, last = (time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(t)) for t in (min(stamps), max(stamps)))
    return f"made from {first} to {last}"


def _overview(all_groups: Sequence[RecordGroup]) -> str:
    rows = []
    for number, group in enumerate(all_groups):
        best = group.best
        speedup = best.times_as_fast(group.untuned) if best is not None and group.untuned is not None else None
        rows.append(
            [
                f'<a href="#w{number}">{as_text(group.name)}</a> <span class="soft">{as_text(group.arguments)}</span>',
                as_text(_device(group)),
                f"{len(group.right)} of {len(group.trials)}",
                "-" if best is None else as_text(group.speed(best.time_s)),
                "-" if speedup is None else f"{speedup:.2f}",
            ]
        )
    return "<h2>Workloads</h2>" + table(
        ("workload", "device", "valid trials", "best", "times as fast as untuned"), rows
    )


def _device(group: RecordGroup) -> str:
    return group.first.device or "a device not recorded"


def _section(group: RecordGroup, number: int, find_limits: FindLimits) -> Iterator[str]:
    yield f'<h2 id="w{number}">{as_text(group.name)} <span class="soft">{as_text(group.arguments)}</span></h2>'
    limits = find_limits(group)
    yield figures(group, limits)
    if group.task is not None:
        yield f"<h3>What is computed</h3><pre>{as_text(str(group.task.compute_dag))}</pre>"
    yield (
        "<h3>Tuning curve</h3>"
        + figure(
            curve_chart(group),
            "Each trial is a point, the line is the best so far. Hover over a point, or touch it, for its figures."
            + _after_run_off(group),
        )
    )
    yield from _model(group)
    yield from _roofline(group, limits)
    yield from best_schedule(group, _WITHOUT_IR)
    yield _errors(group)
    yield from _what_mattered(group)


def _roofline(group: RecordGroup, limits: Limits | None) -> Iterator[str]:
    """Say how far the best is below the device's limit, or why that cannot be said."""
    if group.best is None:
        return
    yield "<h3>Roofline</h3>"
    chart = roofline_chart(group, limits) if limits is not None else None
    if limits is None:
        yield f'<p class="soft">{as_text(why_unknown(group.first.target))}</p>'
    elif chart is None:
        known = "workload's IR is not at hand"
        if group.task is not None:
            known = f"peak of {group.dtype or 'several element types'} is not known" if group.flop else _NO_OPERATIONS
        yield f'<p class="soft">The {known}, so its place under the roofline is not shown.</p>'
    else:
        intensity = group.flop / group.moved_bytes
        yield (
            figure(
                chart,
                f"What the device allows at {intensity:.3g} operations for each byte of inputs and outputs "
                f"({as_text(limits.source)}). Data that stays in caches may lie above the slope.",
            )
        )


def _after_run_off(group: RecordGroup) -> str:
    """The reason why the figure above is not the end of the line."""
    if group.best is None or group.best.role is not Role.WINNER:
        return ""
    return (
        " At the end the best few were timed again in turn, as one trial may have had a lucky moment: the winner of "
        f"that run-off reached {as_text(group.speed(group.best.time_s))}."
    )


def figures(group: RecordGroup, limits: Limits | None) -> str:
    """The table of what came of the trials of a workload."""
    best, untuned = group.best, group.untuned
    rows: list[tuple[str, str]] = [("device", _device(group)), ("target", group.first.target)]
    if best is None:
        rows.append(("best", "no trial was right"))
    else:
        rows.append(("best", ", ".join(filter(None, (group.speed(best.time_s), repeats(best))))))
        share = None if limits is None else group.share(best, limits)
        if share is not None:
            rows.append(("of the limit", str(share)))
        if untuned is not None:
            times = best.times_as_fast(untuned)
            found = ", ".join(filter(None, (group.speed(untuned.time_s), repeats(untuned))))
            rows.append(("untuned", f"{found}; tuning made it {times:.2f} times as fast"))
    right, trials = len(group.right), len(group.trials)
    errors = ", ".join(f"{n} {code}" for code, n in group.errors.items())
    rows.append(
        ("trials", f"{trials}, of which {right} were right ({right / trials:.0%}){'; ' + errors if errors else ''}")
    )
    building, running = sum(r.build_s for r in group.records), sum(r.run_s for r in group.records)
    rows.append(("spent", f"{building:.1f} s of building (in parallel), {running:.1f} s of running and checking"))
    if (pace := pace_of(group.trials)) is not None and pace.near_s is not None:
        near = counted(pace.near_trials or 0, "trial")
        rows.append(("within 5% of the best", f"after {near}, {duration(pace.near_s)}"))
    return facts(rows)


def _model(group: RecordGroup) -> Iterator[str]:
    chart = prediction_chart(group)
    judged = [(r.number, q) for r in group.rounds if (q := r.quality) is not None]
    if chart is None and not judged:
        return
    yield "<h3>Cost model</h3>"
    if chart is not None:
        yield (
            figure(
                chart,
                "Candidates that the model had not seen, each by its place among those of its round. The better the "
                "model is, the closer the points lie to a rising line.",
            )
        )
    if judged:
        mean = statistics.fmean(q.rank_correlation for _, q in judged)
        rows = [[str(n), str(q.samples), f"{q.rank_correlation:.2f}", f"{q.recall:.0%} of {q.k}"] for n, q in judged]
        ranking = table(("round", "candidates", "rank correlation", "of the best, named by the model"), rows)
        yield folded(f"Ranking by round: correlation {mean:.2f} on average", ranking)


def best_schedule(group: RecordGroup, without_ir: str = "") -> Iterator[str]:
    """The best schedule, its steps in words, and the resources of its launches; nothing where no trial was right.

    `without_ir` is HTML that says why no IR is shown, if there is none.
    """
    best = group.best
    if best is None:
        return
    yield "<h3>Best schedule, step by step</h3>"
    where = f"Sketch {best.sketch}" + (f", decisions {list(best.decisions)}" if best.decisions else "")
    config = best.template.get("config") if best.template else None
    if config:
        where = f"Template {best.template.get('name', '')}: " + ", ".join(f"{k} = {v}" for k, v in config.items())
    module = group.task.module if group.task is not None else None
    hint = " A step with a + shows what it changes in the IR." if module is not None else ""
    yield f'<p class="soft">{as_text(where)}.{hint}</p>'
    try:
        steps, ir = steps_of(best.schedule, module)
    except (ValueError, ScheduleError) as error:
        yield f'<p class="bad">It cannot be replayed: {as_text(headline(str(error)))}</p>'
        return
    yield f'<ol class="steps">{"".join(_step(step) for step in steps)}</ol>'
    if module is None:
        yield without_ir
    if ir:
        yield folded("The IR after all steps", f"<pre>{as_text(cut(ir))}</pre>")
    yield folded("As text, for xdsl-opt -p", f"<pre>{as_text(best.schedule)}</pre>")
    if best.resources:
        yield _resources(best)


def _step(step: Step) -> str:
    code = f" <code>{as_text(step.code)}</code>" if step.code else ""
    line = f"{as_text(step.words)}{code}"
    if not step.changes:
        return f"<li>{line}</li>"
    return f"<li><details><summary>{line}</summary><pre>{''.join(map(_changed, step.changes))}</pre></details></li>"


def _changed(line: str) -> str:
    style = {"+": "add", "-": "cut", "!": "bad", "@": "soft"}.get(line[:1])
    return f'<span class="{style}">{as_text(line)}</span>\n' if style else f"{as_text(line)}\n"


def _resources(best: Record) -> str:
    names = list(best.resources[0])
    rows = [[as_text(str(each.get(name, ""))) for name in names] for each in best.resources]
    return "<h3>What its launches take</h3>" + table([as_text(n.replace("_", " ")) for n in names], rows)


def _errors(group: RecordGroup) -> str:
    if not group.errors:
        return "<h3>Errors</h3><p>None.</p>"
    rows = []
    for code, count in group.errors.items():
        first = next(r for r in group.trials if r.error.value == code)
        whole = folded(headline(first.message)[:300], f"<pre>{as_text(first.message)}</pre>")
        rows.append([f'<span class="bad">{code}</span>', str(count), whole])
    return "<h3>Errors</h3>" + table(("code", "trials", "the first one"), rows)


def _what_mattered(group: RecordGroup) -> Iterator[str]:
    sketch, decisions = decision_importance(group)
    features = feature_importance(group)
    yield "<h3>What mattered</h3>"
    if not decisions and not features:
        yield f'<p class="soft">Too few valid trials of one sketch to tell ({FEWEST} are needed).</p>'
        return
    if decisions:
        whose = f"Decisions of sketch {as_text(sketch)}"
        yield f'<p class="soft">{whose}, by how much a prediction of times needs them:</p>'
        yield _bars(decisions)
        yield from _good_values(knobs_of(group))
    if features:
        yield '<p class="soft">Features of the cost model: what they say is told below each name.</p>'
        yield _bars(features, _FEATURES)
    elif group.task is None:
        yield '<p class="soft">Features of the cost model are not shown: the workload\'s IR is not at hand.</p>'


def _good_values(knobs: Sequence[KnobReport]) -> Iterator[str]:
    """The values of each knob, the good ones first."""
    rows = []
    for knob in knobs[:_MOST_BARS]:
        good = set(knob.good)
        shown = [
            f'<span class="{"good" if each.value in good else "soft"}">{as_text(each.value)}</span>'
            f'<span class="soft"> {each.best:.0%}&nbsp;({each.trials})</span>'
            for each in knob.values[:_MOST_BARS]
        ]
        rows.append([as_text(knob.name), " &ensp;".join(shown)])
    if rows:
        yield (
            '<p class="soft">Values that were tried, by the best trial that had each as a share of the best speed (and '
            "how many trials had it); those within 5% of the best are marked:</p>"
        )
        yield table(("knob", "values"), rows)


def _bars(importance: Importance, words: Mapping[str, str] = MappingProxyType({})) -> str:
    rows = "".join(
        f'<tr><td>{as_text(name)}{_explained(words.get(name, ""))}</td><td class="number">{share:.0%}</td>'
        f'<td><span class="bar" style="width:{100 * share / importance[0][1]:.1f}%"></span></td></tr>'
        for name, share in importance[:_MOST_BARS]
    )
    return f'<table class="bars">{rows}</table>'


def _explained(words: str) -> str:
    return f'<br><span class="soft">{as_text(words)}</span>' if words else ""
