"""Schedule a depthwise convolution with bias and relu for a GPU by hand: tiles in registers, four channels at once.

Run: python examples/gpu_depthwise.py [--target "cuda model=h200"] [--size 112] [--channels 32]
Prints time and bandwidth where there is a device; for CUDA without one the source, which needs no GPU.
"""

from __future__ import annotations

import argparse

import numpy as np

import loopwright as lw
from loopwright import te, topi
from loopwright.search.measure.reference import make_reference

LIMITS = "max_threads_per_block=1024 max_shared_bytes=49152 max_vthreads=16"
OPENCL = f"opencl {LIMITS}"
LANES = 4
"""Channels that a thread computes: 16 bytes of single precision are the most that one access moves."""


def depthwise(size: int, channels: int) -> list[te.Tensor]:
    """relu(conv(data) + bias) with 3x3 filters, stride 1 and padding 1, in layout NHWC."""
    data = te.placeholder((1, size, size, channels), name="data")
    kernel = te.placeholder((3, 3, channels, 1), name="kernel")
    bias = te.placeholder((channels,), name="bias")
    conv = topi.nn.depthwise_conv2d_nhwc(data, kernel, (1, 1), (1, 1), (1, 1))
    return [data, kernel, bias, topi.nn.relu(topi.add(conv, bias))]


def schedule(sch: lw.Schedule, rows: int = 2, columns: int = 16) -> None:
    """A thread computes `rows` pixels one below the other, of four channels; a block has `columns` of them.

    Neighbouring threads have neighbouring channels, so that a warp reads whole cache lines. Padding, bias and relu are
    computed where they are used. The pixels of a window are read straight from global memory: what neighbouring
    windows share is in the L1 cache, and what a thread reads twice stays in its registers once all loops over the
    window are unrolled.
    """
    conv, out = "depthwise_conv2d", "T_relu"
    sch.compute_inline("pad_temp")
    sch.compute_inline("T_add")

    n, y, x, c = sch.get_loops(out)
    y0, y1 = sch.split(out, y, [None, rows])
    x0, x1 = sch.split(out, x, [None, columns])
    c0, c1 = sch.split(out, c, [None, LANES])
    sch.reorder(out, n, y0, x0, x1, c0, y1, c1)
    for loop, thread in ((n, "blockIdx.z"), (y0, "blockIdx.y"), (x0, "blockIdx.x")):
        sch.bind(out, loop, thread)
    sch.bind(out, x1, "threadIdx.y")
    sch.bind(out, c0, "threadIdx.x")
    sch.unroll(out, y1)
    sch.vectorize(out, c1)

    in_registers(sch, conv, c0)


def in_registers(sch: lw.Schedule, conv: str, loop: str) -> None:
    """Compute what an iteration of a loop needs in registers, row by row of the window."""
    sch.compute_at(conv, loop, unit_loops=True)
    sch.set_scope(conv, "local")
    yy, xx, ff, ry, rx = sch.get_loops(conv)[-5:]
    sch.reorder(conv, ry, rx, yy, xx, ff)
    for each in (ry, rx, yy):
        sch.unroll(conv, each)
    sch.vectorize(conv, ff)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default=OPENCL)
    parser.add_argument("--size", type=int, default=112)
    parser.add_argument("--channels", type=int, default=32)
    parser.add_argument("--rows", type=int, default=2)
    parser.add_argument("--columns", type=int, default=16)
    options = parser.parse_args()
    target = options.target if "=" in options.target else f"{options.target} {LIMITS}"
    sch = lw.Schedule(depthwise(options.size, options.channels), target=target)
    schedule(sch, options.rows, options.columns)
    kernel = lw.build(sch)
    try:
        check(sch, kernel)
    except RuntimeError as error:  # no driver, no device, or no package to drive it
        print(f"{kernel.source}\n// not run: {error}")
        return
    bytes_moved = 4 * (2 * options.size**2 * options.channels + 10 * options.channels)
    report(kernel, bytes_moved, graph=target.startswith("cuda"))


def check(sch: lw.Schedule, kernel: lw.Kernel) -> None:
    """Run on the device and compare with the reference."""
    reference = make_reference(sch.workload)
    (expected,) = reference.expected
    np.testing.assert_allclose(kernel(*reference.inputs), expected, **reference.tolerances[0]._asdict())


def report(kernel: lw.Kernel, bytes_moved: int, graph: bool) -> None:
    """Print the time of a run, replayed where the device can, and the bandwidth that comes to."""
    options: dict[str, bool] = {"graph": True} if graph else {}
    time_s = kernel.benchmark(min_repeat_ms=20, **options).median
    print(f"right; {time_s * 1e6:.1f} us, {bytes_moved / time_s * 1e-9:.1f} GB/s")


if __name__ == "__main__":
    main()
