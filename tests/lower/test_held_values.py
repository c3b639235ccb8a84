"""Elements of local buffers that kernels for CPUs hold as values between stores, beside the interpreter."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from lowered_runs import exact_inputs, lowered
from xdsl.dialects import math, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp, StringAttr
from xdsl.ir import Operation

from loopwright import te
from loopwright.dialects import kernel
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.te import run_te
from loopwright.schedule import Schedule

TARGET = "llvm cores=2 vector_bytes=32 vector_registers=16"
Steps = Callable[[Schedule], Any]


def checked(tensors: Sequence[te.Tensor], steps: Steps, target: str = TARGET) -> ModuleOp:
    """Lower a schedule to a kernel, which is held to the expressions."""
    sch = Schedule(tensors, target=target)
    steps(sch)
    module = lowered(sch.module)
    inputs = exact_inputs(sch.workload)
    for got, wanted in zip(run_kernel(module, inputs), run_te(sch.workload, inputs), strict=True):
        np.testing.assert_array_equal(got, wanted)
    return module


def matmul(m: int, n: int, k: int) -> list[te.Tensor]:
    a, b, r = te.placeholder((m, k), name="a"), te.placeholder((k, n), name="b"), te.reduce_axis((0, k), "k")
    return [a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")]


def tiled(sch: Schedule, rows: int = 3, steps: int = 4) -> None:
    """A tile of `rows` vectors in a local buffer, to each of which a loop adds `steps` products at a time."""
    copy = sch.cache_write("c", "c", "local")
    i, j, k = sch.get_loops("c")
    i0, i1 = sch.split("c", i, [None, rows])
    j0, j1 = sch.split("c", j, [None, 8])
    k0, k1 = sch.split("c", k, [None, steps])
    sch.reorder(i0, j0, k0, k1, i1, j1)
    sch.vectorize(j1)
    sch.unroll(i1)
    sch.unroll(k1)
    sch.reverse_compute_at(copy, str(j0))


def of_sums(module: ModuleOp, kind: type[Operation]) -> int:
    """The operations of a kind on the local buffer in the loop over products."""
    loops = [op for op in module.walk() if isinstance(op, scf.ForOp)]
    (loop,) = (op for op in loops if any(isinstance(inner, math.FmaOp) for inner in op.body.block.ops))
    found = [operand.type for op in loop.body.block.ops if isinstance(op, kind) for operand in op.operands]
    return sum(isinstance(t, MemRefType) and t.memory_space == StringAttr("local") for t in found)


def test_sums_are_loaded_and_stored_once_for_all_steps_that_are_unrolled() -> None:
    module = checked(matmul(6, 16, 32), tiled)
    assert of_sums(module, kernel.LoadOp) == of_sums(module, kernel.StoreOp) == 3


@pytest.mark.parametrize(("m", "n", "k"), [(6, 16, 30), (5, 16, 32), (6, 13, 32), (5, 13, 31)])
def test_tails_of_tiles_are_added_to_what_the_others_left(m: int, n: int, k: int) -> None:
    checked(matmul(m, n, k), tiled)


def test_vectors_that_overlap_are_read_from_memory() -> None:
    x = te.placeholder((24,), name="x")
    twice = te.compute((24,), lambda i: x[i] * 2.0, name="twice")
    tensors = [x, te.compute((16,), lambda i: twice[i] + twice[i + 3] + twice[i + 8], name="y")]

    def steps(sch: Schedule) -> None:
        sch.set_scope("twice", "local")
        for block in ("twice", "y"):
            (i,) = sch.get_loops(block)
            outer, inner = sch.split(i, [None, 8])
            sch.unroll(outer)
            sch.vectorize(inner)

    checked(tensors, steps)


def test_elements_that_are_stored_one_by_one_are_read_as_a_vector() -> None:
    x = te.placeholder((8,), name="x")
    twice = te.compute((8,), lambda i: x[i] * 2.0, name="twice")

    def steps(sch: Schedule) -> None:
        sch.set_scope("twice", "local")
        sch.unroll(*sch.get_loops("twice"))
        sch.vectorize(*sch.get_loops("y"))

    checked([x, te.compute((8,), lambda i: twice[i] + 1.0, name="y")], steps)


def test_a_store_in_a_branch_is_seen_behind_it() -> None:
    x, n = te.placeholder((4, 5), name="x"), te.reduce_axis((0, 5), "n")

    def steps(sch: Schedule) -> None:
        copy = sch.cache_write("s", "s", "local")
        i, k = sch.get_loops("s")
        k0, k1 = sch.split("s", k, [None, 4])  # the second four are tested one by one
        sch.unroll(k0)
        sch.unroll(k1)
        sch.reverse_compute_at(copy, str(i))

    checked([x, te.compute((4,), lambda i: te.sum(x[i, n], axis=n), name="s")], steps)
