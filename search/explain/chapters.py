"""The parts of an explanation in words: steps, limits, counters, code, knobs, and assembly by lines of the source."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..records.record import duration
from ..report.knobs import KnobReport, KnobValue
from .block_limits import BlockLimits, Roof
from .instructions import SPILL, HotLoop
from .nsight import Profile
from .perf_events import Counters
from .sections import Section
from .step_times import StepTime, StepTimes, VariantTime

_NOISE = 0.05
"""Part of a time by which repeats of one kernel differ: less is no gain of a step."""
_MOST_KNOBS, _MOST_VALUES, _SHOWN_LINES = 12, 5, 24


def steps_section(times: StepTimes) -> Section:
    """The time after each step, and of the whole schedule without it."""
    if all(step.after.why and step.without.why for step in times.steps):
        rows = [[str(number), step.words] for number, step in enumerate(times.steps, 1)]
        return Section("Steps", "None of them was measured.", ("#", "step"), rows, frozenset({0}))
    whole_s = min(times.whole.times_s)
    rows = [
        [str(number), _time(step.after), *_without(step.without, whole_s), step.words]
        for number, step in enumerate(times.steps, 1)
    ]
    refused = [f"Without step {n}, {s.without.why}." for n, s in enumerate(times.steps, 1) if s.without.why and n > 1]
    failed: dict[str, list[str]] = {}
    for number, step in enumerate(times.steps, 1):
        if step.after.why:
            failed.setdefault(step.after.why, []).append(str(number))
    ended = [f"After step{'s' if len(n) > 1 else ''} {', '.join(n)}: {why}." for why, n in failed.items()]
    return Section(
        "Steps",
        "Time of the schedule that ends with the step, and of the whole schedule without it, also as a multiple of the "
        "whole one's time. Each was measured in this run, and its result checked. "
        f"Below {1 + _NOISE:.2f} is within the noise. " + _most_gained(times.steps, whole_s),
        ("#", "after", "without", "times", "step"),
        rows,
        frozenset({0, 1, 2, 3}),
        after=[*ended, *refused],
    )


def _most_gained(steps: Sequence[StepTime], whole_s: float) -> str:
    known = [
        (step.without.time_s / whole_s, n) for n, step in enumerate(steps, 1) if math.isfinite(step.without.time_s)
    ]
    gain, number = max(known, default=(0.0, 0))
    if gain < 1 + _NOISE:
        return "No step that can be left out alone makes a difference."
    return f"Of those that can be left out alone, step {number} gains most: {gain:.2f} times the time without it."


def _time(variant: VariantTime) -> str:
    return duration(variant.time_s) if math.isfinite(variant.time_s) else "-"


def _without(variant: VariantTime, whole_s: float) -> list[str]:
    if math.isfinite(variant.time_s):
        return [duration(variant.time_s), f"{variant.time_s / whole_s:.2f}"]
    return [f"step {variant.needed_by} needs it" if variant.needed_by else "-", ""]


def limits_section(blocks: Sequence[BlockLimits], roofs: Sequence[Roof], time_s: float) -> Section:
    """The least time of each block by resource, the one that binds, and the machine's roofs."""
    names = list(blocks[0].times_s) if blocks else []
    gpu = any(block.occupancy is not None for block in blocks)
    heads = ("block", *names, "binds", *(("occupancy", "waves") if gpu else ()))
    rows = [
        [block.block, *(duration(s) for s in block.times_s.values()), block.binding, *(_gpu(block) if gpu else ())]
        for block in blocks
    ]
    least_s = sum(block.longest_s for block in blocks)
    roof_words = "; ".join(f"{roof.name} {roof.rate:.4g} {roof.unit} ({roof.source})" for roof in roofs)
    return Section(
        "Limits of each block",
        "The least time by resource, by a model that counts arithmetic, loads and stores, and bytes into each level of "
        "the schedule's loops; the longest binds. Memory is what comes into the second-level cache, from whatever is "
        "behind it.",
        heads,
        rows,
        frozenset(range(1, 1 + len(names))),
        after=[
            f"What binds, summed over blocks: {duration(least_s)}, {least_s / time_s:.0%} of the measured time"
            f"{_above(least_s, time_s)}.",
            f"Roofs: {roof_words}.",
        ],
    )


def _above(least_s: float, time_s: float) -> str:
    if least_s <= time_s:
        return ""
    return " (above 100%, as blocks overlap, data stays in caches that the model does not know, or a roof is too low)"


