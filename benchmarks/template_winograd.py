"""The templates of a 3x3 convolution on a CPU beside each other: direct, and by Winograd's transforms.

Each is tuned with the same trials on one thread; then the best of each are timed in turn, medians of rounds. Filters of
Winograd's come transformed, as constants of a network do; those of the direct ones are packed in each run where their
template packs them, as it does in networks. GFLOP/s count the arithmetic of the direct convolution.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import statistics
from pathlib import Path
from typing import Any

import llvmlite
import numpy as np

import loopwright as lw
from loopwright.backends.llvm.device import device_name

ROUNDS = 15
SHAPES = ((64, 56), (128, 28), (256, 14), (512, 7))
COLUMNS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "direct NCHW": ("conv2d_nchw", ()),
    "NCHWc": ("conv2d_nchwc", ()),
    "F(2x2) NCHW": ("conv2d_nchw_winograd", ("float32", 2, True)),
    "F(4x4) NCHW": ("conv2d_nchw_winograd", ("float32", 4, True)),
    "direct NHWC": ("conv2d_nhwc", ()),
    "F(2x2) NHWC": ("conv2d_nhwc_winograd", ("float32", 2, True)),
    "F(4x4) NHWC": ("conv2d_nhwc_winograd", ("float32", 4, True)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--columns", nargs="+", choices=COLUMNS, default=list(COLUMNS))
    parser.add_argument("--output", help="write the table to this file")
    options = parser.parse_args()
    lines = [
        f"# Winograd templates on {device_name()}",
        "",
        f"{datetime.date.today()}, one thread, fp32, batch 1, loopwright {lw.__version__}, llvmlite "
        f"{llvmlite.__version__}, NumPy {np.__version__}, Python {platform.python_version()}; {options.trials} trials "
        f"each, then the best of each in turn, medians of {ROUNDS} rounds (ms).",
        "",
        f"| convolution | {' | '.join(options.columns)} | best direct / best Winograd | GFLOP/s |",
        f"|{'---|' * (len(options.columns) + 3)}",
    ]
    for channels, extent in SHAPES:
        times = _times(channels, extent, options)
        direct = min(t for name, t in times.items() if not name.startswith("F("))
        winograd = min(t for name, t in times.items() if name.startswith("F("))
        speed = 18 * channels * channels * extent * extent / winograd / 1e9
        cells = " | ".join(f"{t * 1e3:.3f}" for t in times.values())
        lines.append(f"| {channels}x{extent}x{extent} | {cells} | {direct / winograd:.2f}x | {speed:.0f} |")
        print(lines[-1], flush=True)
        if options.output:
            Path(options.output).write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def _times(channels: int, extent: int, options: argparse.Namespace) -> dict[str, float]:
    """The median time of the best config of each template, in seconds."""
    kernels = []
    for name in options.columns:
        template, more = COLUMNS[name]
        args = (1, extent, extent, channels, channels, 3, 3, (1, 1), (1, 1), (1, 1), *more)
        task = lw.TemplateTask(template, args, "llvm cores=1")
        tuning = lw.TuningOptions(num_measure_trials=options.trials, seed=options.seed, progress=False)
        kernels.append(task.search_task.build(task.tune(tuning).best.schedule))
        task.forget_reference()
    rounds = [[kernel.benchmark(min_repeat_ms=5, repeat=1).median for kernel in kernels] for _ in range(ROUNDS)]
    return dict(zip(options.columns, map(statistics.median, zip(*rounds, strict=True)), strict=True))


if __name__ == "__main__":
    main()
