"""The gain of asking for cache lines ahead: good schedules with and without `prefetch`, timed in one run.

For each case the default schedule is timed as it is and with one step `prefetch` more, for each buffer, loop and
distance that the primitive takes. The table has the best of those, timed again in turn with the schedule without it.
"""

from __future__ import annotations

import argparse
import datetime
from pathlib import Path

from cases import CASES

import loopwright as lw
from loopwright.backends.targets import resolve_target
from loopwright.passes.pipeline_text import schedule_text
from loopwright.passes.schedule.prefetch import Prefetch
from loopwright.search.measure.measurer import Measurer

DISTANCES = (1, 2, 4, 8, 16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--cases", nargs="+", default=[c.name for c in CASES], choices=[c.name for c in CASES])
    parser.add_argument("--output", help="write the table to this file")
    options = parser.parse_args()
    lines = [
        "# Prefetches in good schedules",
        "",
        f"{datetime.date.today()}, target `{resolve_target(options.target)}`, loopwright {lw.__version__}. The default "
        "schedules; shortest of eight laps.",
        "",
        "| case | as it is (us) | with the best prefetch (us) | gain | step | tried |",
        "|---|---|---|---|---|---|",
    ]
    for case in CASES:
        if case.name in options.cases:
            lines.append(_compare(lw.SearchTask(case.tensors, target=options.target), case.name))
            print(lines[-1], flush=True)
            if options.output:
                Path(options.output).write_text("\n".join(lines) + "\n")


def _compare(task: lw.SearchTask, name: str) -> str:
    plain = task.default_schedule
    schedule = lw.Schedule(task.module, target=task.target)
    schedule.apply(plain)
    steps = {
        Prefetch(s.block, s.buffer, s.loop, distance)
        for s in Prefetch.schedule_space(None, schedule.module)  # type: ignore[arg-type]
        for distance in DISTANCES
    }
    texts = {f"{plain},{schedule_text([step])}": step for step in sorted(steps, key=str)}
    with Measurer(task.measure_options()) as measurer:
        described = task.tuning_task()
        measurer.use(described.measured())
        found = measurer.measure([plain, *texts], fresh=True, laps=2)
        best = min((f for f in found[1:] if f.ok), key=lambda f: min(f.times_s))
        again = measurer.measure([plain, best.schedule], fresh=True, laps=8)
    base_s, best_s = (min(f.times_s) for f in again)
    cells = (
        f"{base_s * 1e6:.1f} | {best_s * 1e6:.1f} | {base_s / best_s:.2f}x | `{texts[best.schedule]}` | {len(texts)}"
    )
    return f"| {name} | {cells} |"


if __name__ == "__main__":
    main()
