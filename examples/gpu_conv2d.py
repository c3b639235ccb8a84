"""Schedule a convolution for a GPU by hand, in the classic way: tiles of blocks, virtual threads and threads.

Run: python examples/gpu_conv2d.py [--target "cuda compute_capability=90"] [--channels 16] [--size 14]
Prints the source for CUDA, which needs no GPU; runs and checks on an OpenCL device.
"""

from __future__ import annotations

import argparse

import numpy as np

import loopwright as lw
from loopwright import te, topi
from loopwright.search.measure.reference import make_reference

LIMITS = "max_threads_per_block=1024 max_shared_bytes=49152 max_vthreads=16"
OPENCL = f"opencl {LIMITS}"

Factors = tuple[int, ...]


def conv2d(channels: int, filters: int, size: int) -> list[te.Tensor]:
    """A convolution with 3x3 filters, stride 1 and padding 1, in layout NCHW."""
    data = te.placeholder((1, channels, size, size), name="data")
    kernel = te.placeholder((filters, channels, 3, 3), name="kernel")
    return [data, kernel, topi.nn.conv2d_nchw(data, kernel, (1, 1), (1, 1), (1, 1))]


def schedule(
    sch: lw.Schedule,
    tile_f: Factors = (2, 4, 2),
    tile_y: Factors = (1, 2, 1),
    tile_x: Factors = (1, 7, 1),
    tile_rc: int = 4,
    tile_ry: int = 3,
    tile_rx: int = 3,
    auto_unroll_max_step: int = 64,
    unroll_explicit: int = 1,
) -> None:
    """Tile f, y and x in four: blocks, virtual threads, threads and what a thread computes, innermost factor last.

    What a block needs of data and filters for `tile_rc` channels is in shared memory, filled by all threads together;
    what a thread computes is in registers until the end.
    """
    conv = "compute"
    out = sch.cache_write(conv, conv, "local")
    shared = [sch.cache_read(conv, name, "shared") for name in ("pad_temp", "kernel")]
    sch.compute_inline("pad_temp")
    n, f, y, x, rc, ry, rx = sch.get_loops(conv)

    bf, vf, tf, fi = sch.split(conv, f, [None, *tile_f])
    by, vy, ty, yi = sch.split(conv, y, [None, *tile_y])
    bx, vx, tx, xi = sch.split(conv, x, [None, *tile_x])
    rco, rci = sch.split(conv, rc, [None, tile_rc])
    ryo, ryi = sch.split(conv, ry, [None, tile_ry])
    rxo, rxi = sch.split(conv, rx, [None, tile_rx])
    sch.reorder(conv, n, bf, by, bx, vf, vy, vx, tf, ty, tx, rco, ryo, rxo, rci, ryi, rxi, fi, yi, xi)
    for loop, axis in zip((bf, by, bx), "zyx", strict=True):
        sch.bind(conv, loop, f"blockIdx.{axis}")
    for loop in (vf, vy, vx):
        sch.bind(conv, loop, "vthread")
    for loop, axis in zip((tf, ty, tx), "zyx", strict=True):
        sch.bind(conv, loop, f"threadIdx.{axis}")
    sch.reverse_compute_at(out, tx)

    threads = [tile_f[1], tile_y[1], tile_x[1]]
    for copy in shared:
        sch.compute_at(copy, rxo, unit_loops=True)
        fused = sch.fuse(copy, *sch.get_loops(copy)[-4:])
        _, *fetching = sch.split(copy, fused, [None, *threads])
        for loop, axis in zip(fetching, "zyx", strict=True):
            sch.bind(copy, loop, f"threadIdx.{axis}")
    sch.pragma(conv, bf, auto_unroll_max_step=auto_unroll_max_step, unroll_explicit=unroll_explicit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default=OPENCL)
    parser.add_argument("--channels", type=int, default=16)
    parser.add_argument("--filters", type=int, default=32)
    parser.add_argument("--size", type=int, default=14)
    options = parser.parse_args()
    target = options.target if "max_threads" in options.target else f"{options.target} {LIMITS}"
    sch = lw.Schedule(conv2d(options.channels, options.filters, options.size), target=target)
    schedule(sch)
    if target.startswith("cuda"):
        print(lw.build(sch).source)
    else:
        check(sch)
        print("right")


def check(sch: lw.Schedule) -> None:
    """Run on a device and compare with the reference."""
    reference = make_reference(sch.workload)
    np.testing.assert_allclose(
        lw.build(sch)(*reference.inputs), reference.expected[0], **reference.tolerances[0]._asdict()
    )


if __name__ == "__main__":
    main()
