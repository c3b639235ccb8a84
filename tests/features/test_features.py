"""Features of kernels scheduled by hand, against numbers worked out on paper; expressions against plain numbers."""

import gc
import operator
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.presets import preset_target
from loopwright.dialects.target import Target
from loopwright.passes.parametric import sizes as sz
from loopwright.search.features.catalogue import SLOTS, catalogue, described, names
from loopwright.search.features.native import BLOCK_ROWS, LANES, Picked, run_program
from loopwright.search.features.of_records import features_of_schedule
from loopwright.search.features.of_sketch import SketchFeatures
from loopwright.search.features.program import Program
from loopwright.search.rules._gpu_factors import largest_divisors

LLVM = preset_target("llvm cores=4 vector_bytes=32 vector_registers=16 l1_bytes=32768 l2_bytes=1048576")
H200 = preset_target("cuda model=h200")


def matmul(m: int, n: int, k: int) -> ModuleOp:
    a, b = te.placeholder((m, k), name="a"), te.placeholder((k, n), name="b")
    return te.create_module([a, b, topi.matmul(a, b)])


def of(module: ModuleOp, target: Target, *steps: str) -> dict[str, float]:
    text = ",".join(["lw-lower-te-to-loop", *steps]).replace("{B ", "{block='T_matmul' ").replace("'", '"')
    values = features_of_schedule(module, target, text)
    return dict(zip(names(), values.tolist(), strict=False))


def times(value: float, work: float) -> object:
    """Return the count of a feature in unit `log2/work`, a share of the work: equal to numbers near it."""
    return pytest.approx(2.0**value * work, rel=1e-3)


def count(value: float) -> object:
    """Return the count of a feature in unit `log`: equal to numbers near it."""
    return pytest.approx(2.0**value - 1, rel=1e-3)


def test_the_catalogue_names_each_column_once() -> None:
    assert len(set(names())) == len(names()) == len(catalogue())
    units = {f.unit for f in catalogue()}
    assert units == {"log", "log2", "log bytes", "log2/work", "1/work", "log2/ideal", "share", "count", "0 or 1"}
    assert all(f.text for f in catalogue())
    assert len(described()) == len(names()) + 1 - (len(SLOTS) - 1) * sum(n.startswith("main.write.") for n in names())


def test_a_plain_product_of_matrices() -> None:
    f = of(matmul(8, 16, 32), LLVM)
    work = 2 * 8 * 16 * 32
    assert work == count(f["program.work"]) == times(f["program.operations"], work)
    assert work / 2 == times(f["main.iterations"], work) == times(f["program.iterations"], work)
    assert f["main.operations.add"] == f["main.operations.multiply"] == 0.5
    assert f["main.operations.special"] == f["main.waste"] == f["others.iterations"] == 0
    assert times(f["program.global_bytes"], work) == 4 * (8 * 32 + 32 * 16 + 8 * 16)
    assert f["main.lanes"] == f["main.tasks"] == f["main.threads"] == 1.0  # one of each


def test_accesses_of_a_plain_product() -> None:
    f = of(matmul(8, 16, 32), LLVM)  # i, j, k: a[i, k] b[k, j] into c[i, j]
    c, a, b = (lambda n, s=s: f[f"main.{s}.{n}"] for s in ("write", "read0", "read1"))
    work = 2 * 8 * 16 * 32
    assert all(times(x("bytes"), work) == 4 * 8 * 16 * 32 for x in (a, b, c))
    assert [times(x("unique_bytes"), work) for x in (a, b, c)] == [4 * 8 * 32, 4 * 32 * 16, 4 * 8 * 16]
    assert [count(x("stride")) for x in (a, b, c)] == [1, 16, 0]
    assert times(b("lines"), work) == 8 * 16 * 32 and times(a("lines"), work) == 8 * 16 * 32 / 16
    assert times(a("unique_lines"), work) == 16 and times(b("unique_lines"), work) == 32
    assert a("reused") == b("reused") == c("reused") == 1
    # k repeats c at once, j repeats a after all of k, i repeats b after all of j and k.
    assert [count(x("reuse_count")) for x in (c, a, b)] == [32, 16, 8]
    assert [count(x("reuse_iterations")) for x in (c, a, b)] == [1, 32, 32 * 16]
    assert count(a("reuse_bytes")) == 4 * (32 + 32 + 1)
    assert count(b("reuse_bytes")) == 4 * (32 + 32 * 16 + 16)


