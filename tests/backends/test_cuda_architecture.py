"""Architectures of CUDA code: their names, the devices that run them, code for exactly one; and blocks per SM."""

import pytest
from gpu_programs import compile_cuda, parse

from loopwright import Schedule, te, topi
from loopwright.backends.cuda import nvrtc
from loopwright.backends.cuda.architecture import Architecture
from loopwright.backends.cuda.compile import print_cuda
from loopwright.dialects.intrinsics import Intrinsic, fragment
from loopwright.dialects.kernel import AllocOp, LaunchOp, shared_offsets
from loopwright.dialects.target import Target
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel
from loopwright.passes.primitive import ScheduleError

FENCE = 'extern "C" __global__ void k() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }'


@pytest.mark.parametrize("name", ["sm_75", "sm_90", "sm_90a", "sm_120"])
def test_names_are_read_back(name: str) -> None:
    assert str(Architecture.of(name)) == name


def test_other_names_are_refused() -> None:
    with pytest.raises(ValueError, match=r"an architecture is named like sm_90 or sm_90a, got 'compute_90'"):
        Architecture.of("compute_90")


def test_devices_run_code_of_their_generation() -> None:
    """Machine code runs on later devices of a generation; that of exactly one on no other (CUDA C++ guide)."""
    assert Architecture(80).runs_on(8, 6) and not Architecture(86).runs_on(8, 0) and not Architecture(80).runs_on(9, 0)
    assert Architecture(90, exact=True).runs_on(9, 0) and not Architecture(100, exact=True).runs_on(10, 3)


def test_code_for_exactly_one_capability_compiles() -> None:
    """`wgmma` is of sm_90a, and sm_90 has none of it."""
    assert nvrtc.compile_cubin(FENCE, 90, exact=True).code[:4] == b"\x7fELF"
    with pytest.raises(nvrtc.CompileError, match=r"(?s)wgmma.*sm_90"):
        nvrtc.compile_cubin(FENCE, 90)
    assert ".target sm_90a" in nvrtc.compile_ptx(FENCE, 90, exact=True)


def test_an_exact_intrinsic_is_of_one_capability_alone() -> None:
    factor = fragment("float16", "i mod 8 * 4")
    exact = Intrinsic("x", "cuda", 8, 8, 8, factor, factor, factor, 32, "", since=90, exact=True)
    assert exact.why_not(Target(kind="cuda", compute_capability=90)) is None
    why = exact.why_not(Target(kind="cuda", compute_capability=100))
    assert why == "is of compute capability 90 alone (sm_90a), the target has 100"


def doubled(blocks_per_sm: int) -> Schedule:
    x = te.placeholder((64, 128), "float32", name="x")
    sch = Schedule(topi.nn.relu(x), target="cuda compute_capability=90 max_threads_per_block=1024")
    (block,) = sch.blocks
    i, j = sch.get_loops(block)
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    sch.pragma(block, i, blocks_per_sm=blocks_per_sm)
    return sch


def test_blocks_per_multiprocessor_are_launch_bounds() -> None:
    module = doubled(4).module.clone()
    lower_loop_to_kernel(module)
    (launch,) = [op for op in module.walk() if isinstance(op, LaunchOp)]
    assert launch.blocks_per_sm == 4
    assert "__launch_bounds__(128, 4)" in print_cuda(module).source
    compile_cuda(module, (80,))
    with pytest.raises(ScheduleError, match=r"blocks_per_sm must be 1 to 32, got 33"):
        doubled(33)


TWO_BUFFERS = """
builtin.module attributes {lw.target = #lw.target<"cuda compute_capability=90">} {
func.func @main(%out: memref<32xf32> {lw.name = "out", lw.output}) {
  lw_kernel.launch grid [1, 1, 1] block [32, 1, 1] {
    %a = lw_kernel.alloc "a" : memref<10xf32, "shared">
    %b = lw_kernel.alloc "b" align 1024 : memref<SIZExf32, "shared">
    %t = lw_kernel.thread "threadIdx.x" : index
    %v = lw_kernel.load %b[%t + 0] stride 1 : memref<SIZExf32, "shared"> -> f32
    lw_kernel.store %v, %out[%t + 0] stride 1 : f32, memref<32xf32>
    %w = lw_kernel.load %a[%t + 0] stride 1 : memref<10xf32, "shared"> -> f32
    lw_kernel.store %w, %out[%t + 0] stride 1 : f32, memref<32xf32>
  }
  func.return
}
}
"""


@pytest.mark.parametrize("size", [64, 16384])
def test_shared_buffers_start_where_they_are_aligned(size: int) -> None:
    """Static, and above 48 KiB in one block that is sized at the launch."""
    module = parse(TWO_BUFFERS.replace("SIZE", str(size)))
    buffers = [op for op in module.walk() if isinstance(op, AllocOp)]
    assert shared_offsets(buffers) == ({buffers[1]: 0, buffers[0]: 4 * size}, 4 * size + 48)
    source = print_cuda(module).source
    aligned = "__align__(1024) float b[64]" if size == 64 else "__align__(1024) unsigned char shared_memory[]"
    assert aligned in source and (size == 64 or f"(shared_memory + {4 * size})" in source)
