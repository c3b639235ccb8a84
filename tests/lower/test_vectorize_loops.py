"""What lanes touch, as it is decided before kernels are written: interpreted, followed, refused where it is wrong."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random

import numpy as np
import pytest
from lowered_runs import check_lowering, exact_inputs
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import PassFailedException

from loopwright import te
from loopwright.backends.context import create_context
from loopwright.backends.llvm.compile import compile_module
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.loop import InterpretationError, run_loops
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.kernel import GatherOp, LoadOp, ScatterOp
from loopwright.dialects.loop import blocks_in
from loopwright.dialects.loop_lanes import JOINED, SCALAR, SCATTERED, SINGLE, VECTOR, LanesAttr, step_of
from loopwright.passes.lower.lower_loop_to_kernel import STEPS
from loopwright.passes.primitive import ScheduleError
from loopwright.schedule import Schedule
from loopwright.te.reduce import Reduce

CPU = "llvm cores=2 vector_bytes=64"


def nest(r: Random) -> Schedule:
    """A stage that reads in several ways, or a sum of them, with one of its loops in lanes and another one unrolled."""
    m, n, q = r.randint(1, 6), r.randint(1, 17), r.randint(2, 6)
    x, y = te.placeholder((m, n), name="x"), te.placeholder((m * n,), name="y")
    t, z = te.placeholder((n, m), name="t"), te.placeholder((m,), name="z")

    def element(i: te.Expr, j: te.Expr) -> te.Expr:
        flat = i * n + j
        reads = [x[i, j], t[j, i], z[i], y[flat], y[flat // q], y[flat % q % (m * n)], y[m * n - 1 - flat]]
        reads.append(te.if_then_else(te.all(j >= 1, j < n - 1), x[i, j - 1], 1.0))
        a, b, c = (r.choice(reads) for _ in range(3))
        return r.choice([a * b, a + b * c, te.select(j >= i, a, b), a * (j + 1).astype("float32")])

    if r.random() < 0.4:
        k = te.reduce_axis((0, n), name="k")
        joins: list[Callable[..., Reduce]] = [te.sum, te.max, te.min]
        join = r.choice(joins)
        out = te.compute((m,), lambda i: join(element(i, k), axis=k), name="out")
    else:
        out = te.compute((m, n), element, name="out")
    sch = Schedule([x, y, t, z, out], target=CPU)
    loops = sch.get_loops("out")
    if r.random() < 0.3:
        with suppress(ScheduleError):  # a loop and one that is reduced over
            loops = [sch.fuse("out", *loops)]
    chosen = r.choice(loops)
    outer, inner = sch.split("out", chosen, [None, r.choice([2, 4, 5, 8])])
    others = [loop for loop in loops if loop != chosen]
    sch.reorder("out", *r.choice([[*others, outer, inner], [outer, *others, inner]]))
    for loop in (*others, outer):
        if r.random() < 0.5:
            sch.unroll("out", loop)
    sch.vectorize("out", inner)
    return sch


def lowered_up_to(module: ModuleOp, last: str) -> ModuleOp:
    """A copy of scheduled loops behind the steps of lowering up to one."""
    lowered = module.clone()
    for step in STEPS:
        step().apply(Context(), lowered)
        if step.name == last:
            return lowered
    raise AssertionError(last)


def decided(module: ModuleOp) -> list[LanesAttr]:
    """What is decided of the accesses of a module."""
    blocks = list(blocks_in(module))
    reads = [load.lanes for block in blocks for load in block.loads]
    return [lanes for lanes in (*reads, *(w for block in blocks for w in block.write_lanes)) if lanes is not None]


@pytest.mark.parametrize("first", range(0, 60, 10))
@pytest.mark.few(1)
def test_lanes_touch_what_is_decided(first: int) -> None:
    """Interpreted before and behind the decision, and written by it."""
    for seed in range(first, first + 10):
        sch = nest(Random(seed))
        inputs = exact_inputs(sch.workload)
        wanted = run_te(sch.workload, inputs)
        for step in ("lw-place-predicates", "lw-vectorize-loops"):
            (got,) = run_loops(lowered_up_to(sch.module, step), inputs)
            np.testing.assert_allclose(got, wanted[0], rtol=1e-5, atol=1e-5, err_msg=f"seed {seed}: {sch.pipeline}")
        check_lowering(sch.module, inputs, wanted, rtol=1e-5, atol=1e-5)


def test_all_ways_are_drawn() -> None:
    ways = Counter[str]()
    for seed in range(60):
        for lanes in decided(lowered_up_to(nest(Random(seed)).module, "lw-vectorize-loops")):
            ways[lanes.data.usual.split()[0]] += 1
            ways["others"] += bool(lanes.data.other)
    assert all(ways[way] for way in (SCALAR, VECTOR, "strided", SCATTERED, JOINED, "others")), ways


def with_lanes(module: ModuleOp, old: str, new: str) -> ModuleOp:
    """A copy in which lanes that are said to touch elements in one way do it in another one."""
    changed = module.clone()
    for block in blocks_in(changed):
        for load in block.loads:
            if load.lanes == LanesAttr(old):
                load.lanes = LanesAttr(new)
        block.lanes = ArrayAttr([LanesAttr(new) if w == LanesAttr(old) else w for w in block.lanes or ()])
    return changed


def transposed() -> Schedule:
    x, z = te.placeholder((4, 8), name="x"), te.placeholder((4,), name="z")
    out = te.compute((8, 4), lambda j, i: x[i, j] + z[i], name="out")
    sch = Schedule([x, z, out], target=CPU)
    sch.reorder("out", "i", "j")
    sch.vectorize("out", "j")
    return sch


@pytest.mark.parametrize(("old", "new"), [("vector", "scalar"), ("vector", "strided 2"), ("scalar", "vector")])
def test_what_lanes_do_not_touch_is_refused(old: str, new: str) -> None:
    """By the interpreter of loops as by the writer of kernels."""
    sch = transposed()
    right = lowered_up_to(sch.module, "lw-vectorize-loops")
    assert {lanes.data.usual for lanes in decided(right)} == {"vector", "scalar", "strided 4"}
    wrong = with_lanes(right, old, new)
    with pytest.raises(InterpretationError, match=f"access as {new} of '[xz]' at lane 1"):
        run_loops(wrong, exact_inputs(sch.workload))
    with pytest.raises(PassFailedException, match=f"which is not {step_of(new)} apart from lane to lane"):
        STEPS[-1]().apply(Context(), wrong)


def test_kernels_are_written_as_decided() -> None:
    """Lanes may be said to touch an element each, wherever these lie: they are gathered and scattered then."""
    sch = transposed()
    inputs = exact_inputs(sch.workload)
    module = lowered_up_to(sch.module, "lw-vectorize-loops")
    for way in ("vector", "strided 4"):
        module = with_lanes(module, way, "scattered")
    np.testing.assert_array_equal(run_loops(module, inputs)[0], run_te(sch.workload, inputs)[0])
    STEPS[-1]().apply(Context(), module)
    found = Counter(type(op) for op in module.walk())
    assert (found[GatherOp], found[ScatterOp], found[LoadOp]) == (1, 1, 1)
    np.testing.assert_array_equal(run_kernel(module, inputs)[0], run_te(sch.workload, inputs)[0])
    compile_module(module)


@pytest.mark.parametrize("row", [72, 36, 24])
def test_copies_of_unrolled_loops_touch_what_all_of_them_touch(row: int) -> None:
    """With the unrolled loop's value known, the digits of a flat index come apart at another place."""
    x = te.placeholder((576 // row, row + 57), name="x")
    out = te.compute((24, 24), lambda i, j: x[(i * 24 + j) // row, (i * 24 + j) % row], name="out")
    sch = Schedule([x, out], target=CPU)
    _, unrolled, lanes = sch.split("out", sch.fuse("out", *sch.get_loops("out")), [None, 4, 4])
    sch.unroll("out", unrolled)
    sch.vectorize("out", lanes)
    inputs = exact_inputs(sch.workload)
    ways = {lanes.data.usual for lanes in decided(lowered_up_to(sch.module, "lw-vectorize-loops"))}
    assert ways == {VECTOR}
    check_lowering(sch.module, inputs, run_te(sch.workload, inputs))


PAIRS = """
func.func @main(%x: memref<5x7x2xf32> {lw.name = "x"}, %p: memref<5xi32> {lw.name = "p", lw.output}, %v: memref<5xf32> {lw.name = "v", lw.output}) {
  lw_loop.for i in 5 {
    lw_loop.for k in 7 {
      lw_loop.for j in 4 vectorized {
        lw_loop.block p (i in 5 = i, j in 1 = j, reduce k in 7 = k) where (0 - j >= 0) writes %p[i] : memref<5xi32>, %v[i] : memref<5xf32> custom [0 : i32, 0xff800000 : f32] {
          %0 = lw_te.index k : i32
          %1 = lw_loop.load %x[i, k, j] : memref<5x7x2xf32>
          lw_te.yield %0, %1 : i32, f32
        } combine {
        ^bb0(%2: i32, %3: f32, %4: i32, %5: f32):
          %6 = arith.cmpf oge, %3, %5 : f32
          %7 = arith.select %6, %2, %4 : i32
          %8 = arith.select %6, %3, %5 : f32
          lw_te.yield %7, %8 : i32, f32
        }
      }
    }
  }
  func.return
}"""  # noqa: E501


def test_one_lane_writes_all_of_a_pair() -> None:
    """Of a pair the place is the same for all lanes, the value is not: joined, neither is."""
    module = Parser(create_context(), PAIRS).parse_module()
    lowered = lowered_up_to(module, "lw-vectorize-loops")
    load, *starts, place, value = [lanes.data.usual for lanes in decided(lowered)]
    assert (load, starts, place, value) == (VECTOR, [SCALAR] * 2, SINGLE, SINGLE)
    x = np.random.default_rng(0).random((5, 7, 2), np.float32)
    STEPS[-1]().apply(Context(), lowered)
    for results in (run_loops(module, [x]), run_kernel(lowered, [x])):
        np.testing.assert_array_equal(results[0], x[..., 0].argmax(axis=1))
        np.testing.assert_array_equal(results[1], x[..., 0].max(axis=1))
