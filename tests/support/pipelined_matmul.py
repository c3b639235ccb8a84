"""A matrix product for GPUs whose copies into shared memory run ahead of the work on them."""

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp

from loopwright import te
from loopwright.passes.lower.lower_loop_to_kernel import lower_loop_to_kernel
from loopwright.schedule import Schedule

LIMITS = "max_threads_per_block=1024 max_shared_bytes=49152 max_vthreads=16"
OPENCL = f"opencl {LIMITS}"
CUDA = f"cuda {LIMITS} warp_size=32 compute_capability=90"


def matmul(m: int, n: int, k: int, dtype: str = "float32") -> list[te.Tensor]:
    a, b = te.placeholder((m, k), dtype, name="a"), te.placeholder((k, n), dtype, name="b")
    r = te.reduce_axis((0, k), name="k")
    return [a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")]


def tile(sch: Schedule, stages: int, registers: int, vector: int, turned: bool, depth: int = 4, rows: int = 2) -> None:
    """Blocks of 4 x 4 threads and 2 x 2 virtual ones, each of 2 (or `rows`) x 4 elements; copies of a and b ahead."""
    layout = {"layout": ("k", "i")} if turned else {}
    for operand, options in (("a", layout), ("b", {})):
        sch.cache_read("c", operand, "shared", label=f"{operand}_shared", **options)
    sch.storage_align("a_shared", axis=0, factor=8, offset=4)
    i = sch.split("c", "i", [None, 2, 4, rows])
    j = sch.split("c", "j", [None, 2, 4, 4])
    k0, k1 = sch.split("c", "k", [None, depth])
    sch.reorder("c", i[0], j[0], i[1], j[1], i[2], j[2], k0, k1, i[3], j[3])
    for loops, thread in (((i[0], j[0]), "blockIdx.x"), ((i[1], j[1]), "vthread"), ((i[2], j[2]), "threadIdx.x")):
        sch.bind("c", sch.fuse("c", *loops), thread)
    sch.unroll("c", i[3])
    sch.vectorize("c", j[3])
    out = sch.cache_write("c", "c", "local")
    sch.reverse_compute_at(out, sch.get_loops("c")[2])
    for copy in ("a_shared", "b_shared"):
        sch.compute_at(copy, k0, unit_loops=True)
        own = sch.get_loops(copy)[-2:]
        if turned and copy == "a_shared":
            sch.reorder(copy, *reversed(own))
            own = own[::-1]
        _, thread, lanes = sch.split(copy, sch.fuse(copy, *own), [None, 16, vector])
        sch.bind(copy, thread, "threadIdx.x")
        sch.vectorize(copy, lanes)
    sch.software_pipeline("c", k0, stages, registers)


def lower(tensors: list[te.Tensor], steps: Callable[[Schedule], None], target: str) -> tuple[Schedule, ModuleOp]:
    sch = Schedule(tensors, target=target)
    steps(sch)
    module = sch.module.clone()
    lower_loop_to_kernel(module)
    module.verify()
    return sch, module
