"""Products and convolutions on matrix units beside PyTorch: untuned and after a search, both sides as CUDA graphs.

`python benchmarks/tensor.py [--trials 64] [--seconds 12] [--cases matmul_1024 conv_56]`. Data are random; results are
compared with PyTorch's, by norm.
"""

from __future__ import annotations

import argparse
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
    is_tuned: bool = True


def matmul(m: int, n: int, k: int, dtype: str = "float16", transposed: bool = True) -> list[te.Tensor]:
    a = te.placeholder((m, k), dtype, name="a")
    b = te.placeholder((n, k) if transposed else (k, n), dtype, name="b")
    return [a, b, topi.cast(topi.nn.matmul(a, b, transpose_b=transposed, out_dtype="float32"), dtype)]


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


CASES = (
    Case("matmul_1024", lambda: matmul(1024, 1024, 1024), _nt),
    Case("matmul_2048", lambda: matmul(2048, 2048, 2048), _nt),
    Case("matmul_4096", lambda: matmul(4096, 4096, 4096), _nt),
    Case("m16", lambda: matmul(16, 4096, 4096), _nt),
    Case("m128", lambda: matmul(128, 4096, 4096), _nt),
    Case("conv_56", lambda: convolution(56, 64, 64, 3), _conv),
    Case("conv_28", lambda: convolution(28, 128, 128, 3), _conv),
    Case("conv_14", lambda: convolution(14, 256, 256, 3), _conv),
    Case("conv_7", lambda: convolution(7, 512, 512, 3), _conv),
    Case("pointwise_56", lambda: convolution(56, 128, 128, 1), _conv),
    Case("ragged", lambda: matmul(1000, 1512, 2056), _nt),
    Case("m1", lambda: matmul(1, 4096, 4096), _nt),
    Case("matmul_4096_nn", lambda: matmul(4096, 4096, 4096, transposed=False), _nn, False),
    Case("matmul_4096_bf16", lambda: matmul(4096, 4096, 4096, "bfloat16"), _nt, False),
    Case("matmul_8192", lambda: matmul(8192, 8192, 8192), _nt, False),
)


def measure(torch: Any, case: Case, trials: int, seconds: float) -> str:
    """Time a case, ours and the peer in turn; a row of the table."""
    task = lw.SearchTask(te.create_module(case.tensors()), target="cuda")
    sketches = task.sketches
    begun = time.perf_counter()
    schedules = {"untuned": task.default_schedule}
    note = ""
    if trials and case.is_tuned:
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
    dtype = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    inputs = [torch.randn(tuple(a.shape), device="cuda").to(dtype[a.dtype]) for a in kernels["untuned"].arguments[:-1]]
    call = case.peer(torch, inputs)
    right = call().float()
    peer = graphed(torch, call)
    errors, times, theirs = {}, {}, []
    for name, kernel in kernels.items():
        out = torch.empty_like(right, dtype=inputs[0].dtype)
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
    return f"{row}\n<!-- {sketches[0].name}; {note} -->\n<!-- {schedules.get('tuned', schedules['untuned'])} -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=12.0, help="of a search")
    parser.add_argument("--cases", nargs="*", default=[case.name for case in CASES])
    options = parser.parse_args()
    import torch

    np.random.seed(0)
    print("| workload | untuned (us) | tuned (us) | PyTorch (us) | PyTorch / ours | error |\n|---|---|---|---|---|---|")
    for case in CASES:
        if case.name not in options.cases:
            continue
        try:
            print(measure(torch, case, options.trials, options.seconds), flush=True)
        except Exception as error:
            print(f"| {case.name} | {type(error).__name__}: {str(error)[:300]} |", flush=True)


if __name__ == "__main__":
    main()