def test_tiles_lanes_and_unrolling_on_a_cpu() -> None:
    f = of(
        matmul(30, 64, 32),
        LLVM,
        "lw-split{B loop='i' factors=0,4}",
        "lw-split{B loop='j' factors=0,2,8}",
        "lw-reorder{B loops='i0','j0','k','i1','j1','j2'}",
        "lw-vectorize{B loop='j2'}",
        "lw-unroll{B loop='j1'}",
        "lw-unroll{B loop='i1'}",
        "lw-parallel{B loop='i0'}",
    )
    assert f["main.waste"] == pytest.approx(np.log2(32 / 30), abs=1e-5)
    assert [count(f[f"main.{n}"]) for n in ("tasks", "lanes", "unrolled")] == [8, 8, 8]
    assert f["main.lane_bytes"] == 0.0 and f["main.balance"] == 1.0
    assert count(f["main.code"]) == 2 * 4 * 2 * 8 and count(f["main.accumulators"]) == 4 * 16
    assert count(f["main.reduce_outside"]) == 32 and count(f["main.reduce_inside"]) == 1
    assert count(f["main.read0.code_elements"]) == 4 and count(f["main.read1.code_elements"]) == 16
    assert count(f["main.read1.code_requests"]) == 2  # two vectors of eight
    assert f["main.read1.contiguous"] == 1 and f["main.read0.broadcast"] == 1 and f["main.read0.contiguous"] == 0
    assert f["main.operands_per_operation"] == pytest.approx(np.log2((4 + 16) / 128), abs=1e-4)
    assert [count(f[f"main.loop.extent{n}"]) for n in (0, 1, 2)] == [32, 4, 8]
    assert [f[f"main.loop.reduces{n}"] for n in (0, 1, 2)] == [1, 0, 0]
    assert count(f["main.loop.tile0"]) == 2 and count(f["main.loop.tile1"]) == 4


def test_cache_traffic_follows_the_loop_that_fits() -> None:
    small = of(matmul(64, 64, 64), LLVM)  # 48 KB: too much for the first cache, one row of a with all of b as well
    assert times(small["main.l2_bytes"], 2 * 64**3) == 3 * 64 * 64 * 4
    rows = 64 * (64 * 4 + 64 * 64 * 4 + 64 * 4)
    assert times(small["main.l1_bytes"], 2 * 64**3) == rows
    assert small["main.tile_in_l1"] == pytest.approx(np.log2(4 * (64 + 64 + 1) / 32768), abs=1e-3)


def on_gpu(*steps: str, m: int = 256, n: int = 256, k: int = 64, target: Target = H200) -> dict[str, float]:
    return of(
        matmul(m, n, k),
        target,
        "lw-split{B loop='i' factors=0,4,8}",
        "lw-split{B loop='j' factors=0,32,2}",
        "lw-reorder{B loops='i0','j0','i1','j1','k','i2','j2'}",
        "lw-fuse{B loops='i0','j0'}",
        "lw-bind{B loop='i0_j0' thread='blockIdx.x'}",
        "lw-fuse{B loops='i1','j1'}",
        "lw-bind{B loop='i1_j1' thread='threadIdx.x'}",
        "lw-unroll{B loop='i2'}",
        "lw-vectorize{B loop='j2'}",
        *steps,
    )


