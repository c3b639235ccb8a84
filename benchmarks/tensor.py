"""Products and convolutions on matrix units beside PyTorch: untuned and after a search, both sides as CUDA graphs.

`python benchmarks/tensor.py [--trials 64] [--seconds 12] [--cases matmul conv_b1_]`: all cases, or those whose names
begin so; `--trials 0` measures untuned ones alone. fp16 unless a name says otherwise. Data are random; results are
compared with PyTorch's, by norm. TF32 is that of `torch.backends.cuda.matmul.allow_tf32`, int8 `torch._int_mm`. What
fits the second-level cache stays there from one product of a graph to the next, on both sides.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gpu import graphed

import loopwright as lw
from loopwright import te, topi

ROUNDS = 9


@dataclass(frozen=True)
class Case:
    """A workload, by its tensors, and the peer's call on arrays that lie on the device."""

    name: str
    tensors: Callable[[], list[te.Tensor]]
    peer: Callable[[Any, Sequence[Any]], Callable[[], Any]]


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

    def call() -> Any:
        found = torch.conv2d(data.permute(0, 3, 1, 2), weight, bias, padding=kernel.shape[0] // 2)
        return torch.relu_(found).permute(0, 2, 3, 1)

    return call


SIZES = (1024, 2048, 4096, 8192)
CONVOLUTIONS = ((56, 64, 64, 3), (28, 128, 128, 3), (14, 256, 256, 3), (7, 512, 512, 3), (56, 128, 128, 1))
"""Pixels along a side, channels, filters and window, of ResNet-50."""


def _conv_case(size: int, channels: int, filters: int, window: int, batch: int) -> Case:
    name = f"conv_b{batch}_{size}{'_pointwise' * (window == 1)}"
    return Case(name, lambda: convolution(size, channels, filters, window, batch), _conv)


def _square(size: int, dtype: str) -> Case:
    name = f"matmul_{size}{'' if dtype == 'float16' else '_' + dtype}"
    return Case(name, lambda: matmul(size, size, size, dtype), _bytes if dtype == "int8" else _nt)


CASES = (
    *(_square(size, "float16") for size in SIZES),
    *(_square(size, "bfloat16") for size in SIZES[1:]),
    *(_square(size, "int8") for size in SIZES[1:]),
    Case("matmul_4096_nn", lambda: matmul(4096, 4096, 4096, transposed=False), _nn),
    Case("matmul_4096_tf32", lambda: matmul_tf32(4096, 4096, 4096), _tf32),
    Case("ragged", lambda: matmul(1000, 1512, 2056), _nt),
    Case("m1", lambda: matmul(1, 4096, 4096), _nt),
    Case("m16", lambda: matmul(16, 4096, 4096), _nt),
    Case("m128", lambda: matmul(128, 4096, 4096), _nt),
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


def measure(torch: Any, case: Case, trials: int, seconds: float) -> str:
    """Time a case, ours and the peer in turn; a row of the table."""
    task = lw.SearchTask(te.create_module(case.tensors()), target="cuda")
    begun = time.perf_counter()
    schedules = {"untuned": task.default_schedule}
    note = ""
    if trials:
        options = lw.TuningOptions(num_measure_trials=trials, time_limit_s=seconds, progress=False)
        result = task.tune(options)
        schedules["tuned"] = result.best.schedule
        note = (
            f"{result.state.done} trials in {time.perf_counter() - begun:.0f} s, errors: {result.state.error_counts()}"
        )
    kernels = {}
    for name, schedule in schedules.items():
        applied = lw.Schedule(task.module)
        applied.apply(schedule)
        kernels[name] = lw.build(applied)
    *arguments, result = kernels["untuned"].arguments
    inputs = random_inputs(torch, arguments)
    call = case.peer(torch, inputs)
    right = call().float()
    peer = graphed(torch, call)
    errors, times, theirs = {}, {}, []
    for name, kernel in kernels.items():
        out = torch.empty_like(right, dtype=getattr(torch, result.dtype))
        kernel(*inputs, out)
        torch.cuda.synchronize()
        errors[name] = float((out.float() - right).norm() / right.norm())
        times[name] = []
    for _ in range(3):
        theirs += [peer() for _ in range(ROUNDS)]
        for name, kernel in kernels.items():
            times[name].append(kernel.benchmark(*inputs, repeat=3, min_repeat_ms=5, graph=True).median)
    peer_s = statistics.median(theirs)
    ours = {name: statistics.median(found) for name, found in times.items()}
    best = min(ours.values())
    cells = [f"{ours[name] * 1e6:.1f}" if name in ours else "" for name in ("untuned", "tuned")]
    worst = max(errors.values())
    row = f"| {case.name} | {cells[0]} | {cells[1]} | {peer_s * 1e6:.1f} | {peer_s / best:.2f}x | {worst:.1e} |"
    units = ", ".join(f"{name} by {_unit(schedule)}" for name, schedule in schedules.items())
    return f"{row}\n<!-- {units}; {note} -->\n<!-- {schedules.get('tuned', schedules['untuned'])} -->"


def _unit(schedule: str) -> str:
    """The matrix instruction of a schedule, and whether boxes are copied in bulk."""
    found = re.search(r'intrinsic="([^"]*)"', schedule)
    return f"{found[1]}{' in bulk' * ('bulk=1' in schedule)}" if found else "lanes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=12.0, help="of a search")
    parser.add_argument("--cases", nargs="*", default=[""], help="beginnings of names")
    options = parser.parse_args()
    import torch

    np.random.seed(0)
    print("| workload | untuned (us) | tuned (us) | PyTorch (us) | PyTorch / ours | error |\n|---|---|---|---|---|---|")
    for case in CASES:
        if not case.name.startswith(tuple(options.cases)):
            continue
        try:
            print(measure(torch, case, options.trials, options.seconds), flush=True)
        except Exception as error:
            print(f"| {case.name} | {type(error).__name__}: {str(error)[:300]} |", flush=True)


if __name__ == "__main__":
    main()
