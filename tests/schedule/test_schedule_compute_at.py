"""Moving producers to their readers and consumers to their producers keeps the result, and computes what is needed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from effort import usual
from hypothesis import given, settings
from hypothesis import strategies as st
from moving_workloads import best_index, conv_relu, hold_to_numpy, softmax, stencils, upsample
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.parser import Parser
from xdsl.passes import PassPipeline
from xdsl.universe import Universe

from loopwright import te
from loopwright.dialects.interpret.loop import run_loops
from loopwright.dialects.loop import BlockOp, LwLoop, blocks_in
from loopwright.dialects.te import LwTe
from loopwright.passes.lower.lower_te_to_loop import lower_te_to_loop
from loopwright.passes.primitive import Primitive, ScheduleError
from loopwright.passes.schedule.cache_read import CacheRead
from loopwright.passes.schedule.cache_write import CacheWrite
from loopwright.passes.schedule.compute_at import ComputeAt
from loopwright.passes.schedule.decompose_reduction import DecomposeReduction
from loopwright.passes.schedule.fuse import Fuse
from loopwright.passes.schedule.parallel import Parallel
from loopwright.passes.schedule.reorder import Reorder
from loopwright.passes.schedule.reverse_compute_at import ReverseComputeAt
from loopwright.passes.schedule.rfactor import Rfactor
from loopwright.passes.schedule.split import Split

WORKLOADS: list[Callable[[], ModuleOp]] = [
    conv_relu,
    lambda: conv_relu(7, stride=2),
    lambda: conv_relu(6, padding=2, dilation=2),
    lambda: conv_relu(5, padding=0),
    softmax,
    stencils,
    upsample,
    best_index,
]
MOVES: list[type[Primitive[Any]]] = [ComputeAt, ReverseComputeAt]
OTHERS: list[type[Primitive[Any]]] = [Split, Fuse, Reorder, CacheRead, CacheWrite, Rfactor, DecomposeReduction]


def block(module: ModuleOp, name: str) -> BlockOp:
    """The block called `name`."""
    return next(b for b in blocks_in(module) if b.block_name == name)


def loops_of(module: ModuleOp, name: str) -> list[tuple[str, int]]:
    """The loops around a block as (name, extent)."""
    return [(loop.loop_name, loop.size) for loop in block(module, name).enclosing_loops]


def lowered(module: ModuleOp, steps: list[Primitive[Any]]) -> ModuleOp:
    """The module on loops after `steps`."""
    lower_te_to_loop(module)
    for step in steps:
        step.run(module)
    return module


def refusal(module: ModuleOp, step: Primitive[Any]) -> str:
    """The first line of what `step` refuses with; it must change nothing."""
    before = str(module)
    with pytest.raises(ScheduleError) as caught:
        step.run(module)
    assert str(module) == before
    return str(caught.value).split("\n")[0].split(": ", 1)[1]


@pytest.mark.parametrize("factor", [2, 3, 4, 5])
@pytest.mark.parametrize("shape", [{}, {"stride": 2}, {"size": 6, "padding": 2, "dilation": 2}, {"size": 8}])
@pytest.mark.few(8)
def test_tiles_of_a_convolution(factor: int, shape: dict[str, int]) -> None:
    hold_to_numpy(
        conv_relu(**shape),
        [
            Split("relu", "y", (0, factor)),
            Split("relu", "x", (0, 3)),
            Reorder("relu", ("y0", "x0", "y1", "x1")),
            ComputeAt("conv", "x0"),
            Split("conv", "rc", (0, 2)),
            ComputeAt("pad_temp", "rc0"),
        ],
    )


@pytest.mark.parametrize("factor", [2, 5, 16])
@pytest.mark.parametrize("size", [5, 7])
def test_fused_axes_both_ways(factor: int, size: int) -> None:
    hold_to_numpy(
        conv_relu(size),
        [
            Fuse("relu", ("y", "x")),
            Split("relu", "y_x", (0, factor)),
            ComputeAt("conv", "y_x0"),
            ComputeAt("pad_temp", "x"),
        ],
    )
    hold_to_numpy(
        conv_relu(size),
        [
            Fuse("conv", ("f", "y", "x")),
            Split("conv", "f_y_x", (0, factor)),
            Split("conv", "rc", (0, 2)),
            Reorder("conv", ("f_y_x0", "rc0", "f_y_x1", "rc1")),
            ReverseComputeAt("relu", "f_y_x0"),
            ComputeAt("pad_temp", "rc0"),
        ],
    )


def test_digits_of_a_fused_axis_stay_digits_of_one_number() -> None:
    """Of 28 x 28 pixels in tiles of 16 the image is `t floordiv 49` besides, which hides that pixels are near."""
    a = te.placeholder((2, 28, 28), name="a")
    b = te.compute((2, 28, 28), lambda n, y, x: a[n, y, x] * 2, name="b")
    c = te.compute((2, 28, 28), lambda i, j, k: b[i, j, k] + 1, name="c")
    steps: list[Primitive[Any]] = [
        Fuse("b", ("n", "y", "x")),
        Split("b", "n_y_x", (0, 16)),
        ReverseComputeAt("c", "n_y_x1"),
    ]
    bound = block(hold_to_numpy(te.create_module([a, c]), steps), "c").bound
    assert str(bound["i"] * 784 + bound["j"] * 28 + bound["k"]) == "n_y_x0 * 16 + n_y_x1"


def test_only_the_region_needed_is_computed() -> None:
    module = hold_to_numpy(
        conv_relu(7, stride=2), [Split("conv", "x", (2, 2)), ComputeAt("pad_temp", "x0"), Split("conv", "y", (2, 2))]
    )
    assert loops_of(module, "pad_temp")[-3:] == [("i1", 3), ("i2", 3), ("i3", 5)]
    module = hold_to_numpy(conv_relu(7), [ComputeAt("pad_temp", "rx")])
    assert loops_of(module, "pad_temp") == [("n", 1), ("f", 5), ("y", 7), ("x", 7), ("rc", 3), ("ry", 3), ("rx", 3)]
    assert not block(module, "pad_temp").conditions
    module = hold_to_numpy(upsample(5), [Split("twice", "y", (0, 4)), ComputeAt("scaled", "y0")])
    assert loops_of(module, "scaled") == [("y0", 3), ("i", 2), ("j", 5)]


def test_predicates_only_where_the_region_leaves_the_domain() -> None:
    module = hold_to_numpy(conv_relu(7), [Split("conv", "y", (0, 4)), ComputeAt("pad_temp", "y0")])
    assert [str(c) for c in block(module, "pad_temp").conditions] == ["8 - y0 * 4 - i2"]
    module = hold_to_numpy(conv_relu(6), [Split("conv", "y", (0, 3)), ComputeAt("pad_temp", "y0")])
    assert not block(module, "pad_temp").conditions


def test_a_row_at_a_time() -> None:
    steps = [ComputeAt("total", "i"), ComputeAt("e", "i", "norm"), ComputeAt("top", "i", "e")]
    module = hold_to_numpy(softmax(), steps)
    assert [loops_of(module, name)[0] for name in ("top", "e", "total", "norm")] == [("i", 5)] * 4
    assert "all readers of 'e' must be under 'j'" in refusal(module, ComputeAt("e", "j", "total"))


def test_reductions_follow_where_they_stay_whole() -> None:
    module = hold_to_numpy(softmax(), [ReverseComputeAt("total", "i", "e")])
    assert loops_of(module, "total") == [("i", 5), ("c", 7)]
    module = lowered(softmax(), [])
    assert "reduces over what it reads" in refusal(module, ReverseComputeAt("total", "c"))
    module = lowered(softmax(), [Fuse("e", ("i", "c"))])
    assert "reduces over what it reads" in refusal(module, ReverseComputeAt("total", "i_c"))


def test_several_outputs_move_together() -> None:
    module = hold_to_numpy(
        best_index(), [Split("picked", "i", (0, 3)), ComputeAt("arg", "i0"), ComputeAt("scaled", "k")]
    )
    assert loops_of(module, "scaled")[-1] == ("k", 7)
    hold_to_numpy(
        best_index(), [Split("arg", "i", (0, 3)), ReverseComputeAt("picked", "i1"), ComputeAt("scaled", "i0")]
    )


def test_caches_move() -> None:
    hold_to_numpy(
        conv_relu(7, stride=2),
        [
            CacheWrite("conv"),
            Split("conv", "x", (0, 3)),
            ReverseComputeAt("conv_local", "x0"),
            CacheRead("conv", "pad_temp"),
            ComputeAt("pad_temp_local", "rc"),
            ComputeAt("pad_temp", "y"),
        ],
    )


def test_parts_of_an_uneven_rfactor_move() -> None:
    module = hold_to_numpy(
        conv_relu(), [Split("conv", "rx", (0, 2)), Rfactor("conv", "rx1"), ComputeAt("conv_rf", "f", "conv")]
    )
    assert any("rx" in str(c) for c in block(module, "conv_rf").conditions)
    layout = tuple(a.name for a in block(module, "conv_rf").axes if a.name in ("f", "rc", "ry", "rx0", "rx1"))
    hold_to_numpy(
        conv_relu(),
        [Split("conv", "rx", (0, 2)), Rfactor("conv", "rx1"), CacheRead("conv_rf", "weight", "local", layout)],
    )


def test_a_producer_moves_again() -> None:
    once = hold_to_numpy(conv_relu(), [Split("relu", "y", (0, 2)), ComputeAt("conv", "y1")])
    again = hold_to_numpy(
        conv_relu(),
        [Split("relu", "y", (0, 2)), ComputeAt("conv", "f"), ComputeAt("conv", "x"), ComputeAt("conv", "y1")],
    )
    assert str(again) == str(once)


def test_what_a_moved_block_reads_must_be_there() -> None:
    module = lowered(conv_relu(), [ComputeAt("conv", "y"), ComputeAt("pad_temp", "y")])
    assert refusal(module, ComputeAt("conv", "f")).endswith("must be there, but 'pad_temp' writes 'pad_temp' later")
    ComputeAt("conv", "x").check(module)


PAIRS = """
func.func @pairs(%X: memref<8xf32> {lw.name = "X"}, %C: memref<8xf32> {lw.name = "C", lw.output}) {
  %P = lw_loop.alloc "P" : memref<8xf32>
  %B = lw_loop.alloc "B" : memref<8xf32>
  lw_loop.for q in 4 {
    lw_loop.for a in 2 {
      lw_loop.block P (i in 8 = q * 2 + a) writes %P[i] : memref<8xf32> {
        %x = lw_loop.load %X[i] : memref<8xf32>
        lw_te.yield %x : f32
      }
    }
    lw_loop.for b in 2 {
      lw_loop.block B (i in 8 = q * 2 + b) writes %B[i] : memref<8xf32> {
        %p = lw_loop.load %P[i] : memref<8xf32>
        lw_te.yield %p : f32
      }
    }
    lw_loop.for c in 2 {
      lw_loop.block C (i in 8 = q * 2 + c) writes %C[i] : memref<8xf32> {
        %b = lw_loop.load %B[i] : memref<8xf32>
        %n = lw_loop.load %B[i + 1] where (0 - i mod 2 >= 0) : memref<8xf32>
        %s = arith.addf %b, %n : f32
        lw_te.yield %s : f32
      }
    }
  }
  func.return
}
"""


def test_a_moved_block_reads_no_more_than_is_computed() -> None:
    context = Context()
    for dialect in (Builtin, Func, Arith, LwTe, LwLoop):
        context.load_dialect(dialect)
    module = Parser(context, PAIRS).parse_module()
    assert "'B' would read more of 'P' than 'P' computes there" in refusal(module, ComputeAt("B", "q"))
    x = np.arange(8, dtype="float32")
    run_loops(module, [x])
    ReverseComputeAt("B", "a").run(module)
    (result,) = run_loops(module, [x])
    np.testing.assert_array_equal(result, x + np.where(x % 2 == 0, x + 1, 0))


def sharing() -> ModuleOp:
    """`p` read element by element by `r`, and shifted by `s`; both by `out`."""
    x = te.placeholder((6, 8), name="x")
    p = te.compute((6, 8), lambda i, j: x[i, j] * 2.0, "p")
    r = te.compute((6, 7), lambda i, j: p[i, j] + 1.0, "r")
    s = te.compute((6, 7), lambda i, j: p[i, j + 1] - p[i, j], "s")
    out = te.compute((6, 7), lambda i, j: r[i, j] * s[i, j], "out")
    return te.create_module([x, out])


def test_a_consumer_takes_just_its_share() -> None:
    steps: list[Primitive[Any]] = [Split("out", "j", (0, 4))]
    steps += [ComputeAt(name, "j0") for name in ("s", "r", "p")]
    module = hold_to_numpy(sharing(), steps)
    text = refusal(module, ReverseComputeAt("r", "j", "p"))
    assert "'p' must compute just what 'r' reads in each iteration of 'j0'" in text
    module = lowered(conv_relu(), [Fuse("relu", ("y", "x")), Split("relu", "y_x", (0, 4)), ComputeAt("conv", "y_x0")])
    text = refusal(module, ReverseComputeAt("relu", "y"))
    assert "'relu' must read a box of what 'conv' computes in each iteration of 'y_x0'" in text
    steps = [Split("relu", "x", (0, 3)), ComputeAt("conv", "x0"), ReverseComputeAt("relu", "x")]
    module = hold_to_numpy(conv_relu(6), steps)
    assert loops_of(module, "relu") == [("n", 1), ("f", 5), ("y", 6), ("x0", 2), ("x", 3)]


def test_iterations_that_run_at_once_keep_their_own_data() -> None:
    module = lowered(conv_relu(), [ComputeAt("pad_temp", "y"), Parallel("conv", "y")])
    assert "must stay together in 'y'" in refusal(module, ComputeAt("conv", "f", "relu"))


def test_a_recomputed_producer_is_not_followed() -> None:
    steps: list[Primitive[Any]] = [CacheRead("conv", "pad_temp"), ComputeAt("pad_temp_local", "f")]
    steps.append(ComputeAt("pad_temp", "f"))
    module = hold_to_numpy(conv_relu(), steps)
    text = refusal(module, ReverseComputeAt("pad_temp_local", "f", "pad_temp"))
    assert "would run again in each iteration of 'f'" in text


@pytest.mark.parametrize("workload", range(len(WORKLOADS)))
@pytest.mark.few(2)
def test_every_step_of_the_space_is_legal_and_right(workload: int) -> None:
    for primitive in MOVES:
        steps = primitive.schedule_space(Context(), lowered(WORKLOADS[workload](), []))
        for step in steps:
            hold_to_numpy(WORKLOADS[workload](), [step])


@given(st.data())
@settings(max_examples=30 * usual(2))
@pytest.mark.slow(1.2)
def test_random_moves(data: st.DataObject) -> None:
    module = data.draw(st.sampled_from(WORKLOADS))()
    loops = module.clone()
    lower_te_to_loop(loops)
    steps: list[Primitive[Any]] = []
    for _ in range(data.draw(st.integers(1, 7))):
        kind = data.draw(st.sampled_from([*MOVES * 3, *OTHERS]))
        space = kind.schedule_space(Context(), loops)
        if space:
            steps.append(data.draw(st.sampled_from(space)))
            steps[-1].run(loops)
    hold_to_numpy(module, steps)


def test_texts_parse_back() -> None:
    passes = Universe.get_multiverse().all_passes
    for step in (
        ComputeAt("a", "b"),
        ComputeAt("a", "b", "c"),
        ReverseComputeAt("a", "b"),
        ReverseComputeAt("a", "b", "c"),
    ):
        assert PassPipeline.parse_spec(passes, str(step)).passes == (step,)


def test_a_loop_of_one_iteration_that_was_split_is_followed() -> None:
    x = te.placeholder((1, 6, 2), name="x")
    k = te.reduce_axis((0, 6), "k")
    total = te.compute((1, 1, 2), lambda i, j, v: te.sum(x[i, k, v], axis=k), "total")
    out = te.compute((1, 1, 2), lambda i, j, v: total[i, j, v] + 1.0, "out")
    steps: list[Primitive[Any]] = [Reorder("total", ("i", "j", "k", "v")), Fuse("total", ("i", "j"))]
    steps += [Split("total", "i_j", (0, 4)), ReverseComputeAt("out", "i_j1")]
    module = hold_to_numpy(te.create_module([x, out]), steps)
    assert loops_of(module, "out") == [("i_j0", 1), ("i_j1", 4), ("v", 2)]