def test_geometry_and_occupancy_on_a_gpu() -> None:
    f = on_gpu("lw-cache-write{B scope='local' label='tile'}", "lw-reverse-compute-at{block='tile' loop='i1_j1'}")
    assert count(f["main.tasks"]) == 8 * 4 and count(f["main.threads"]) == 128
    assert f["main.idle_lanes"] == 0 and count(f["main.waves"]) == 1
    registers = 24 + 16 + (8 + 2)  # indices, accumulators, operands of one step
    assert count(f["main.registers"]) == registers and f["main.spilled"] == 0
    resident = min(2048 // 128, 65536 // (registers * 128), 32)
    assert count(f["main.resident_blocks"]) == resident
    assert f["main.occupancy"] == pytest.approx(resident * 128 / 2048)
    assert count(f["main.warps"]) == resident * 4
    assert f["main.balance"] == pytest.approx(32 / (132 * resident))
    assert f["main.write.is_local"] == 1 and f["main.read0.is_local"] == 0


def test_neighbouring_threads_on_neighbouring_elements_share_sectors() -> None:
    f = on_gpu()
    assert count(f["main.read1.sectors"]) == 32 * 2 * 4 / 32  # b[k, j]: each of 32 threads reads two floats
    assert count(f["main.read0.sectors"]) == 1  # a[i, k]: all threads of a warp are in one row
    strided = of(
        matmul(256, 256, 64),
        H200,
        "lw-reorder{B loops='j','i','k'}",
        "lw-bind{B loop='j' thread='blockIdx.x'}",
        "lw-bind{B loop='i' thread='threadIdx.x'}",
    )
    assert count(strided["main.read0.sectors"]) == 32 and count(strided["main.read1.sectors"]) == 1


@pytest.mark.parametrize(("offset", "ways"), [(0, 32), (1, 1), (4, 4), (8, 8)])
def test_bank_conflicts_of_columns_go_away_with_padding(offset: int, ways: int) -> None:
    f = of(
        matmul(32, 64, 32),
        H200,
        "lw-reorder{B loops='j','i','k'}",
        "lw-bind{B loop='j' thread='blockIdx.x'}",
        "lw-bind{B loop='i' thread='threadIdx.x'}",
        "lw-cache-read{B buffer='a' scope='shared'}",
        "lw-compute-at{block='a_shared' loop='i' unit_loops=true}",
        f"lw-storage-align{{block='a_shared' axis=0 factor=32 offset={offset}}}",
    )
    assert f["main.read0.bank_conflicts"] == np.log2(ways)
    assert f["main.read0.is_shared"] == 1
    assert count(f["main.shared_bytes"]) == (31 * (32 + offset) + 32) * 4  # no padding behind the last row


def test_shared_memory_counts_stages_of_a_pipeline() -> None:
    def staged(*steps: str) -> dict[str, float]:
        return of(
            matmul(64, 64, 64),
            H200,
            "lw-split{B loop='k' factors=0,8}",
            "lw-reorder{B loops='i','j','k0','k1'}",
            "lw-bind{B loop='i' thread='blockIdx.x'}",
            "lw-bind{B loop='j' thread='threadIdx.x'}",
            "lw-cache-read{B buffer='b' scope='shared'}",
            "lw-compute-at{block='b_shared' loop='k0' unit_loops=true}",
            *steps,
        )

    plain, deep = staged(), staged("lw-pipeline{B loop='k0' stages=3}")
    assert count(plain["main.shared_bytes"]) == 8 * 64 * 4
    assert count(deep["main.shared_bytes"]) == 3 * 8 * 64 * 4
    assert plain["main.pipeline_stages"] == 1 and deep["main.pipeline_stages"] == 3
    assert deep["main.waste"] == plain["main.waste"] == 0


def test_bounds_grow_with_what_they_bound() -> None:
    few, many = on_gpu(k=64), on_gpu(k=128)  # twice the work: relative to it, nothing changes but what is done once
    for name in ("arithmetic", "issue", "near", "latency"):
        assert many[f"bound.{name}"] == pytest.approx(few[f"bound.{name}"], abs=0.1)
    assert many["bound.total"] < few["bound.total"]
    assert min(many[f"bound.{name}"] for name in ("arithmetic", "issue", "total")) > 0
    assert many["bound.total"] >= many["bound.main"] >= max(many[f"bound.{n}"] for n in ("far", "near", "arithmetic"))
    unvectorized = of(matmul(64, 64, 64), LLVM)
    vectorized = of(matmul(64, 64, 64), LLVM, "lw-reorder{B loops='i','k','j'}", "lw-vectorize{B loop='j'}")
    assert vectorized["bound.arithmetic"] == pytest.approx(unvectorized["bound.arithmetic"] - 3)


# -- expressions ----------------------------------------------------------------------------------------------------

InRow = Callable[[int], float]
"""The value of an expression in a row."""
BINARY = ("add", "sub", "mul", "floordiv", "mod", "minimum", "maximum", "less", "equal", "gcd")


@given(st.data())
def test_programs_compute_what_numbers_do(data: st.DataObject) -> None:
    columns = {
        name: np.array([1, 2, 3, 7, 16, 60], dtype=np.int64)[:: data.draw(st.sampled_from((1, -1)))] for name in "xy"
    }
    graph = sz.SizeGraph()
    pool: list[tuple[sz.Size, InRow]] = [(graph.column(n), partial(_at, columns[n])) for n in "xy"]
    pool += [(c, partial(_same, c)) for c in (0, 1, 2, 7)]
    for _ in range(data.draw(st.integers(1, 12))):
        (a, fa), (b, fb), (c, fc) = (data.draw(st.sampled_from(pool)) for _ in range(3))
        op = data.draw(st.sampled_from((*BINARY, "where")))
        if op in ("floordiv", "mod", "gcd"):  # by sizes, which are positive
            b, fb = data.draw(st.sampled_from([p for p in pool[:6] if not (isinstance(p[0], int) and p[0] == 0)]))
            a, fa = sz.maximum(a, 0), partial(_result, "maximum", (fa, partial(_same, 0)))
        if op == "where":
            pool.append((_apply(op, a, b, c), partial(_result, op, (fa, fb, fc))))
        else:
            pool.append((_apply(op, a, b), partial(_result, op, (fa, fb))))
    found = run_program(Program(graph, [p for p, _ in pool]), columns, 6)
    wanted = np.array([[f(row) for row in range(6)] for _, f in pool], dtype=np.float64)
    np.testing.assert_allclose(found, wanted.astype(np.float32), rtol=1e-6)


def _at(column: npt.NDArray[np.int64], row: int) -> int:
    return int(column[row])


def _same(number: int, row: int) -> int:
    return number


def _result(op: str, operands: tuple[InRow, ...], row: int) -> float:
    values = [operand(row) for operand in operands]
    if op == "where":
        return values[1] if values[0] else values[2]
    return sz.NUMBERS[op](*values)


def _apply(op: str, *args: sz.Size) -> sz.Size:
    function: Callable[..., sz.Size] = getattr(operator, op, None) or getattr(sz, op)
    return function(*args)


_BY_NUMPY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "floordiv": lambda a, b: np.floor(np.divide(a, b)),
    "mod": lambda a, b: a - np.floor(np.divide(a, b)) * b,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "gcd": lambda a, b: np.gcd(a.astype(np.int64), b.astype(np.int64)),
    "less": np.less,
    "equal": np.equal,
    "where": lambda condition, yes, no: np.where(condition != 0, yes, no),
    "log2": np.log2,
    "absolute": np.absolute,
}


