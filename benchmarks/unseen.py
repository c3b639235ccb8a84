"""Tune operators that no rule was written for, and compare with how they come: a table of times and ratios.

Three schedules of each operator are timed in turn in one process: *naive*, the lowering without any rule (on a CPU no
schedule step at all: one thread, what LLVM makes of plain loops; on a GPU one thread for each result, nothing shared,
as no step at all would be a single thread); *untuned*, the default schedule of a build; and the *best* after
`--trials` trials. "of naive" and "of untuned" say how many times as fast the best is.
"""

from __future__ import annotations

import argparse
import datetime
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from tables import table_lines

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.loop import blocks_in
from loopwright.dialects.target import Target
from loopwright.passes.schedule.bind import Bind
from loopwright.passes.schedule.fuse import Fuse
from loopwright.passes.schedule.split import Split
from loopwright.search.measure.measurer import Measurement, Measurer
from loopwright.search.tune.loop import TaskTuner

Tensors = list[te.Tensor]


def _in(name: str, *shape: int) -> te.Tensor:
    return te.placeholder(shape, name=name)


def winograd(small: bool) -> Tensors:
    """3x3 convolution by Winograd's transforms F(4x4, 3x3), NCHW."""
    c, size = (8, 12) if small else (64, 56)
    data, kernel = _in("data", 1, c, size, size), _in("kernel", c, c, 3, 3)
    return [data, kernel, topi.nn.conv2d_winograd_nchw(data, kernel, 1, 4)]


def conv3d(small: bool) -> Tensors:
    """3x3x3 convolution, NCDHW, padded."""
    (ci, co), (d, size) = ((4, 8), (4, 9)) if small else ((32, 64), (8, 28))
    data, kernel = _in("data", 1, ci, d, size, size), _in("kernel", co, ci, 3, 3, 3)
    return [data, kernel, topi.nn.conv3d_ncdhw(data, kernel, 1, 1)]


def conv2d_transpose(small: bool) -> Tensors:
    """4x4 transposed convolution with stride 2 (a generator's), NCHW."""
    (ci, co), size = ((8, 8), 6) if small else ((256, 128), 16)
    data, kernel = _in("data", 1, ci, size, size), _in("kernel", ci, co, 4, 4)
    return [data, kernel, topi.nn.conv2d_transpose_nchw(data, kernel, 2, 1)]


def batch_matmul(small: bool) -> Tensors:
    """12 products of 128 x 64 and 64 x 128."""
    b, n, k = (3, 20, 16) if small else (12, 128, 64)
    left, right = _in("A", b, n, k), _in("B", b, n, k)
    return [left, right, topi.batch_matmul(left, right, transpose_b=True)]


def stencil(small: bool) -> Tensors:
    """Edges of an image: a 5x5 blur, then the length of the gradient."""
    n = 40 if small else 1024
    image, weight = _in("image", n + 6, n + 6), _in("weight", 5, 5)
    a, b = te.reduce_axis((0, 5), "a"), te.reduce_axis((0, 5), "b")
    blur = te.compute((n + 2, n + 2), lambda i, j: te.sum(image[i + a, j + b] * weight[a, b], axis=[a, b]), name="blur")

    def length(i: te.Expr, j: te.Expr) -> te.Expr:
        across = blur[i + 1, j + 2] - blur[i + 1, j]
        down = blur[i + 2, j + 1] - blur[i, j + 1]
        return te.sqrt(across * across + down * down)

    return [image, weight, te.compute((n, n), length, name="edges")]


def layer_norm(small: bool) -> Tensors:
    """Layer normalisation of the rows of 4096 x 1024."""
    m, n = (20, 70) if small else (4096, 1024)
    data, gamma, beta = _in("data", m, n), _in("gamma", n), _in("beta", n)
    return [data, gamma, beta, topi.nn.layer_norm(data, gamma, beta)]


def attention(small: bool) -> Tensors:
    """softmax(Q K' / sqrt(d)) V of 12 heads of 256 positions, as one DAG."""
    h, n, d = (2, 18, 16) if small else (12, 256, 64)
    q, k, v = (_in(name, h, n, d) for name in "qkv")
    scores = topi.nn.softmax(topi.multiply(topi.batch_matmul(q, k, transpose_b=True), d**-0.5), -1)
    return [q, k, v, topi.batch_matmul(scores, v)]


CASES: dict[str, Callable[[bool], Tensors]] = {
    f.__name__: f for f in (winograd, conv3d, conv2d_transpose, batch_matmul, stencil, layer_norm, attention)
}


