"""Print how long it takes to apply a schedule of 40 steps to the last convolution of ResNet-50 and to lower it.

The times are the least of several rounds, in milliseconds of the CPU: parsing and applying the steps, lowering loops to
a kernel, writing LLVM IR text, and compiling that text with LLVM, which is not part of the sum. With `--candidates` so
many random candidates of each sketch of operators are brought to CUDA C for an H200 instead, the least of three each.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import partial

import numpy as np
from xdsl.dialects.builtin import ModuleOp

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.cuda.compile import print_cuda
from loopwright.backends.llvm.emit import KernelText, emit
from loopwright.backends.scheduled import scheduled_kernel
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel
from loopwright.passes.pipeline_text import apply_schedule, parse_schedule
from loopwright.search.named_workloads import conv2d, matmul

TARGET = "llvm cores=2 vector_bytes=64 vector_registers=32"
ORDER = '"nn","ff0","yy_xx0","rc0","yy_xx1","ff1","rc1","ry0","rx0","rc2","ry1","rx1","ff2","yy_xx2","yy_xx3"'
STEPS = (
    "lw-lower-te-to-loop",
    'lw-compute-inline{block="T_add"}',
    'lw-cache-read{block="compute" buffer="pad_temp" layout="yy*xx/64","rc","ry","rx","yy*xx%64" label="panel"}',
    'lw-compute-inline{block="pad_temp"}',
    'lw-cache-read{block="compute" buffer="kernel" layout="ff/6","rc","ry","rx","ff%6" label="weights"}',
    'lw-fuse{block="compute" loops="yy","xx"}',
    'lw-split{block="compute" loop="yy_xx" factors=0,1,4,16}',
    'lw-split{block="compute" loop="ff" factors=0,1,6}',
    'lw-split{block="compute" loop="rc" factors=0,256,1}',
    'lw-split{block="compute" loop="ry" factors=0,1}',
    'lw-split{block="compute" loop="rx" factors=0,1}',
    f'lw-reorder{{block="compute" loops={ORDER}}}',
    'lw-fuse{block="compute" loops="ff0","yy_xx0"}',
    'lw-vectorize{block="compute" loop="yy_xx3"}',
    'lw-unroll{block="compute" loop="rc2"}',
    'lw-unroll{block="compute" loop="ry1"}',
    'lw-unroll{block="compute" loop="rx1"}',
    'lw-unroll{block="compute" loop="ff2"}',
    'lw-unroll{block="compute" loop="yy_xx2"}',
    'lw-set-scope{block="compute" scope="local"}',
    'lw-reverse-compute-at{block="T_relu" loop="ff0_yy_xx0"}',
    'lw-transform-layout{block="compute" buffer="compute" layout="nn","ff","yy*xx"}',
    'lw-vectorize{block="T_relu" loop="yy_xx3"}',
    'lw-unroll{block="T_relu" loop="yy_xx2"}',
    'lw-unroll{block="T_relu" loop="ff2"}',
    'lw-split{block="panel" loop="yy_xx_i" factors=0,16}',
    'lw-vectorize{block="panel" loop="yy_xx_i1"}',
    'lw-unroll{block="panel" loop="yy_xx_i0"}',
    'lw-fuse{block="panel" loops="yy_xx_o","rc"}',
    'lw-parallel{block="panel" loop="yy_xx_o_rc"}',
    'lw-split{block="weights" loop="rc" factors=0,8}',
    'lw-reorder{block="weights" loops="ff_o","rc0","ry","rx","ff_i","rc1"}',
    'lw-vectorize{block="weights" loop="rc1"}',
    'lw-unroll{block="weights" loop="ff_i"}',
    'lw-fuse{block="weights" loops="ff_o","rc0"}',
    'lw-pragma{block="weights" loop="ff_o_rc0" auto_unroll_max_step=32}',
    'lw-parallel{block="weights" loop="ff_o_rc0"}',
    'lw-pragma{block="compute" loop="rc1" auto_unroll_max_step=0}',
    'lw-decompose-reduction{block="compute" loop="rc0"}',
    'lw-parallel{block="compute" loop="ff0_yy_xx0"}',
)


@dataclass(frozen=True)
class CompileTime:
    """Seconds of each stage."""

    schedule_s: float
    lower_s: float
    text_s: float

    @property
    def sum_s(self) -> float:
        return sum(astuple(self))


def workload() -> ModuleOp:
    """The seed convolution with bias and relu, on tensors."""
    data = te.placeholder((1, 512, 7, 7), name="data")
    kernel = te.placeholder((512, 512, 3, 3), name="kernel")
    bias = te.placeholder((1, 512, 1, 1), name="bias")
    out = topi.nn.relu(topi.nn.conv2d_nchw(data, kernel, 1, 1) + bias)
    return te.create_module([data, kernel, bias, out], TARGET)


def compile_once(module: ModuleOp, schedule: str) -> tuple[CompileTime, KernelText]:
    """Schedule, lower and print a copy of `module`."""
    module = module.clone()
    start = time.thread_time()
    apply_schedule(module, schedule)
    scheduled = time.thread_time()
    lower_loop_to_kernel(module)
    lowered = time.thread_time()
    text = emit(module)
    return CompileTime(scheduled - start, lowered - scheduled, time.thread_time() - lowered), text


def compile_time(rounds: int) -> CompileTime:
    """The round with the least sum."""
    module, schedule = workload(), ",".join(STEPS)
    return min((compile_once(module, schedule)[0] for _ in range(rounds)), key=lambda t: t.sum_s)


OPERATORS: dict[str, Callable[[], list[te.Tensor]]] = {
    "convolution 512x7x7 to 512, 3x3": partial(conv2d, 1, 7, 7, 512, 512),
    "convolution 64x56x56 to 64, 3x3": partial(conv2d, 1, 56, 56, 64, 64),
    "product 1024 cubed": partial(matmul, 1024, 1024, 1024),
    "product 777x1025x513": partial(matmul, 777, 1025, 513),
}


def _of_candidates(name: str, tensors: Callable[[], list[te.Tensor]], count: int) -> str:
    """A row of the table of an operator."""
    task = lw.SearchTask(te.create_module(tensors()), target="cuda model=h200")
    rng, text = np.random.default_rng(0), str(task.module)
    schedules = [sketch.schedule(row) for sketch in task.sketches for row in sketch.sample(rng, count)]
    times = [1e3 * min(_to_source(text, schedule) for _ in range(3)) for schedule in schedules]
    return f"| {name} | {len(times)} | {np.median(times):.0f} | {np.mean(times):.0f} | {max(times):.0f} |"


def _to_source(text: str, schedule: str) -> float:
    """Seconds from a schedule to CUDA C."""
    start = time.thread_time()
    print_cuda(scheduled_kernel(text, schedule))
    return time.thread_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--candidates", type=int, default=0, help="of each sketch, to CUDA C")
    options = parser.parse_args()
    if options.candidates:
        print("| operator | candidates | median (ms) | mean | most |\n|---|---|---|---|---|")
        for name, tensors in OPERATORS.items():
            print(_of_candidates(name, tensors, options.candidates), flush=True)
        return
    best = compile_time(options.rounds)
    print(f"{len(parse_schedule(','.join(STEPS)))} steps: {best.schedule_s * 1e3:.1f} ms")
    print(f"lowering: {best.lower_s * 1e3:.1f} ms")
    print(f"LLVM IR text: {best.text_s * 1e3:.1f} ms")
    print(f"sum: {best.sum_s * 1e3:.1f} ms")
    from loopwright.backends.llvm.jit import compile_text

    _, text = compile_once(workload(), ",".join(STEPS))
    start = time.thread_time()
    compile_text(text.source)
    print(f"LLVM: {(time.thread_time() - start) * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
