"""Seconds of the CPU that choosing an untuned schedule takes, by kind of operator, with no device.

    python benchmarks/choosing.py --target "cuda model=h200" --seed 3 --keep now.jsonl --beside before.jsonl

Cases are those of `operator_cases.py` and `later_cases.py`, and those drawn of a seed. Each is chosen `--times` times
anew in one process, which has chosen one before, and the least counts, of all the process's threads. `--keep` writes
what was chosen, and `--beside` says which choices differ from those that another version kept. `--structures` says of
how many cases each structure of a sketch is one, and of how many it is chosen.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from drawn_cases import drawn
from later_cases import LATER
from operator_cases import CASES, Case
from tables import table_lines

import loopwright as lw

STRUCTURES = re.compile(
    "split|sliced|runs|large|col2im|im2col|winograd|dots|rows|parts|lanes|plain|root|inner|direct|ahead|padded|taps|once"
    "|apart|phases|blocks|tensor|wgmma|mma|bulk|attention|clustered"
)
"""Words of sketches' names that say a structure; the others are axes, blocks and types."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="cuda model=h200")
    parser.add_argument("--seed", type=int, default=3, help="of the cases that are drawn")
    parser.add_argument("--every", type=int, default=1, help="take one case of so many")
    parser.add_argument("--first", type=int, default=0, help="the first case that is taken")
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="a file for the choices, a line of JSON each")
    parser.add_argument("--beside", type=Path, help="such a file, of another version")
    parser.add_argument("--structures", action="store_true")
    options = parser.parse_args()
    cases = [*CASES, *LATER, *drawn(options.seed)]
    _chosen(cases[0], options.target, 1)
    found = [_chosen(case, options.target, options.times) for case in cases[options.first :: options.every]]
    if options.keep:
        options.keep.write_text("".join(json.dumps(each) + "\n" for each in found))
    if options.beside:
        _compare(found, [json.loads(line) for line in options.beside.read_text().splitlines()])
    if options.structures:
        print(*structures(found), "", sep="\n")
    print("| kind | cases | median (ms) | most (ms) | case |\n|---|---|---|---|---|")
    by_kind = defaultdict(list)
    for each in found:
        by_kind[each["kind"]].append(each)
    for kind, own in sorted(by_kind.items(), key=lambda pair: -_worst(pair[1])["cpu_s"]):
        print(f"| {kind} {_row(own)}")
    print(f"| all {_row(found)}")


def _row(found: Sequence[dict[str, Any]]) -> str:
    """The cells of some cases: how many, median, most, and the case of that."""
    worst = _worst(found)
    median_s = statistics.median(each["cpu_s"] for each in found)
    return f"| {len(found)} | {1e3 * median_s:.0f} | {1e3 * worst['cpu_s']:.0f} | {worst['case']} |"


def _worst(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return max(found, key=lambda each: float(each["cpu_s"]))


def _chosen(case: Case, target: str, times: int) -> dict[str, Any]:
    """The schedule that is chosen for a case, and the least seconds that it took."""
    least_s = float("inf")
    for _ in range(times):
        start_s = time.process_time()
        task = lw.SearchTask(case.operator.tensors, target=target)
        schedule = task.default_schedule
        least_s = min(least_s, time.process_time() - start_s)
    names = [sketch.name for sketch in task.sketches]
    chosen = names[task.default_candidate[0]]
    own = {"case": case.name, "kind": case.kind, "cpu_s": least_s, "schedule": schedule}
    return {**own, "sketch": chosen, "sketches": names}


def structures(found: Sequence[dict[str, Any]]) -> list[str]:
    """A table of structures: of how many cases each is one, and of how many it is chosen."""
    there, chosen = Counter[str](), Counter[str]()
    for each in found:
        there.update({structure_of(name) for name in each["sketches"]})
        chosen[structure_of(each["sketch"])] += 1
    rows = [f"| {name} | {count} | {chosen[name]} |" for name, count in there.most_common()]
    return table_lines("| structure | cases | chosen |", rows)


def structure_of(sketch: str) -> str:
    """The words of a sketch's name that say its structure; `tiles` for none."""
    return " ".join(word for word in sketch.split("_") if STRUCTURES.fullmatch(word)) or "tiles"


def _compare(found: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]]) -> None:
    """Say which choices differ, and how long both took."""
    known = {each["case"]: each for each in others}
    both = [(each, known[each["case"]]) for each in found if each["case"] in known]
    differ = [each["case"] for each, other in both if each["schedule"] != other["schedule"]]
    own_s, other_s = (sum(pair[side]["cpu_s"] for pair in both) for side in (0, 1))
    print(f"{len(both)} cases, {len(differ)} chosen otherwise {differ}; {other_s:.2f} s there, {own_s:.2f} here\n")


if __name__ == "__main__":
    main()
