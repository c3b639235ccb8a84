"""Time calls of kernels a millisecond apart while other processes have the cores, which who calls this starts.

`--helpers one` is a thread alone, `own` two threads of our own, `openmp` two of PyTorch's OpenMP runtime, which is
loaded then. Milliseconds of calls: their median, their mean and the 99th percentile.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.llvm.device import device_name

APART_S = 0.001


def convolution() -> list[te.Tensor]:
    data, kernel = te.placeholder((1, 64, 56, 56), name="data"), te.placeholder((64, 64, 3, 3), name="kernel")
    return [data, kernel, topi.nn.conv2d_nchw(data, kernel, 1, 1, 1)]


def rows() -> list[te.Tensor]:
    data = te.placeholder((512, 1024), name="data")
    return [data, topi.nn.softmax(data)]


CASES: dict[str, Callable[[], list[te.Tensor]]] = {
    "convolution 64x56x56 to 64, 3x3": convolution,
    "softmax 512x1024": rows,
}


def milliseconds(make: Callable[[], list[te.Tensor]], target: str, seconds: float) -> np.ndarray[tuple[int], np.dtype]:
    task = lw.SearchTask(make(), target=target)
    kernel = lw.build(task.schedule_module(task.default_schedule))
    rng = np.random.default_rng(0)
    arrays = [rng.random(t.shape, np.float32) for t in make()]
    kernel(*arrays)
    found, end = list[float](), time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        kernel(*arrays)
        found.append(1e3 * (time.perf_counter() - start))
        time.sleep(APART_S)
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--helpers", choices=("one", "own", "openmp"), default="openmp")
    parser.add_argument("--seconds", type=float, default=8.0, help="for each case (default 8)")
    options = parser.parse_args()
    if options.helpers == "openmp":
        import torch

        torch.set_num_threads(2)
    target = f"llvm cores={1 if options.helpers == 'one' else 2}"
    print(f"{device_name()}, helpers: {options.helpers}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name, make in CASES.items():
        found = milliseconds(make, target, options.seconds)
        times = f"{np.median(found):.2f} / {found.mean():.2f} / {np.percentile(found, 99):.1f}"
        print(f"| {name} | {times} | {len(found)} calls |", flush=True)


if __name__ == "__main__":
    main()