def _by_numpy(
    graph: sz.SizeGraph, outputs: list[sz.Size], columns: dict[str, npt.NDArray[np.int64]], rows: int
) -> npt.NDArray[np.float32]:
    """The outputs of a graph, one expression after the other in doubles."""
    known: dict[int, npt.NDArray[np.float64]] = {}

    def value(size: Any) -> npt.NDArray[np.float64]:
        return known[size.index] if isinstance(size, sz.SizeValue) else np.full(rows, size, dtype=np.float64)

    with np.errstate(all="ignore"):
        for node in graph.nodes:
            found = columns[str(node.args[0])] if node.op == "column" else _BY_NUMPY[node.op](*map(value, node.args))
            known[node.index] = found.astype(np.float64)
        return np.array([value(size) for size in outputs], dtype=np.float32)


@pytest.mark.parametrize("rows", (1, LANES, 3 * LANES + 5, 2 * BLOCK_ROWS + 3))
def test_machine_code_computes_what_numpy_does(rows: int) -> None:
    """To the last bit, infinities and what is no number included."""
    rng = np.random.default_rng(rows)
    columns = {name: rng.integers(0, 50, rows) for name in "xyz"}
    graph = sz.SizeGraph()
    pool: list[sz.Size] = [*(graph.column(name) for name in "xyz"), 0, 1, 7, 0.3, -5]
    for op in rng.permutation([*BINARY, "div", "where", "log2", "absolute"] * 12):
        args = [pool[int(n)] for n in rng.integers(len(pool), size=3)]
        if op == "gcd":  # of whole numbers
            args = [pool[int(n)] for n in rng.integers(3, size=2)]
        if isinstance(args[0], sz.SizeValue):
            pool.append(_node(graph, op, args))
    program = Program(graph, pool)
    wanted = _by_numpy(graph, pool, columns, rows)
    found = run_program(program, columns, rows)
    assert not np.isfinite(wanted).all() and len(pool) > 100
    np.testing.assert_array_equal(found, wanted)