def _gpu(block: BlockLimits) -> tuple[str, str]:
    return f"{block.occupancy or 0.0:.0%}", f"{block.waves:.3g}"


def counters_section(counters: Counters, profile: Profile | None) -> Section:
    """Hardware counters of a run, or why there are none."""
    if profile is not None:
        return _profile_section(profile)
    values = counters.values
    rows = [[name, f"{value:.4g}"] for name, value in values.items()]
    cycles, instructions = values.get("cycles", 0.0), values.get("instructions", 0.0)
    rows += [["instructions a cycle", f"{instructions / cycles:.2f}"]] if cycles and instructions else []
    loads, misses = values.get("L1 data loads", 0.0), values.get("L1 data load misses", 0.0)
    rows += [["L1 miss rate", f"{misses / loads:.1%}"]] if loads else []
    note = f"Of one run, all threads, in user mode (perf events). {counters.why}" if rows else f"None: {counters.why}."
    return Section("Hardware counters", note.strip(), rows=rows, numbers=frozenset({1}))


def _profile_section(profile: Profile) -> Section:
    if not profile.launches:
        return Section("Hardware counters", f"None: {profile.why}.")
    names = list(dict.fromkeys(name for launch in profile.launches for name in launch.values))
    rows = [[name, *(launch.values.get(name, "") for launch in profile.launches)] for name in names]
    heads = ("metric", *(launch.kernel for launch in profile.launches))
    note = "By Nsight Compute (ncu), of one run of each launch at its own clock."
    return Section("Hardware counters", note, heads, rows, frozenset(range(1, len(heads))))


def code_section(loop: HotLoop | None, launches: Sequence[Mapping[str, Any]]) -> Section:
    """Instructions of the hottest loop, registers and spills."""
    rows = [[name.replace("_", " "), *(str(each.get(name, "")) for each in launches)] for name in _names(launches)]
    if loop is None:
        note = "" if rows else "There is no assembly here that could be read."
        return Section("Code", note, rows=rows)
    counts = ", ".join(f"{n} {kind}" for kind, n in loop.counts.items())
    shares = f"{loop.fma_share:.0%} of the float arithmetic are fused multiply-adds"
    if loop.registers:
        shares += (
            f", {loop.vector_share:.0%} is on vectors; {loop.registers} vector registers are named; "
            f"{loop.counts.get(SPILL, 0)} spills"
        )
    note = f"The hottest loop has {len(loop.instructions)} instructions: {counts}. {shares}."
    return Section("Code", note, rows=rows)


def _names(launches: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for each in launches for name in each))


def listing_section(loop: HotLoop, source: str) -> Section:
    """The instructions of the hottest loop, each behind the line of the source that it is from."""
    lines, width = source.splitlines(), max(len(each.text) for each in loop.instructions)
    listing = []
    before = 0
    for each in loop.instructions:
        known = 0 < each.source_line <= len(lines) and each.source_line != before
        words = f"{each.source_line}: {lines[each.source_line - 1].strip()}" if known else ""
        listing.append(f"{each.text:<{min(width, 56)}}  {each.kind:<22}  {words}".rstrip())
        before = each.source_line
    title = f"{len(listing)} instructions"
    note = "Instruction, its kind, and the line of the kernel's source (`kernel.source`) where another one begins."
    return Section("The hottest loop", note, listing=listing, listing_title=title, shown=_SHOWN_LINES)


def knobs_section(knobs: Sequence[KnobReport]) -> Section:
    """The values of each knob by the speed of the best trial that had it."""
    rows = [
        [knob.name, f"{knob.importance:.0%}" if knob.importance else "-", *_values(knob)]
        for knob in knobs[:_MOST_KNOBS]
    ]
    return Section(
        "Knobs",
        "Values by the best trial that had each, as a share of the best speed, with the trials that had it. The share "
        "of a knob is how much a prediction of times needs it.",
        ("knob", "share", "good values", "others"),
        rows,
        frozenset({1}),
    )


def _values(knob: KnobReport) -> list[str]:
    good = [each for each in knob.values if each.value in knob.good]
    others = [each for each in knob.values if each.value not in knob.good]
    return [_listed(good), _listed(others)]


def _listed(values: Sequence[KnobValue]) -> str:
    shown = ", ".join(f"{each.value} {each.best:.0%} ({each.trials})" for each in values[:_MOST_VALUES])
    return shown + (f", {len(values) - _MOST_VALUES} more" if len(values) > _MOST_VALUES else "")