class OneThreadAResult(lw.SketchRule):
    """The naive kernels on a GPU: each result of each stage by a thread of its own."""

    order: ClassVar[int] = 0

    def apply(self, draft: lw.Draft, target: Target) -> list[lw.Draft]:
        for block in list(blocks_in(draft.module)):
            name = block.block_name
            written = {n for e in block.write_indices[0] for n in e.axes()}
            loops = tuple(x.loop_name for x in block.enclosing_loops if x.loop_name in written)
            if len(loops) > 1:
                draft.do(Fuse, block=name, loops=loops)
            if loops:
                draft.do(Split, block=name, loop="_".join(loops), factors=(0, min(128, target.max_threads_per_block)))
                draft.do(Bind, block=name, loop="_".join(loops) + "0", thread="blockIdx.x")
                draft.do(Bind, block=name, loop="_".join(loops) + "1", thread="threadIdx.x")
        return [draft]


@dataclass(frozen=True)
class Row:
    """One line of the table: three timings, in seconds, and how the search went."""

    name: str
    flops: int
    naive_s: float
    default_s: float
    best_s: float
    trials: int
    errors: str
    tuning_s: float


def main() -> None:
    options = _options()
    rows: list[Row] = []
    for name in options.cases or CASES:
        row = compare(name, options)
        rows.append(row)
        print(_line(row), flush=True)
        if options.output:
            Path(options.output).write_text(_table(rows, options))
    print(_table(rows, options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--trials", type=int, default=32)
    parser.add_argument("--limit-s", type=float, default=60.0, help="seconds of tuning a case, at most")
    parser.add_argument("--cases", nargs="+", choices=CASES)
    parser.add_argument("--small", action="store_true", help="small extents, for slow devices")
    parser.add_argument("--builders", type=int, help="processes that compile (default: one a core)")
    parser.add_argument("--records", help="folder of record files, one a case, to go on from")
    parser.add_argument("--output", help="write the table to this file")
    return parser.parse_args()


def compare(name: str, options: argparse.Namespace) -> Row:
    """Tune one case and time the three schedules."""
    task = lw.SearchTask(lambda: CASES[name](options.small), target=options.target)
    naive = lw.SearchTask(
        lambda: CASES[name](options.small), target=task.target, rules=[OneThreadAResult] if task.target.is_gpu else []
    )
    records = None
    if options.records:
        Path(options.records).mkdir(parents=True, exist_ok=True)
        records = Path(options.records) / f"{name}.jsonl"
    tuning = lw.TuningOptions(
        num_measure_trials=options.trials, time_limit_s=options.limit_s, records=records, progress=False
    )
    measure = replace(task.measure_options(), builders=options.builders)
    start = time.perf_counter()
    with Measurer(measure) as measurer:
        described = task.tuning_task()
        result = TaskTuner(described, tuning, measurer).run()
        tuning_s = time.perf_counter() - start
        measurer.use(described.measured())
        schedules = [naive.default_schedule, task.default_schedule, result.best.schedule]
        found = measurer.measure(schedules, fresh=True, laps=3)
    return Row(
        name, task.flops, *map(_seconds, found), result.state.done, result.state.error_counts() or "none", tuning_s
    )


def _seconds(found: Measurement) -> float:
    if not found.ok:
        print(f"failed: {found.error.value}: {found.message[:500]}\n  {found.schedule[:500]}")
    return min(found.times_s) if found.ok else float("nan")


def _line(row: Row) -> str:
    return (
        f"| {row.name} | {row.naive_s * 1e6:.1f} | {row.default_s * 1e6:.1f} | {row.best_s * 1e6:.1f} "
        f"| {row.naive_s / row.best_s:.1f}x | {row.default_s / row.best_s:.2f}x | {row.flops / row.best_s / 1e9:.1f} "
        f"| {row.trials} | {row.errors} | {row.tuning_s:.0f} |"
    )


def _table(rows: Sequence[Row], options: argparse.Namespace) -> str:
    target = lw.SearchTask(lambda: CASES["batch_matmul"](True), target=options.target).target
    heading = (
        "| operator | naive (us) | untuned (us) | best (us) | of naive | of untuned | best GFLOP/s | trials "
        "| failed trials | tuning (s) |"
    )
    size = ", small extents" if options.small else ""
    lines = [
        "# Operators that no rule was written for",
        "",
        f"{datetime.date.today()}, target `{target}`{size}, loopwright {lw.__version__}.",
        "",
        "Naive: the lowering without any rule (CPU: plain loops on one thread; GPU: one thread for each result).",
        "Untuned: the default schedule of a build. All three timed in turn, the shortest of the repeats.",
        "",
        *table_lines(heading, map(_line, rows)),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