def _node(graph: sz.SizeGraph, op: str, args: list[Any]) -> sz.Size:
    if op == "where":
        return graph.choice(*args)
    return graph.one(op, args[0]) if op in ("log2", "absolute") else graph.two(op, *args[:2])


def test_columns_may_be_picked_where_a_program_runs() -> None:
    """Choices at positions in rows, beside columns of whole numbers, of floats, of truths, and of one element."""
    rng = np.random.default_rng(4)
    choices = rng.random((4, 5))
    rows = rng.integers(0, 5, (2 * BLOCK_ROWS + 3, 6))
    graph = sz.SizeGraph()
    names = ("picked", "whole", "float", "truth", "strided", "one")
    program = Program(graph, [graph.column(name) + 0.5 for name in names])
    others = {"whole": rows[:, 5].copy(), "strided": rows[:, 1], "one": np.array([7])}
    others |= {"float": rng.random(len(rows)), "truth": rows[:, 0] > 2}
    expected = np.array([choices[3].take(rows[:, 4]), *(others[name] * np.ones(len(rows)) for name in names[1:])]) + 0.5
    found = run_program(program, Picked(rows, choices, {"picked": (4, 3)}, others), len(rows), np.float64)
    np.testing.assert_array_equal(found, expected)
    few = Picked(rows[::2], choices, {"picked": (4, 3)}, {name: v[::2] for name, v in others.items()})
    np.testing.assert_array_equal(run_program(program, few, len(few.rows), np.float64), expected[:, ::2])


def test_largest_divisors_are_operations_of_programs() -> None:
    counts, most = (axis.ravel() for axis in np.meshgrid(np.arange(1, 300), np.arange(1, 80), indexing="ij"))
    counts, most = np.append(counts, [10718, 999983, 1 << 40]), np.append(most, [5000, 7, 1 << 17])
    graph = sz.SizeGraph()
    program = Program(graph, [sz.largest_divisor(graph.column("count"), graph.column("most"))])
    (found,) = run_program(program, {"count": counts, "most": most}, len(counts), np.float64)
    np.testing.assert_array_equal(found, largest_divisors(counts, most))
    np.testing.assert_array_equal(
        found[::97], [sz.largest_divisor(int(n), int(m)) for n, m in zip(counts[::97], most[::97], strict=True)]
    )


def test_equal_expressions_are_one() -> None:
    graph = sz.SizeGraph()
    x, y = graph.column("x"), graph.column("y")
    assert (x + y) is (y + x) and (x * y) * 1 is y * x and (x - x) == 0 and 0 * x == 0
    assert sz.where(1, x, y) is x and sz.minimum(x, x) is x
    assert Program(graph, [x * y + 1, 1 + y * x]).operations == 2


