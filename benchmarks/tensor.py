"""Products and convolutions on matrix units beside PyTorch: untuned and after a search, both sides as CUDA graphs.

`python benchmarks/tensor.py [--trials 64] [--seconds 12] [--cases matmul conv_b1_]`: all cases, or those whose names
begin so; `--trials 0` measures untuned ones alone, which `--jobs` processes choose and compile beforehand. fp16 unless
a name says otherwise. Data are random; results are compared with PyTorch's, by norm. TF32 is that of
`torch.backends.cuda.matmul.allow_tf32`, int8 `torch._int_mm`; convolutions are cuDNN's with bias and ReLU in one
(`torch.cudnn_convolution_relu`), and beside that `conv2d` and `relu_`, "kernels apart". Few rows read a weight that is
in memory, another one each time; what fits the second-level cache stays there from one product of a graph to the next
elsewhere, on both sides.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from multiprocessing import get_context
from typing import Any

import numpy as np
from gpu import CALLS_A_GRAPH, graphed

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.cuda.device import build, load

ROUNDS = 9
LEAST_S = 0.004
"""Seconds that a round of one side takes at least, about."""
ROTATED_BYTES = 240 << 20
"""Bytes of the copies of a weight that products of few rows read in turn: four times the cache of an H200."""


@dataclass(frozen=True)
class Case:
    """A workload, by its tensors, and the peer's call on arrays that lie on the device.

    Where it is `cold`, its second input is another copy each time. `apart` is the call that users write where the
    peer's is one kernel that few of them know of.
    """

    name: str
    tensors: Callable[[], list[te.Tensor]]
    peer: Callable[[Any, Sequence[Any]], Callable[[], Any]]
    cold: bool = False
    apart: Callable[[Any, Sequence[Any]], Callable[[], Any]] | None = None


def matmul(m: int, n: int, k: int, dtype: str = "float16", transposed: bool = True) -> list[te.Tensor]:
    """A product in the type of its factors; sums of bytes stay in 32 bits."""
    a = te.placeholder((m, k), dtype, name="a")
    b = te.placeholder((n, k) if transposed else (k, n), dtype, name="b")
    sums = "int32" if dtype == "int8" else "float32"
    product = topi.nn.matmul(a, b, transpose_b=transposed, out_dtype=sums)
    return [a, b, product if dtype == "int8" else topi.cast(product, dtype)]


def matmul_tf32(m: int, n: int, k: int) -> list[te.Tensor]:
    """A product in single precision, of factors that are rounded to TF32."""
    a, b, steps = te.placeholder((m, k), name="a"), te.placeholder((n, k), name="b"), te.reduce_axis((0, k), name="k")
    return [
        a,
        b,
        te.compute(
            (m, n), lambda i, j: te.sum(te.round_to(a[i, steps]) * te.round_to(b[j, steps]), axis=steps), name="c"
        ),
    ]


def convolution(size: int, channels: int, filters: int, window: int, batch: int = 1) -> list[te.Tensor]:
    """NHWC with a bias for each filter, and ReLU, in fp16."""
    data = te.placeholder((batch, size, size, channels), "float16", name="data")
    kernel = te.placeholder((window, window, channels, filters), "float16", name="kernel")
    bias = te.placeholder((filters,), "float16", name="bias")
    conv = topi.nn.conv2d_nhwc(data, kernel, 1, window // 2, out_dtype="float32")
    return [data, kernel, bias, topi.cast(topi.nn.relu(conv + topi.cast(bias, "float32")), "float16")]


Call = Callable[[], Any]


def _nt(torch: Any, x: Sequence[Any]) -> Call:
    return lambda: torch.matmul(x[0], x[1].T)


def _tf32(torch: Any, x: Sequence[Any]) -> Call:
    torch.backends.cuda.matmul.allow_tf32 = True
    return _nt(torch, x)


def _bytes(torch: Any, x: Sequence[Any]) -> Call:
    b = x[1].T
    return lambda: torch._int_mm(x[0], b)


def _nn(torch: Any, x: Sequence[Any]) -> Call:
    return lambda: torch.matmul(x[0], x[1])


def _conv(torch: Any, x: Sequence[Any]) -> Call:
    """NCHW views of channels-last memory, which is what cuDNN takes NHWC as; weights are laid out so before."""
    data, kernel, bias = x
    weight = kernel.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    torch.backends.cudnn.benchmark = True
    padding = (kernel.shape[0] // 2,) * 2

    def call() -> Any:
        found = torch.cudnn_convolution_relu(data.permute(0, 3, 1, 2), weight, bias, (1, 1), padding, (1, 1), 1)
        return found.permute(0, 2, 3, 1)

    return call


def _conv_apart(torch: Any, x: Sequence[Any]) -> Call:
    data, kernel, bias = x
    weight = kernel.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)

    def call() -> Any:
        found = torch.conv2d(data.permute(0, 3, 1, 2), weight, bias, padding=kernel.shape[0] // 2)
        return torch.relu_(found).permute(0, 2, 3, 1)

    return call


SIZES = (1024, 2048, 4096, 8192)
CONVOLUTIONS = ((56, 64, 64, 3), (28, 128, 128, 3), (14, 256, 256, 3), (7, 512, 512, 3), (56, 128, 128, 1))
"""Pixels along a side, channels, filters and window, of ResNet-50."""


def _conv_case(size: int, channels: int, filters: int, window: int, batch: int) -> Case:
    name = f"conv_b{batch}_{size}{'_pointwise' * (window == 1)}"
    return Case(name, lambda: convolution(size, channels, filters, window, batch), _conv, apart=_conv_apart)


def _square(size: int, dtype: str) -> Case:
    name = f"matmul_{size}{'' if dtype == 'float16' else '_' + dtype}"
    return Case(name, lambda: matmul(size, size, size, dtype), _bytes if dtype == "int8" else _nt)


def _square_tf32(size: int) -> Case:
    return Case(f"matmul_{size}_tf32", lambda: matmul_tf32(size, size, size), _tf32)


CASES = (
    *(_square(size, dtype) for dtype in ("float16", "bfloat16", "int8") for size in SIZES),
    *map(_square_tf32, SIZES),
    Case("matmul_4096_nn", lambda: matmul(4096, 4096, 4096, transposed=False), _nn),
    Case("ragged", lambda: matmul(1000, 1512, 2056), _nt),
    *(Case(f"m{rows}", partial(matmul, rows, 4096, 4096), _nt, cold=True) for rows in (1, 16, 128)),
    *(_conv_case(*shape, batch) for batch in (1, 16, 128) for shape in CONVOLUTIONS),
)


def random_inputs(torch: Any, arguments: Sequence[Any]) -> list[Any]:
    """Arrays on the device, of normal numbers, or of all bytes."""
    found = []
    for each in arguments:
        if each.dtype == "int8":
            found.append(torch.randint(-128, 128, tuple(each.shape), device="cuda", dtype=torch.int8))
        else:
            found.append(torch.randn(tuple(each.shape), device="cuda").to(getattr(torch, each.dtype)))
    return found


@dataclass(frozen=True)
class Untuned:
    """A case's workload as text, the schedule that is chosen without a trial, and the kernel."""

    workload: str
    schedule: str
    artifact: bytes


