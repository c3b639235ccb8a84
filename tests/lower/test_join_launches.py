"""Parts of reductions joined in the launch that computes them: results in any order of blocks, refusals, and CUDA C."""

from random import Random

import numpy as np
import pytest
from effort import usual
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

import loopwright as lw
from loopwright import te
from loopwright.backends.build import lower_to_kernel
from loopwright.backends.c_family.source import print_module
from loopwright.backends.cuda.compile import compile_module
from loopwright.backends.opencl.language import OpenCl
from loopwright.backends.unsupported import UnsupportedError
from loopwright.dialects import kernel
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.passes.primitive import ScheduleError

CUDA = "cuda compute_capability=90 warp_size=32 max_threads_per_block=1024 max_shared_bytes=49152 max_vthreads=16"
CASES = 6 * usual(10)


def product(m: int, n: int, k: int, dtype: str = "float32") -> list[te.Tensor]:
    """A product with a bias and relu, whose sums are in single precision."""
    x, y = te.placeholder((m, k), dtype, "x"), te.placeholder((n, k), dtype, "y")
    b, r = te.placeholder((n,), dtype, "b"), te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(x[i, r].astype("float32") * y[j, r].astype("float32"), axis=r), name="c")
    d = te.compute((m, n), lambda i, j: te.maximum(c[i, j].astype(dtype) + b[j], 0.0), name="d")
    return [x, y, b, d]