def test_slots_are_used_again() -> None:
    """A chain needs two beside its column, an operand that is there twice leaves one, and constants are behind."""
    graph = sz.SizeGraph()
    x: sz.Size = graph.column("x")
    _ = x * 77 + 55  # which nobody needs
    found = sz.square_root(x + 1)
    for n in range(40):
        found = sz.minimum(found * found, x + n) - 0.5
    program = Program(graph, [found, 0.5, x])
    assert program.columns == {"x": 0} and program.slots == 3
    assert {77.0, 55.0}.isdisjoint(program.constants.tolist()) and program.results.tolist()[2] == 0
    assert program.constants[program.results[1] - program.slots] == 0.5
    expected = 2.0
    for n in range(40):
        expected = min(expected * expected, 3 + n) - 0.5
    np.testing.assert_array_equal(run_program(program, {"x": np.array([3])}, 1, np.float64), [[expected], [0.5], [3]])


def test_graphs_may_grow_between_programs() -> None:
    graph = sz.SizeGraph()
    x, y = graph.column("x"), graph.column("y")
    columns = {"x": np.array([6.0]), "y": np.array([4.0])}
    assert run_program(Program(graph, [x + y]), columns, 1, np.float64).tolist() == [[10]]
    later = sz.where(sz.less(y, x), graph.column("z") + x + y, 0)
    assert run_program(Program(graph, [later]), {**columns, "z": np.array([1.0])}, 1, np.float64).tolist() == [[11]]


def test_expressions_end_with_their_graph() -> None:
    """Without a collector, which would have to look at all of them."""
    gc.disable()
    try:
        graph = sz.SizeGraph()
        x, y = graph.column("x"), graph.column("y")
        found = sz.maximum(x * y + 1, x // 3)
        program = Program(graph, [found])
        nodes = len(graph.nodes)
        before = _live_expressions()
        graph.forget()
        del x, y, found
        assert _live_expressions() == before - nodes
        columns = {"x": np.array([2, 9]), "y": np.array([5, 0])}
        np.testing.assert_array_equal(run_program(program, columns, 2), [[11, 3]])
    finally:
        gc.enable()


def _live_expressions() -> int:
    return sum(type(each) is sz.SizeValue for each in gc.get_objects())


@pytest.mark.parametrize("target", ("cuda model=h200", "llvm cores=1"))
def test_a_sketch_keeps_programs_and_no_expressions(target: str) -> None:
    """Seconds of builds and limits of unrolling are known when features are, of which the expressions are let go."""
    a, b = te.placeholder((256, 256), name="a"), te.placeholder((256, 256), name="b")
    (first, *_) = lw.SearchTask([a, b, topi.nn.matmul(a, b)], target=target).sketches
    rows = first.population.sample(np.random.default_rng(0), 40)
    wanted = first.features(rows)
    described = first.describe
    assert isinstance(described, SketchFeatures) and "_view" not in vars(described)
    assert (first.build_seconds(rows) is None) == target.startswith("llvm")
    assert (described.steps_allowed(first.columns(rows), len(rows)) is None) == target.startswith("llvm")
    np.testing.assert_array_equal(first.features(rows), wanted)


def test_threads_that_ask_a_sketch_at_once_get_the_same() -> None:
    """One of them makes the programs, and takes the expressions apart that all would make them of."""
    a, b = te.placeholder((64, 96), name="a"), te.placeholder((96, 32), name="b")
    first, again = (lw.SearchTask([a, b, topi.nn.matmul(a, b)], target="llvm cores=1").sketches[0] for _ in range(2))
    rows = first.population.sample(np.random.default_rng(0), 8)
    begin = Barrier(4)

    def features(_: int) -> npt.NDArray[np.float32]:
        begin.wait()
        return first.features(rows)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(features, range(4)))
    finally:
        sys.setswitchinterval(usual)
    for each in found:
        np.testing.assert_array_equal(each, again.features(rows))
