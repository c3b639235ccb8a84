"""Print how long it takes to apply a schedule of 40 steps to the last convolution of ResNet-50 and to lower it.

The times are the least of several rounds, in milliseconds: parsing and applying the steps, lowering loops to a kernel,
writing LLVM IR text, and compiling that text with LLVM, which is not part of the sum.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import astuple, dataclass

from xdsl.dialects.builtin import ModuleOp

from loopwright import te, topi
from loopwright.backends.llvm.emit import KernelText, emit
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel
from loopwright.passes.pipeline_text import apply_schedule, parse_schedule

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
    start = time.perf_counter()
    apply_schedule(module, schedule)
    scheduled = time.perf_counter()
    lower_loop_to_kernel(module)
    lowered = time.perf_counter()
    text = emit(module)
    return CompileTime(scheduled - start, lowered - scheduled, time.perf_counter() - lowered), text


def compile_time(rounds: int) -> CompileTime:
    """The round with the least sum."""
    module, schedule = workload(), ",".join(STEPS)
    return min((compile_once(module, schedule)[0] for _ in range(rounds)), key=lambda t: t.sum_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    best = compile_time(options.rounds)
    print(f"{len(parse_schedule(','.join(STEPS)))} steps: {best.schedule_s * 1e3:.1f} ms")
    print(f"lowering: {best.lower_s * 1e3:.1f} ms")
    print(f"LLVM IR text: {best.text_s * 1e3:.1f} ms")
    print(f"sum: {best.sum_s * 1e3:.1f} ms")
    from loopwright.backends.llvm.jit import compile_text

    _, text = compile_once(workload(), ",".join(STEPS))
    start = time.perf_counter()
    compile_text(text.source)
    print(f"LLVM: {(time.perf_counter() - start) * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