def tiled(
    tensors: list[te.Tensor], parts: int, tile: tuple[int, int], target: str = CUDA, width: int = 1
) -> lw.Schedule:
    """Parts of k on blockIdx.y, tiles of results on blockIdx.x, and the sums of parts in a nest of the same tiles."""
    sch = lw.Schedule(tensors, target=target)
    part, _ = sch.split("c", "k", [parts, None])
    sch.reorder("c", part, "i", "j")
    sch.rfactor("c", part)
    for block in ("c_rf", "d"):
        i0, i1 = sch.split(block, "i", [None, tile[0]])
        j0, j1 = sch.split(block, "j", [None, tile[1]])
        sch.reorder(block, i0, j0, i1, j1)
        sch.bind(block, sch.fuse(block, i0, j0), "blockIdx.x")
        inner = sch.fuse(block, i1, j1)
        if block == "c_rf":
            sch.bind(block, part, "blockIdx.y")
            sch.bind(block, inner, "threadIdx.x")
        else:
            vectors = tile[0] * tile[1] // width
            _, thread, lane = sch.split(block, inner, [None, vectors // 2 if vectors % 2 == 0 else vectors, width])
            sch.bind(block, thread, "threadIdx.x")
            sch.vectorize(block, lane)
            sch.compute_at("c", thread)
            sch.set_scope("c", "local")
    return sch


def launches(module: ModuleOp) -> int:
    return sum(isinstance(op, kernel.LaunchOp) for op in module.walk())


def inputs_of(tensors: list[te.Tensor], r: Random) -> list[np.ndarray]:
    rng = np.random.default_rng(r.randrange(1 << 30))
    return [rng.integers(-4, 5, t.shape).astype(t.dtype) for t in tensors[:-1]]


def expected(x: np.ndarray, y: np.ndarray, b: np.ndarray) -> np.ndarray:
    sums = (x.astype(np.float32) @ y.astype(np.float32).T).astype(x.dtype)
    found: np.ndarray = np.maximum(sums + b, 0)
    return found


@pytest.mark.parametrize("seed", range(CASES))
def test_parts_are_joined_by_the_last_block_of_a_tile(seed: int) -> None:
    """Ragged tiles and parts included; small integers are summed exactly, in whatever order."""
    r = Random(seed)
    m, n, k = r.randint(1, 20), r.randint(1, 20), r.randint(4, 40)
    parts, tile = r.randint(2, min(6, k)), (r.randint(1, 6), r.randint(1, 6))
    tensors = product(m, n, k, r.choice(["float32", "float16"]))
    sch = tiled(tensors, parts, tile, width=r.choice([1, 2]) if tile[1] % 2 == 0 else 1)
    apart = lower_to_kernel(sch)
    sch.join("d")
    joined = lower_to_kernel(sch)
    assert (launches(apart), launches(joined)) == (2, 1)
    inputs = inputs_of(tensors, r)
    for order in range(3):
        (found,) = run_kernel(joined, inputs, order)
        np.testing.assert_array_equal(found, expected(*inputs))


def test_sums_are_the_same_bits_in_any_order_of_blocks() -> None:
    tensors = product(6, 8, 64)
    sch = tiled(tensors, 8, (3, 4))
    sch.join("d")
    rng, module = np.random.default_rng(0), lower_to_kernel(sch)
    inputs = [rng.standard_normal(t.shape).astype(np.float32) for t in tensors[:-1]]
    assert len({run_kernel(module, inputs, order)[0].tobytes() for order in range(8)}) == 1


def test_other_tiles_are_refused() -> None:
    """As many tiles, but others: what they read is written by other blocks than arrive there."""
    sch = lw.Schedule(product(8, 8, 16), target=CUDA)
    part, _ = sch.split("c", "k", [4, None])
    sch.reorder("c", part, "i", "j")
    sch.rfactor("c", part)
    sch.bind("c_rf", part, "blockIdx.y")
    sch.bind("c_rf", "i", "blockIdx.x")
    sch.bind("c_rf", "j", "threadIdx.x")
    sch.reorder("d", "j", "i")
    sch.bind("d", "j", "blockIdx.x")
    sch.bind("d", "i", "threadIdx.x")
    sch.compute_at("c", "i")
    sch.set_scope("c", "local")
    sch.join("d")
    with pytest.raises(PassFailedException, match="'c_rf' is written by block 'c_rf' and used by block 'c' at another"):
        lower_to_kernel(sch)


def test_opencl_promises_no_block_what_others_wrote() -> None:
    sch = tiled(product(8, 8, 16), 4, (4, 4), target=CUDA.replace("cuda compute_capability=90", "opencl"))
    with pytest.raises(ScheduleError, match="which CUDA promises; the target is opencl"):
        sch.join("d")


def test_opencl_has_no_counters() -> None:
    sch = tiled(product(8, 8, 16), 4, (4, 4))
    sch.join("d")
    with pytest.raises(UnsupportedError, match="no order between what blocks of threads write"):
        print_module(lower_to_kernel(sch), OpenCl(), {}, 0)


def test_cuda_keeps_counters_in_the_program_and_orders_what_blocks_wrote() -> None:
    """Pointers to parts are not `restrict`, so that no load of them moves to before the arrival."""
    sch = tiled(product(8, 8, 16), 4, (4, 4))
    sch.join("d")
    artifact = compile_module(lower_to_kernel(sch))
    source = artifact.kernel.source
    assert "__device__ unsigned main_k0_arrived[4];\n" in source
    assert "atom.acq_rel.gpu.global.inc.u32" in source and "return __syncthreads_or(before == parts - 1);" in source
    assert "const bool last = arrive(main_k0_arrived + block_x, 4);\n    if (last) {" in source
    assert "float* c_rf)" in source and "float* __restrict__ c_rf" not in source
    (launch,) = artifact.kernel.launches
    assert launch.counts and launch.grid == (4, 4, 1)


def clustered(target: str = CUDA) -> lw.Schedule:
    """Each of four blocks with parts of a tile of 4 x 4 sums adds up one row of it."""
    sums = lw.Schedule(product(8, 8, 16), target=target)
    part, _ = sums.split("c", "k", [4, None])
    sums.reorder("c", part, "i", "j")
    sums.rfactor("c", part)
    for block in ("c_rf", "d"):
        i0, i1 = sums.split(block, "i", [None, 4])
        j0, j1 = sums.split(block, "j", [None, 4])
        sums.reorder(block, i0, j0, i1, j1)
        sums.bind(block, sums.fuse(block, i0, j0), "blockIdx.x")
        sums.bind(block, j1, "threadIdx.x")
        sums.bind(block, part if block == "c_rf" else i1, "blockIdx.y")
    sums.compute_at("c", j1)
    sums.set_scope("c", "local")
    return sums


def test_blocks_of_a_cluster_add_up_parts_together() -> None:
    sch = clustered()
    sch.join("d", cluster="blockIdx.y")
    tensors, module = product(8, 8, 16), lower_to_kernel(sch)
    assert launches(module) == 1
    inputs = inputs_of(tensors, Random(0))
    np.testing.assert_array_equal(run_kernel(module, inputs)[0], expected(*inputs))
    source = compile_module(module).kernel.source
    assert "__global__ void __cluster_dims__(1, 4, 1) __launch_bounds__(4)" in source
    assert "    cluster_barrier();\n" in source and "float* __restrict__ c_rf" not in source
