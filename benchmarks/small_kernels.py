"""Compare untuned kernels for several threads with those for one, on workloads that are too small to gain much.

A kernel for N cores takes as many threads as its work is worth, and must be no slower than the kernel for one. Both are
untuned, and run in turn, so that threads of the one do not spin beside the other; medians of rounds, each the mean of
runs for 2 ms, back to back. Ratios are the time of one thread over that of several: above 1 several are faster.
"""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from rounds import PAUSE_S, Timer, medians_in_turn
from tables import table_lines

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.llvm.device import device_name


def _elements(count: int) -> list[te.Tensor]:
    data = te.placeholder((count,), name="data")
    return [data, topi.nn.relu(data)]


def _product(size: int) -> list[te.Tensor]:
    a, b = te.placeholder((size, size), name="a"), te.placeholder((size, size), name="b")
    return [a, b, topi.matmul(a, b)]


def _dense(rows: int, width: int) -> list[te.Tensor]:
    data, weight = te.placeholder((rows, width), name="data"), te.placeholder((width, width), name="weight")
    return [data, weight, topi.nn.dense(data, weight)]


def _softmax(rows: int, width: int) -> list[te.Tensor]:
    data = te.placeholder((rows, width), name="data")
    return [data, topi.nn.softmax(data, -1)]


def _conv(channels: int, pixels: int) -> list[te.Tensor]:
    data = te.placeholder((1, channels, pixels, pixels), name="data")
    kernel = te.placeholder((channels, channels, 3, 3), name="kernel")
    return [data, kernel, topi.nn.conv2d_nchw(data, kernel, 1, 1)]


CASES: dict[str, Callable[[], list[te.Tensor]]] = {
    **{f"relu of {n}": partial(_elements, n) for n in (1 << 10, 1 << 13, 1 << 16, 1 << 19)},
    **{f"product of {n} cubed": partial(_product, n) for n in (16, 32, 64, 96, 128, 192)},
    **{f"dense {r}x{w}": partial(_dense, r, w) for r, w in ((1, 64), (1, 256), (4, 128), (1, 1024))},
    **{f"softmax {r}x{w}": partial(_softmax, r, w) for r, w in ((4, 100), (12, 128), (128, 128))},
    **{f"3x3 {c}x{p}x{p}": partial(_conv, c, p) for c, p in ((4, 8), (8, 14), (16, 14), (32, 28))},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[2])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--output", help="write the table to this file")
    options = parser.parse_args()
    heading = f"| workload | one thread, us |{''.join(f' {n} threads, us | ratio |' for n in options.threads)}"
    lines = [
        f"{datetime.date.today()}, {device_name()}, untuned, loopwright {lw.__version__}; "
        f"medians of {options.rounds} rounds.",
        "",
        *table_lines(heading, ()),
    ]
    ratios: dict[int, list[float]] = {threads: [] for threads in options.threads}
    for name, tensors in CASES.items():
        times_s = _times(tensors, options.threads, options.rounds)
        cells = [name, f"{times_s[1] * 1e6:.2f}"]
        for threads in options.threads:
            ratios[threads].append(times_s[1] / times_s[threads])
            cells += [f"{times_s[threads] * 1e6:.2f}", f"{ratios[threads][-1]:.2f}x"]
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    least = ", ".join(
        f"{n} threads {geometric_mean(found):.2f}x, {min(found):.2f}x at least" for n, found in ratios.items()
    )
    lines += ["", f"Geometric means: {least}.", ""]
    print(lines[-2])
    if options.output:
        Path(options.output).write_text("\n".join(lines))


def _times(tensors: Callable[[], list[te.Tensor]], threads: list[int], rounds: int) -> dict[int, float]:
    """Seconds of a run by the number of threads, one among them."""
    timers: dict[int, Timer] = {}
    for count in (1, *threads):
        task = lw.SearchTask(tensors, target=f"llvm cores={count}")
        timers[count] = partial(_mean, task.build(), task.reference.inputs)
    return medians_in_turn(timers, rounds, PAUSE_S)


def _mean(kernel: lw.Kernel, inputs: Sequence[Any]) -> float:
    return kernel.benchmark(*inputs, repeat=1, min_repeat_ms=2.0).min


if __name__ == "__main__":
    main()
