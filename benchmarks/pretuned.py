"""Pre-tuned records that ship, beside what is chosen without them: each kernel alone, and networks with and without.

    python benchmarks/pretuned.py --target cuda --networks resnet-18 resnet-50 mobilenet --each

A kernel is timed by its record's schedule and by the untuned one, in turn, warm, as a replayed graph. A network is
compiled with the records, without them, and, with `--each`, with one at a time: a kernel that is faster alone may keep
a faster way, such as Winograd's transforms, from being taken. Microseconds, medians of rounds in turn; what a network
gains by one record is of the least of the rounds.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from rounds import medians_in_turn, times_in_turn

import loopwright as lw
from loopwright.backends.targets import resolve_target
from loopwright.dialects.target import Target
from loopwright.search.records import pretuned
from loopwright.search.records.file import Record, load
from loopwright.search.records.index import History
from loopwright.search.records.match import same_model

AT_LEAST_MS = 12.0
"""Of a timing."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="cuda", help="a device that is here")
    parser.add_argument("--records", type=Path, help="a file of records in the place of those that ship")
    parser.add_argument("--networks", nargs="+", default=["resnet-18", "resnet-50", "mobilenet"])
    parser.add_argument("--each", action="store_true", help="also networks with one record at a time")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    target = resolve_target(options.target)
    known = load(options.records) if options.records else pretuned.index().records
    records = [record for record in known if same_model(record.target, target)]
    for name in options.networks:
        net = lw.testing.network(name, batch=1, layout="NHWC")
        tasks, calls = lw.extract_tasks(net, target)
        number = {task.compute_dag.hash: each for task, each in zip(tasks, calls, strict=True)}
        own = [record for record in records if record.workload_hash in number]
        print(f"\n{name}: {len(own)} records of {len(tasks)} kernels\n", flush=True)
        print("| kernel | calls | sketch | record | untuned | untuned / record |\n|---|---|---|---|---|---|")
        for record in own:
            task = next(task for task in tasks if task.compute_dag.hash == record.workload_hash)
            _print_kernel(task, record, number[record.workload_hash], options.rounds)
        compiled = partial(_timer, net, target)
        timers = {"with": compiled(own), "without": compiled([])}
        print({name: round(1e6 * value, 1) for name, value in medians_in_turn(timers, options.rounds).items()})
        for record in own if options.each else ():
            found = times_in_turn({"one": compiled([record]), "none": timers["without"]}, options.rounds)
            gain_s = min(found["none"]) - min(found["one"])
            print(f"{record.workload_key[:90]}: the network gains {1e6 * gain_s:.2f}", flush=True)


def _print_kernel(task: lw.SearchTask, record: Record, calls: int, rounds: int) -> None:
    inputs = task.reference.inputs
    kernels = {"record": task.build(record.schedule), "untuned": task.build(task.default_schedule)}
    found = medians_in_turn({name: _kernel_timer(kernel, inputs) for name, kernel in kernels.items()}, rounds)
    task.forget_reference()
    cells = [record.workload_key[:90], str(calls), record.sketch, *(f"{1e6 * found[name]:.2f}" for name in kernels)]
    print(f"| {' | '.join(cells)} | {found['untuned'] / found['record']:.2f} |", flush=True)


def _kernel_timer(kernel: Any, inputs: Iterable[Any]) -> Callable[[], float]:
    given = list(inputs)
    return lambda: float(kernel.benchmark(*given, repeat=1, min_repeat_ms=AT_LEAST_MS, graph=True).median)


def _timer(net: lw.Network, target: Target, records: Iterable[Record]) -> Callable[[], float]:
    """A timer of a network that is compiled with these records as the pre-tuned ones."""
    history = History(records)
    with patch.object(pretuned, "index", lambda: history):
        executor = lw.compile(net, target).executor()
    seeds = itertools.count()
    feeds = {n: np.random.default_rng(next(seeds)).standard_normal(v.shape) for n, v in net.inputs.items()}
    executor.set_input(**{n: feeds[n].astype(v.dtype) for n, v in net.inputs.items()})
    executor.run()
    return lambda: float(executor.benchmark(repeat=1, min_repeat_ms=AT_LEAST_MS).median)


if __name__ == "__main__":
    main()
