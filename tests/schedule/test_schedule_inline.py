"""Inlining producers into readers and elementwise consumers into producers keeps the result."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from effort import usual
from hypothesis import given, settings
from hypothesis import strategies as st
from moving_workloads import best_index, conv_relu, hold_to_numpy, softmax, stencils, upsample
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import PassPipeline
from xdsl.universe import Universe

from loopwright import te
from loopwright.dialects.interpret.loop import run_loops
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.loop import AllocOp, BlockOp, blocks_in
from loopwright.passes.lower.lower_te_to_loop import lower_te_to_loop
from loopwright.passes.primitive import Primitive, ScheduleError
from loopwright.passes.schedule.compute_at import ComputeAt
from loopwright.passes.schedule.compute_inline import ComputeInline
from loopwright.passes.schedule.fuse import Fuse
from loopwright.passes.schedule.parallel import Parallel
from loopwright.passes.schedule.reverse_compute_at import ReverseComputeAt
from loopwright.passes.schedule.reverse_compute_inline import ReverseComputeInline
from loopwright.passes.schedule.split import Split
from loopwright.passes.schedule.transform_layout import TransformLayout
from loopwright.topi.nn.pad import pad


def elementwise(rows: int = 5, columns: int = 7) -> ModuleOp:
    """`a` -> `b` (transposed) -> `c` (row vector broadcast) -> `d` (back, with an axis of extent 1)."""
    x = te.placeholder((rows, columns), name="x")
    v = te.placeholder((columns,), name="v")
    a = te.compute((rows, columns), lambda i, j: te.exp(x[i, j]), "a")
    b = te.compute((columns, rows), lambda i, j: a[j, i] + 1.0, "b")
    c = te.compute((columns, rows), lambda i, j: b[i, j] * v[i], "c")
    d = te.compute((1, rows, columns), lambda u, i, j: c[j, i] - x[i, j], "d")
    return te.create_module([x, v, d])


def padded_chain(value: float = 0.0, scale: float = 2.0, shift: float = 0.0) -> ModuleOp:
    """`a` (scaled and shifted), padded by `value`, and a stencil `s` over that."""
    x = te.placeholder((6, 5), name="x")
    a = te.compute((6, 5), lambda i, j: x[i, j] * scale + shift, "a")
    p = pad(a, (1, 2), value=value)
    s = te.compute((6, 5), lambda i, j: p[i, j] + p[i + 2, j + 4] * p[i + 1, j + 2] - p[i, j], "s")
    return te.create_module([x, s])


def integers() -> ModuleOp:
    """Integer padding and widening: `p` -> `w` -> `s`."""
    x = te.placeholder((7,), name="x", dtype="int8")
    p = pad(x, (1,))
    w = te.compute((9,), lambda i: te.cast(p[i], "int32") * 3 + i, "w")
    k = te.reduce_axis((0, 3), "k")
    s = te.compute((7,), lambda i: te.sum(w[i + k] * te.cast(p[i + 2 - k], "int32"), axis=k), "s")
    return te.create_module([x, s])


def names(module: ModuleOp) -> list[str]:
    """The names of the blocks, in order."""
    return [b.block_name for b in blocks_in(module)]


def buffers(module: ModuleOp) -> list[str]:
    """The names of the allocations."""
    return [op.label.data for op in module.walk() if isinstance(op, AllocOp)]


def block(module: ModuleOp, name: str) -> BlockOp:
    """The block called `name`."""
    return next(b for b in blocks_in(module) if b.block_name == name)


def refusal(module: ModuleOp, step: Primitive[Any]) -> str:
    """The first line of what `step` refuses with; it must change nothing."""
    before = str(module)
    with pytest.raises(ScheduleError) as caught:
        step.run(module)
    assert str(module) == before
    return str(caught.value).split("\n")[0].split(": ", 1)[1]


def lowered(module: ModuleOp, steps: list[Primitive[Any]]) -> ModuleOp:
    """The module on loops after `steps`."""
    lower_te_to_loop(module)
    for step in steps:
        step.run(module)
    return module


@pytest.mark.parametrize(
    "shape", [{}, {"stride": 2}, {"size": 6, "padding": 2, "dilation": 2}, {"size": 5, "stride": 3}]
)
def test_padding_becomes_masked_reads(shape: dict[str, int]) -> None:
    module = hold_to_numpy(conv_relu(**shape), [ComputeInline("pad_temp")])
    assert names(module) == ["conv", "relu"] and buffers(module) == ["conv"]
    assert not any(op.name == "arith.select" for op in module.walk())


def test_conditions_that_always_hold_are_dropped() -> None:
    module = hold_to_numpy(conv_relu(7, stride=2, padding=1), [ComputeInline("pad_temp")])
    read = block(module, "conv").loads[0]
    assert [str(c) for c in read.conditions] == [
        "y * 2 + ry - 1",
        "7 - y * 2 - ry",
        "x * 2 + rx - 1",
        "7 - x * 2 - rx",
    ]
    module = hold_to_numpy(conv_relu(8, stride=2, padding=1), [ComputeInline("pad_temp")])
    assert [str(c) for c in block(module, "conv").loads[0].conditions] == ["y * 2 + ry - 1", "x * 2 + rx - 1"]


@pytest.mark.parametrize(("value", "scale", "shift"), [(0.0, 2.0, 0.0), (0.0, 2.0, 1.0), (3.0, 1.0, 0.5)])
@pytest.mark.parametrize("order", [("a", "pad_temp"), ("pad_temp", "a")])
def test_chains_in_either_order(value: float, scale: float, shift: float, order: tuple[str, str]) -> None:
    module = hold_to_numpy(padded_chain(value, scale, shift), [ComputeInline(name) for name in order])
    assert names(module) == ["s"]
    assert [load.buffer.name_hint for load in block(module, "s").loads] == ["x"] * 3


def test_what_is_zero_under_the_mask_needs_no_select() -> None:
    x = te.placeholder((6,), name="x")
    a = te.compute((6,), lambda i: te.tanh(te.maximum(x[i] * x[i], 0.0)), "a")
    p = pad(a, (1,))
    module = te.create_module([x, te.compute((8,), lambda i: p[i] + 1.0, "s")])
    module = hold_to_numpy(module, [ComputeInline("a"), ComputeInline("pad_temp")])
    assert not any(op.name == "arith.select" for op in module.walk())


def test_integers_stay_integers() -> None:
    module = integers()
    x = np.array([1, -128, 127, 3, -5, 77, 0], dtype="int8")
    (wanted,) = run_te(module, [x])
    for steps in (["pad_temp"], ["pad_temp", "w"], ["w"]):
        loops = module.clone()
        lower_te_to_loop(loops)
        for name in steps:
            ComputeInline(name).run(loops)
            loops.verify()
        np.testing.assert_array_equal(run_loops(loops, [x])[0], wanted)


def test_a_schedule_of_the_block_does_not_matter() -> None:
    steps: list[Primitive[Any]] = [
        Fuse("pad_temp", ("i2", "i3")),
        Split("pad_temp", "i2_i3", (0, 7)),
        Parallel("pad_temp", "i1"),
        ComputeInline("pad_temp"),
    ]
    assert str(hold_to_numpy(conv_relu(), steps)) == str(hold_to_numpy(conv_relu(), steps[-1:]))


def test_blocks_under_loops_of_their_readers() -> None:
    module = hold_to_numpy(
        stencils(), [Split("c", "i", (0, 4)), ComputeAt("b", "j", "d"), ComputeInline("b"), ComputeInline("pad_temp")]
    )
    assert names(module) == ["a", "c", "d"]


def test_an_input_that_was_computed_at_the_block_stays() -> None:
    module = hold_to_numpy(stencils(), [ComputeAt("a", "i0"), ComputeInline("pad_temp")])
    assert [loop.loop_name for loop in block(module, "a").enclosing_loops] == ["i0", "j"]
    module = lowered(stencils(), [ComputeAt("a", "i0"), Parallel("pad_temp", "i0")])
    assert "must stay together in 'i0'" in refusal(module, ComputeInline("pad_temp"))


def test_elementwise_consumers_go_into_their_producer() -> None:
    steps = [ReverseComputeInline(name) for name in ("b", "c", "d")]
    module = hold_to_numpy(elementwise(), steps)
    assert names(module) == ["a"] and buffers(module) == []
    assert [str(e) for e in block(module, "a").write_indices[0]] == ["0", "i", "j"]
    module = hold_to_numpy(elementwise(), [steps[2], steps[0], steps[1]])
    assert names(module) == ["a"]


def test_loops_of_the_producer_stay() -> None:
    module = hold_to_numpy(
        elementwise(),
        [Split("a", "j", (0, 3)), Fuse("b", ("i", "j")), ReverseComputeInline("b"), ReverseComputeAt("c", "j0", "a")],
    )
    assert [(x.loop_name, x.size) for x in block(module, "a").enclosing_loops] == [("i", 5), ("j0", 3), ("j1", 3)]
    assert [x.loop_name for x in block(module, "c").enclosing_loops] == ["i", "j0", "j1"]


def test_reverse_inline_of_a_block_under_shared_loops() -> None:
    hold_to_numpy(
        elementwise(), [Split("d", "i", (0, 2)), ComputeAt("c", "i1"), ComputeAt("b", "i1"), ReverseComputeInline("c")]
    )


def test_refusals() -> None:
    module = lowered(softmax(), [])
    assert "must not be a reduction" in refusal(module, ComputeInline("total"))
    assert "must not be an output" in refusal(module, ComputeInline("norm"))
    assert "must be elementwise, it is a reduction" in refusal(module, ReverseComputeInline("total"))
    assert "reverse_compute_at moves 'norm' there" in refusal(module, ReverseComputeInline("norm"))
    module = lowered(stencils(), [])
    assert "at one place and without a mask" in refusal(module, ReverseComputeInline("pad_temp"))
    assert "no other block must use 'pad_temp', 'c' does" in refusal(module, ReverseComputeInline("b"))
    assert "no block is called 'zz'" in refusal(module, ComputeInline("zz"))
    assert "must not be reduced by 'arg'" in refusal(lowered(best_index(), []), ReverseComputeInline("picked"))
    module = lowered(elementwise(), [TransformLayout("a", "a", ("i", "j/4", "j%4"))])
    assert "do this step before transform_layout" in refusal(module, ComputeInline("a"))


@pytest.mark.parametrize("make", [conv_relu, softmax, stencils, upsample, best_index, elementwise, padded_chain])
def test_every_step_of_the_space_is_legal_and_right(make: Any) -> None:
    found = 0
    for primitive in (ComputeInline, ReverseComputeInline):
        for step in primitive.schedule_space(Context(), lowered(make(), [])):
            hold_to_numpy(make(), [step])
            found += 1
    assert found or make is softmax


@given(st.data())
@settings(max_examples=25 * usual(2))
@pytest.mark.slow(1.2)
def test_random_inlining_among_moves(data: st.DataObject) -> None:
    workloads: list[Callable[[], ModuleOp]] = [conv_relu, softmax, stencils, upsample, elementwise]
    module = data.draw(st.sampled_from([*workloads, padded_chain, best_index]))()
    loops = module.clone()
    lower_te_to_loop(loops)
    kinds: list[type[Primitive[Any]]] = [ComputeInline, ReverseComputeInline, Split, Fuse, ComputeAt, ReverseComputeAt]
    steps: list[Primitive[Any]] = []
    for _ in range(data.draw(st.integers(1, 6))):
        space = data.draw(st.sampled_from(kinds)).schedule_space(Context(), loops)
        if space:
            steps.append(data.draw(st.sampled_from(space)))
            steps[-1].run(loops)
    hold_to_numpy(module, steps)


def test_texts_parse_back() -> None:
    passes = Universe.get_multiverse().all_passes
    for step in (ComputeInline("pad_temp"), ReverseComputeInline("relu")):
        assert PassPipeline.parse_spec(passes, str(step)).passes == (step,)
