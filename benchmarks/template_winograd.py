"""3x3 convolutions directly and by Winograd's transforms, by templates and by sketches, beside each other.

A layer of ResNet-18 is a network of one convolution with a bias and an activation, whose kernels are those that
`lw.compile` makes: filters of Winograd's come transformed, constants packed where the search packs them. Each way is
tuned with the same trials by each search, and every trial is checked; then the best of each are run once more, checked,
and timed in turn, medians of rounds. GFLOP/s count the arithmetic of the direct convolution. `--compile-only` compiles
the untuned kernels for a target whose device is not here, and times nothing.
"""

from __future__ import annotations

import argparse
import datetime
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rounds import medians_in_turn

import loopwright as lw
from loopwright.backends.targets import resolve_target
from loopwright.dialects.target import Target
from loopwright.graph.passes.winograd import TILE_SIZES
from loopwright.search.measure.backend_api import backend_path, load_backend

ROUNDS = 15
EXTENTS = {64: 56, 128: 28, 256: 14, 512: 7}
SEARCHES = {"template": lw.extract_template_tasks, "sketches": lw.extract_tasks}
WAYS = ("direct", *(f"F({size}x{size})" for size in TILE_SIZES))


def main() -> None:
    options = _options()
    target = resolve_target(options.target)
    if options.compile_only:
        for channels in options.channels:
            _compile(channels, target, options)
        return
    columns = [f"{search} {way}" for search in options.searches for way in WAYS]
    head = [*columns, "best direct / best Winograd", "GFLOP/s"]
    lines = [*_title(target, options), f"| convolution | {' | '.join(head)} |", f"|{'---|' * (len(head) + 1)}"]
    output = Path(options.output or f"winograd-{target.kind}.md")
    for channels in options.channels:
        times_s = _times(channels, target, options)
        direct_s = min(t for name, t in times_s.items() if name.endswith("direct"))
        winograd_s = min(t for name, t in times_s.items() if not name.endswith("direct"))
        speed = 18 * channels**2 * EXTENTS[channels] ** 2 * options.batch / winograd_s / 1e9
        cells = " | ".join(f"{times_s[name] * 1e3:.4f}" for name in columns)
        shape = f"{channels}x{EXTENTS[channels]}x{EXTENTS[channels]}"
        lines.append(f"| {shape} | {cells} | {direct_s / winograd_s:.2f}x | {speed:.0f} |")
        print(lines[-1], flush=True)
        output.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="llvm cores=1", help="'llvm cores=1', cuda, opencl")
    parser.add_argument("--channels", type=int, nargs="+", choices=EXTENTS, help="layers (default: all; 3 on a GPU)")
    parser.add_argument("--searches", nargs="+", choices=SEARCHES, default=list(SEARCHES))
    parser.add_argument("--layout", choices=["NCHW", "NHWC"], default="NHWC")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--trials", type=int, default=32, help="of each way by each search")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compile-only", action="store_true", help="compile the untuned kernels; run nothing")
    parser.add_argument("--output", help="write the table to this file (default: winograd-<kind of target>.md)")
    options = parser.parse_args()
    if options.channels is None:
        options.channels = list(EXTENTS) if options.target.startswith("llvm") else [64, 256, 512]
    return options


def _title(target: Target, options: argparse.Namespace) -> list[str]:
    name = load_backend(backend_path(target.kind)).device_name()
    threads = f", {target.cores} thread(s)" if target.kind == "llvm" else ""
    return [
        f"# Winograd's convolutions on {name}",
        "",
        f"{datetime.date.today()}{threads}, fp32, {options.layout}, batch {options.batch}, loopwright "
        f"{lw.__version__}, NumPy {np.__version__}, Python {platform.python_version()}; {options.trials} trials each, "
        f"then the best of each in turn, medians of {ROUNDS} rounds (ms).",
        "",
    ]


def _layer(channels: int, options: argparse.Namespace) -> lw.Network:
    """A convolution of ResNet-18 with its bias and activation."""
    extent, last = EXTENTS[channels], options.layout == "NHWC"
    rng = np.random.default_rng(options.seed)
    maps = (extent, extent, channels) if last else (channels, extent, extent)
    window = (3, 3, channels, channels) if last else (channels, channels, 3, 3)
    net = lw.Network(f"conv{channels}")
    weight = net.constant(rng.standard_normal(window, dtype=np.float32) / (3 * channels**0.5), "weight")
    bias = net.constant(rng.standard_normal((channels,) if last else (channels, 1, 1), dtype=np.float32), "bias")
    conv = net.conv2d(net.input("data", (options.batch, *maps)), weight, padding=1, layout=options.layout)
    net.output(net.relu(conv + bias))
    return net


def _tasks(channels: int, target: Target, options: argparse.Namespace) -> dict[str, Any]:
    """The tasks of a layer, by search and way."""
    net, found = _layer(channels, options), {}
    for search in options.searches:
        tasks: Sequence[Any] = SEARCHES[search](net, target, winograd=True)[0]
        found |= {f"{search} {way}": task for way, task in zip(WAYS, tasks, strict=True)}
    return found


def _times(channels: int, target: Target, options: argparse.Namespace) -> dict[str, float]:
    """The median time of the best schedule of each search and way, in seconds."""
    kernels = {}
    for name, task in _tasks(channels, target, options).items():
        tuning = lw.TuningOptions(num_measure_trials=options.trials, seed=options.seed, progress=False)
        result = task.tune(tuning)
        print(
            f"{channels} {name}: {result.best.time_s * 1e3:.4f} ms, errors: {result.state.error_counts()}", flush=True
        )
        kernels[name] = lw.SearchTask(task.module, target=target).build(result.best.schedule, check=True)
        task.forget_reference()
    replayed = {"graph": True} if target.kind == "cuda" else {}
    timers = {
        name: lambda kernel=kernel: kernel.benchmark(min_repeat_ms=5, repeat=1, **replayed).median
        for name, kernel in kernels.items()
    }
    return medians_in_turn(timers, ROUNDS)


def _compile(channels: int, target: Target, options: argparse.Namespace) -> None:
    """Compile what is untuned; loading it, which takes the device, is left out."""
    backend = load_backend(backend_path(target.kind))
    for name, task in _tasks(channels, target, options).items():
        schedule = task.schedule(0) if isinstance(task, lw.TemplateTask) else task.default_schedule
        artifact = backend.build(str(task.module), schedule)
        print(f"{channels} {name}: {len(artifact):,} bytes", flush=True)


if __name__ == "__main__":
    main()
