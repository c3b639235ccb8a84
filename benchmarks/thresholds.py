"""Print what a number in the search's rules is worth: default schedules with other values of it, as ratios of times.

For each value, how many of the workloads get another default schedule by it, and the time of those over the time that
they take now: the geometric mean, and the extremes. Schedules run in alternating rounds, by processor time, so that
other work on the machine counts little; workloads are operators of models (`operator_cases.py`) and others drawn at
random (`sampled_workloads.py`). A number that changes no schedule is no threshold of these workloads:

    python benchmarks/thresholds.py rules.row_reduction:WIDEST_HELD=4,16 rules.few_rows:LEAST_TERMS=2,8

`--cores` is of the target that schedules are for; with more than one, clocks are on the wall. `--only` names workloads
by a part of their names, `--dry` times nothing.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from operator_cases import CASES
from rounds import in_turn
from sampled_workloads import sampled

import loopwright as lw
from loopwright.te import Tensor

SEED, DRAWN = 11, 40
"""Of the workloads drawn at random."""
MOST_FLOPS = 3e9
"""Of a workload: some 50 ms on a core."""
ROUNDS = 9


@dataclass(frozen=True)
class Trial:
    """Another value of a number that the module `owner` of the search defines."""

    owner: str
    name: str
    value: object

    def __str__(self) -> str:
        return f"{self.owner}:{self.name} = {self.value}"


@dataclass(frozen=True)
class Change:
    """A workload that another value gives another default schedule, and both."""

    workload: str
    before: str
    after: str


def workloads(only: str) -> dict[str, Callable[[], list[Tensor]]]:
    """Workloads by name, but for those that take long."""
    found: dict[str, Callable[[], list[Tensor]]] = {case.name: case.operator.tensors for case in CASES}
    found |= {f"{one.kind} {one.args}": one.tensors for one in sampled(SEED, DRAWN)}
    return {name: make for name, make in found.items() if only in name}


def trials_of(text: str) -> Iterator[Trial]:
    """The values that an argument names: `rules.row_reduction:WIDEST_HELD=4,16`."""
    number, values = text.split("=")
    owner, name = number.split(":")
    for value in values.split(","):
        yield Trial(f"loopwright.search.{owner}", name, ast.literal_eval(value))


@contextmanager
def instead(trial: Trial) -> Iterator[None]:
    """Put another value in place of a number, in its module and in those that import it by name."""
    kept = getattr(importlib.import_module(trial.owner), trial.name)
    users = [m for n, m in sys.modules.items() if n == trial.owner or _imports(n, trial)]
    for module in users:
        setattr(module, trial.name, trial.value)
    try:
        yield
    finally:
        for module in users:
            setattr(module, trial.name, kept)


def _imports(name: str, trial: Trial) -> bool:
    """True of a module that imports the number from its owner."""
    path = getattr(sys.modules[name], "__file__", None)
    if not name.startswith("loopwright.search.") or path is None or not hasattr(sys.modules[name], trial.name):
        return False
    last = trial.owner.rsplit(".", 1)[1]
    nodes = ast.walk(ast.parse(Path(path).read_text()))
    found = (node for node in nodes if isinstance(node, ast.ImportFrom) and (node.module or "").endswith(last))
    return any(alias.name == trial.name for node in found for alias in node.names)


def schedule_of(make: Callable[[], list[Tensor]], target: str) -> str:
    """The default schedule of a workload, a refusal's text where there is none."""
    try:
        return str(lw.SearchTask(make, target=target).default_schedule)
    except ValueError as error:
        return repr(error)


class Table:
    """Times of schedules, each pair measured once."""

    def __init__(self, target: str, cores: int) -> None:
        self._target = target
        self._clock = time.process_time if cores == 1 else time.perf_counter
        self._known: dict[Change, float] = {}

    def ratio(self, change: Change, make: Callable[[], list[Tensor]]) -> float:
        """The time with the other value over the time now."""
        if change not in self._known:
            task = lw.SearchTask(make, target=self._target)
            arrays = list(task.reference.inputs)
            kernels = {one: task.build(one) for one in (change.before, change.after)}
            calls = {one: (lambda kernel=kernel: kernel(*arrays)) for one, kernel in kernels.items()}
            found = in_turn(calls, ROUNDS, self._clock)
            self._known[change] = found[change.after] / found[change.before]
        return self._known[change]


def print_row(trial: Trial, changes: Sequence[Change], ratios: Sequence[float], count: int) -> None:
    """Print what a value changes."""
    line = f"{trial}: changes {len(changes)} of {count} workloads"
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        line += f", which take {mean:.2f} of the time ({min(ratios):.2f} to {max(ratios):.2f})"
    print(line.replace("loopwright.search.", ""), flush=True)
    for change, ratio in zip(changes, ratios, strict=False):
        print(f"    {ratio:.2f}  {change.workload}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="+", help="module:NAME=value,value, the module below `search`")
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--every", type=int, default=1, help="take every n-th workload (default 1)")
    parser.add_argument("--dry", action="store_true", help="count schedules that change, and time none")
    options = parser.parse_args()
    target = f"llvm cores={options.cores}"
    made = workloads(options.only)
    made = {n: m for n, m in made.items() if lw.SearchTask(m, target=target).flops <= MOST_FLOPS}
    made = dict(list(made.items())[:: options.every])
    now = {name: schedule_of(make, target) for name, make in made.items()}
    table = Table(target, options.cores)
    for trial in (one for number in options.numbers for one in trials_of(number)):
        with instead(trial):
            then = {name: schedule_of(make, target) for name, make in made.items()}
        changes = [Change(name, now[name], then[name]) for name in made if then[name] != now[name]]
        ratios = [] if options.dry else [table.ratio(change, made[change.workload]) for change in changes]
        print_row(trial, changes, ratios, len(made))


if __name__ == "__main__":
    main()