def untuned(name: str) -> Untuned:
    """Choose and compile a case of the list; no device is needed."""
    (case,) = (each for each in CASES if each.name == name)
    return prepared(case)


def prepared(case: Case) -> Untuned:
    """Choose and compile; no device is needed."""
    task = lw.SearchTask(te.create_module(case.tensors()), target="cuda model=h200")
    return Untuned(str(task.module), task.default_schedule, build(str(task.module), task.default_schedule))


def searched(case: Case, trials: int, seconds: float) -> tuple[str, str]:
    """The best schedule of a search, and a note of how it went."""
    task, begun = lw.SearchTask(te.create_module(case.tensors()), target="cuda"), time.perf_counter()
    result = task.tune(lw.TuningOptions(num_measure_trials=trials, time_limit_s=seconds, progress=False))
    took = f"{result.state.done} trials in {time.perf_counter() - begun:.0f} s"
    return result.best.schedule, f"{took}, errors: {result.state.error_counts()}"


def measure(torch: Any, case: Case, first: Untuned, trials: int, seconds: float) -> str:
    """Time a case, ours and the peer in turn; a row of the table."""
    schedules, note = {"untuned": first.schedule}, ""
    if trials:
        schedules["tuned"], note = searched(case, trials, seconds)
    kernels = {
        name: load(first.artifact if schedule == first.schedule else build(first.workload, schedule))
        for name, schedule in schedules.items()
    }
    *arguments, result = kernels["untuned"].arguments
    inputs = random_inputs(torch, arguments)
    copies = -(-ROTATED_BYTES // inputs[1].nbytes) if case.cold else 1
    turns = [inputs, *([inputs[0], torch.clone(inputs[1]), *inputs[2:]] for _ in range(copies - 1))]
    calls = [case.peer(torch, each) for each in turns]
    right, around = calls[0]().float(), cycle(calls)
    peer = graphed(torch, lambda: next(around)())
    out = torch.empty_like(right, dtype=getattr(torch, result.dtype))
    places = [[x.data_ptr() for x in (*each, out)] for each in turns]
    errors, times, theirs = {}, {}, []
    for name, kernel in kernels.items():
        kernel.run_on(places[0], [])
        errors[name] = float((out.float() - right).norm() / right.norm())
        times[name] = []
    for _ in range(ROUNDS):
        theirs.append(peer())
        for name, kernel in kernels.items():
            times[name].append(_timed(kernel, places, theirs[0]))
    peer_s = statistics.median(theirs)
    ours = {name: statistics.median(found) for name, found in times.items()}
    best = min(ours.values())
    cells = [f"{ours[name] * 1e6:.1f}" if name in ours else "" for name in ("untuned", "tuned")]
    worst = max(errors.values())
    apart = ""
    if case.apart is not None:
        timed = graphed(torch, case.apart(torch, inputs))
        apart = f"{statistics.median(timed() for _ in range(3)) / best:.2f}x"
    ratio = f"{peer_s * 1e6:.1f} | {peer_s / best:.2f}x | {apart}"
    row = f"| {case.name} | {cells[0]} | {cells[1]} | {ratio} | {worst:.1e} |"
    units = ", ".join(f"{name} by {_unit(schedule)}" for name, schedule in schedules.items())
    return f"{row}\n<!-- {units}; {note} -->\n<!-- {schedules.get('tuned', schedules['untuned'])} -->"


def _timed(kernel: Any, places: Sequence[Sequence[int]], about_s: float) -> float:
    """Seconds of a run on each list of arrays in turn, by graphs of about as many calls as the peer's."""
    lists = [kernel.buffers_for(each) for each in places] * -(-CALLS_A_GRAPH // len(places))
    rounds = max(2, int(LEAST_S / (about_s * len(lists))))
    return float(kernel.runtime.time_in_turn(lists, rounds)) / rounds / len(lists)


def _unit(schedule: str) -> str:
    """The matrix instruction of a schedule, and whether boxes are copied in bulk."""
    found = re.search(r'intrinsic="([^"]*)"', schedule)
    return f"{found[1]}{' in bulk' * ('bulk=1' in schedule)}" if found else "lanes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=12.0, help="of a search")
    parser.add_argument("--cases", nargs="*", default=[""], help="beginnings of names")
    parser.add_argument("--jobs", type=int, default=1, help="processes that choose and compile")
    options = parser.parse_args()
    import torch

    np.random.seed(0)
    chosen = [case for case in CASES if case.name.startswith(tuple(options.cases))]
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        found = {case.name: pool.submit(untuned, case.name) for case in chosen}
    heads = ("untuned (us)", "tuned (us)", "PyTorch (us)", "PyTorch / ours", "kernels apart / ours", "error")
    print(f"| workload | {' | '.join(heads)} |\n|{'---|' * 7}")
    for case in chosen:
        try:
            print(measure(torch, case, found[case.name].result(), options.trials, options.seconds), flush=True)
        except Exception as error:
            print(f"| {case.name} | {type(error).__name__}: {str(error)[:300]} |", flush=True)


if __name__ == "__main__":
    main()
