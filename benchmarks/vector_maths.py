"""Compare mathematical functions on a CPU with PyTorch's and NumPy's: nanoseconds an element, units in the last place.

One thread, float32, on arrays that fit the second-level cache, written to arrays that are there already; PyTorch's are
those of SLEEF or MKL, NumPy's its own and SVML's. All sides work on the same arrays in turn, and the median of rounds
is taken, by the clock of the CPU; ours are run back to back without Python in between, where a call of a peer is a
microsecond or two of some ten. Errors are of `--every`-th float of all, against double precision, results that are
normal numbers alone: the largest, in units in the last place. Ratios are the faster peer's time over ours.
"""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rounds import calls_by_clock, clock_of_a_thread, medians_in_turn, runs_by_clock
from tables import table_lines

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.arrays import aligned_copy, aligned_empty
from loopwright.backends.llvm.device import device_name

LEAST_S = 2e-3
"""Seconds of a measurement."""


@dataclass(frozen=True)
class Function:
    """A function: ours of a tensor, PyTorch's by its name, NumPy's where it has one, and where it is timed."""

    ours: Callable[[te.Tensor], te.Tensor]
    torch: str
    numpy: str = ""
    low: float = -4.0
    high: float = 4.0


FUNCTIONS = {
    "exp": Function(topi.exp, "exp", "exp", -20.0, 20.0),
    "log": Function(topi.log, "log", "log", 1e-3, 1e3),
    "tanh": Function(topi.tanh, "tanh", "tanh"),
    "erf": Function(topi.erf, "erf"),
    "sigmoid": Function(topi.sigmoid, "sigmoid"),
    "sin": Function(topi.sin, "sin", "sin"),
    "cos": Function(topi.cos, "cos", "cos"),
}


def main() -> None:
    options = _options()
    import torch

    torch.set_num_threads(1)
    clock = clock_of_a_thread()
    heading = (
        "| function | ours, ns | PyTorch, ns | NumPy, ns | faster peer / ours | ours, ulp | PyTorch, ulp | NumPy, ulp |"
    )
    lines = [
        f"{datetime.date.today()}, {device_name()}, one thread, {options.elements} elements, "
        f"PyTorch {torch.__version__}, NumPy {np.__version__}, loopwright {lw.__version__}; "
        f"medians of {options.rounds} rounds.",
        "",
        *table_lines(heading, ()),
    ]
    for name in options.functions:
        function = FUNCTIONS[name]
        seconds, errors = _seconds(function, options, torch, clock), _errors(function, options, torch)
        lines.append(_line(name, {side: each_s / options.elements for side, each_s in seconds.items()}, errors))
        print(lines[-1], flush=True)
    if options.output:
        Path(options.output).write_text("\n".join([*lines, ""]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", nargs="+", choices=list(FUNCTIONS), default=list(FUNCTIONS))
    parser.add_argument("--elements", type=int, default=1 << 16)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--every", type=int, default=2011, help="which floats errors are taken of")
    parser.add_argument("--target", default="llvm cores=1")
    parser.add_argument("--output", help="write the table to this file")
    return parser.parse_args()


def _kernel(function: Function, elements: int, target: str) -> Any:
    """The untuned kernel."""
    data = te.placeholder((elements,), name="data")
    return lw.SearchTask(te.create_module([data, function.ours(data)]), target=target).build()


def _seconds(
    function: Function, options: argparse.Namespace, torch: Any, clock: Callable[[], float]
) -> dict[str, float]:
    """Seconds of a call of each side."""
    rng = np.random.default_rng(0)
    data = aligned_copy(rng.uniform(function.low, function.high, options.elements).astype(np.float32))
    out = aligned_empty(data.shape, data.dtype)
    kernel = _kernel(function, options.elements, options.target)
    theirs, into = torch.from_numpy(data), torch.from_numpy(out)
    peer = getattr(torch, function.torch)
    timers = {
        "ours": runs_by_clock(partial(kernel._executable.time, [data, out]), clock, LEAST_S),
        "PyTorch": calls_by_clock(lambda: peer(theirs, out=into), clock, LEAST_S),
    }
    if function.numpy:
        timers["NumPy"] = calls_by_clock(partial(getattr(np, function.numpy), data, out=out), clock, LEAST_S)
    with torch.inference_mode():
        return medians_in_turn(timers, options.rounds)


def _errors(function: Function, options: argparse.Namespace, torch: Any) -> dict[str, float]:
    """The largest error of each side, in units in the last place."""
    values = np.arange(0, 1 << 32, options.every, dtype=np.uint32).view(np.float32)
    if function.numpy in ("sin", "cos"):
        values = values[np.abs(values) < 1 << 20]  # beyond, ours are NaN
    values = np.resize(values[np.isfinite(values)], values.size // 64 * 64)
    given = torch.from_numpy(values)
    exact = getattr(torch, function.torch)(given.double()).numpy()
    with np.errstate(all="ignore"):
        results = {"ours": _kernel(function, values.size, options.target)(values)}
        results["PyTorch"] = getattr(torch, function.torch)(given).numpy()
        if function.numpy:
            results["NumPy"] = getattr(np, function.numpy)(values)
        normal = np.isfinite(exact.astype(np.float32)) & (np.abs(exact) >= np.finfo(np.float32).tiny)
        unit = np.spacing(np.abs(exact[normal]).astype(np.float32)).astype(np.float64)
        return {side: float((np.abs(got[normal] - exact[normal]) / unit).max()) for side, got in results.items()}


def _line(name: str, seconds: dict[str, float], errors: dict[str, float]) -> str:
    sides = ("ours", "PyTorch", "NumPy")
    times = [f"{seconds[side] * 1e9:.3f}" if side in seconds else "" for side in sides]
    ulps = [f"{errors[side]:.2f}" if side in errors else "" for side in sides]
    peer_s = min(seconds[side] for side in seconds if side != "ours")
    ratio = f"{peer_s / seconds['ours']:.2f}x"
    return f"| {' | '.join([name, *times, ratio, *ulps])} |"


if __name__ == "__main__":
    main()
