"""Remainders of the numbers of later iterations, which NVRTC must not take apart."""

import numpy as np

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.cuda.compile import print_cuda
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel


def convolution(channels: int) -> list[te.Tensor]:
    data = te.placeholder((2, 7, 7, channels), "float16", name="data")
    kernel = te.placeholder((3, 3, channels, 64), "float16", name="kernel")
    return [data, kernel, topi.nn.conv2d_nhwc(data, kernel, 1, 1, out_dtype="float32")]


def test_the_place_of_what_is_copied_ahead_is_out_of_sight() -> None:
    """An H200 read 128 KB away for `(k + 5) % 96 * 16` of a convolution of 512 channels: `(k * 16 & 0xffff) + 80`."""
    task = lw.SearchTask(lambda: convolution(512), target="cuda model=h200")
    (sketch,) = [s for s in task.sketches if s.name == "tensor_mma_m16n16k16_f16"]
    wanted = {"j_tiles": 1, "j_warps": 2, "i_tiles": 1, "i_warps": 1, "k_steps": 1, "stages": 6, "group": 1}
    names = [hole.name.split("_", 1)[1].removeprefix("nhwc_") for hole in sketch.holes]
    row = np.array([h.choices.index(wanted[n]) for h, n in zip(sketch.holes, names, strict=True)])
    module = task.schedule_module(sketch.schedule(row))
    lower_loop_to_kernel(module)
    source = print_cuda(module).source
    loop = source[source.index("cp.async.wait_group") :]
    assert "remainder_of((unsigned)" in loop and ", 96u) * 16" in loop
    assert "% 96u" not in loop
