"""Drafts: what they say of the loop nest, and steps that find the names of what they make."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from threading import Event, Thread
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pytest
from patience import PATIENCE_S

import loopwright as lw
from loopwright import te, topi
from loopwright.dialects.target import Target
from loopwright.passes.schedule.reorder import Reorder
from loopwright.passes.schedule.split import Split
from loopwright.search.sketch.draft import Draft
from loopwright.search.sketch.generate import generate_sketches
from loopwright.search.sketch.hole import Columns

CUDA = "cuda model=h200"


def doubled(*shape: int) -> list[te.Tensor]:
    data = te.placeholder(shape, name="data")
    return [data, te.compute(shape, lambda *at: data[at] * 2.0, name="out")]


def row_sums() -> list[te.Tensor]:
    data = te.placeholder((4, 32), name="data")
    return [data, topi.sum(data, axis=1)]


@dataclass(frozen=True)
class _Larger:
    """An estimate that likes a hole's larger numbers better."""

    hole: str

    def seconds(self, columns: Columns, /) -> npt.NDArray[np.float64]:
        return 1.0 / np.asarray(columns[self.hole])


def draft_of(*shape: int) -> Draft:
    return Draft.of(lw.SearchTask(doubled, args=shape).module)


def test_loops_and_extents_are_those_the_steps_left() -> None:
    draft = draft_of(6, 20)
    first, second = draft.loops("out")
    assert draft.sizes("out") == {first: 6, second: 20}
    outer, inner = draft.split("out", second, (0, 8))
    assert draft.sizes("out") == {first: 6, outer: 3, inner: 8}
    assert draft.loops("out", first) == [outer, inner]
    assert draft.block("out").enclosing_loops[0].loop_name == first


def test_loops_in_order_are_not_reordered() -> None:
    draft = draft_of(2, 3, 4)
    a, b, c = draft.loops("out")
    steps = len(draft.parts)
    draft.order("out", (a, c))
    draft.order("out", ())
    assert len(draft.parts) == steps
    draft.order("out", (c, a))
    assert draft.loops("out") == [c, b, a] and len(draft.parts) == steps + 1


def test_one_loop_is_not_fused() -> None:
    draft = draft_of(2, 3)
    first, second = draft.loops("out")
    steps = len(draft.parts)
    assert draft.fuse("out", []) == "" and draft.fuse("out", [first]) == first
    assert len(draft.parts) == steps
    assert [draft.fuse("out", [first, second])] == draft.loops("out")


def test_names_that_are_taken_are_not_guessed() -> None:
    """A split of `i0` makes `i00`, which another loop around may be called already."""
    draft = draft_of(64, 64)
    first, second = draft.loops("out")
    made = draft.split("out", first, (0, 4))
    again = draft.split("out", made[0], (0, 2))
    assert draft.loops("out") == [*again, made[1], second]
    assert draft.fuse("out", again) == draft.loops("out")[0]


@pytest.mark.parametrize("axis", [0, -1])
def test_partial_results_are_a_block_of_their_own(axis: int) -> None:
    draft, name = Draft.of(lw.SearchTask(row_sums).module), "T_sum"
    inner = draft.split(name, draft.loops(name)[-1], (0, 8))[1]
    made = draft.partial(name, inner, axis)
    assert made != name and made in draft.settled
    assert draft.block(made).is_reduction and inner in draft.loops(made)


def test_a_step_on_what_is_not_there_is_refused() -> None:
    with pytest.raises(lw.ScheduleError, match="no block is called 'other'"):
        draft_of(4).loops("other")


def test_steps_are_done_on_a_copy_or_not_at_all() -> None:
    draft = draft_of(6, 20)
    first, second = draft.loops("out")

    def refused(grown: Draft) -> None:
        grown.split("out", first, (0, 2))
        grown.order("out", (second, "no_such_loop"))

    grown = draft.with_steps(lambda one: one.split("out", second, (0, 8)))
    assert grown is not None and len(grown.loops("out")) == 3
    assert draft.with_steps(refused) is None
    assert draft.loops("out") == [first, second] and len(draft.parts) == 1


def test_steps_leave_legal_defaults_or_nothing() -> None:
    draft = draft_of(6, 20)

    def write(grown: Draft, least: int, most: int) -> None:
        hole = grown.hole("width", (2, 4, 8), 2)
        grown.split("out", grown.loops("out")[-1], (0, hole))
        grown.limits.append(lambda c: (c["width"] >= least) & (c["width"] <= most))
        grown.models.append(_Larger("width"))

    moved = draft.with_legal_steps(partial(write, least=3, most=8))
    kept = draft.with_legal_steps(partial(write, least=0, most=4))
    liked = draft.with_legal_steps(partial(write, least=0, most=4), by_estimate=True)
    assert [d.holes[0].default for d in (moved, kept, liked) if d is not None] == [8, 2, 4]
    assert draft.with_legal_steps(partial(write, least=9, most=9)) is None and not draft.holes


def plan(grown: Draft, loop: str) -> Iterator[None]:
    """Split a loop of a block later on."""
    hole = grown.hole("width", (2, 4, 8), 2)
    grown.models.append(_Larger("width"))
    grown.names.append("planned")
    grown.settled.add("out")
    yield
    grown.do(Split, block="out", loop=loop, factors=(0, hole))


def test_planned_steps_are_done_when_they_are_asked_for() -> None:
    draft = draft_of(6, 20)
    loop = draft.loops("out")[-1]
    planned = draft.with_plan(partial(plan, loop=loop), by_estimate=True)
    assert planned is not None and planned.is_planned and planned.holes[0].default == 8
    assert planned.loops("out") == draft.loops("out")
    assert planned.finish() and planned.finish() and not planned.is_planned
    assert planned.template.endswith(f'lw-split{{block="out" loop="{loop}" factors=0,<width>}}')
    refused = draft.with_plan(partial(plan, loop="no_such_loop"))
    assert refused is not None and not refused.finish() and not refused.finish()
    at_once = Draft.of(draft.workload, may_plan=False)
    assert at_once.with_plan(partial(plan, loop="no_such_loop")) is None
    written = at_once.with_plan(partial(plan, loop=loop))
    assert written is not None and written.rest is None and len(written.parts) == 2


def test_planned_steps_that_were_interrupted_are_not_taken_for_done() -> None:
    draft = draft_of(6, 20)

    def interrupted(grown: Draft) -> Iterator[None]:
        yield from plan(grown, draft.loops("out")[-1])
        raise KeyboardInterrupt

    planned = draft.with_plan(interrupted)
    assert planned is not None
    with pytest.raises(KeyboardInterrupt):
        planned.finish()
    assert not planned.finish()


def test_a_thread_waits_for_the_steps_that_another_one_does() -> None:
    draft = draft_of(6, 20)
    begun, asked, found = Event(), Event(), list[str]()

    def slow(grown: Draft) -> Iterator[None]:
        steps = plan(grown, draft.loops("out")[-1])
        yield next(steps)
        begun.set()
        asked.wait(0.2)  # the other one asks meanwhile, and returns first where it does not wait
        yield from steps

    def ask() -> None:
        assert planned is not None and planned.finish()
        found.append(planned.template)
        asked.set()

    planned = draft.with_plan(slow)
    first, second = Thread(target=ask), Thread(target=ask)
    first.start()
    begun.wait()
    second.start()
    first.join()
    second.join()
    assert len(set(found)) == 1 and "<width>" in found[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_does_not_wait_for_steps_that_a_thread_of_its_parent_does() -> None:
    draft = draft_of(6, 20)
    begun, forked = Event(), Event()

    def slow(grown: Draft) -> Iterator[None]:
        yield from plan(grown, draft.loops("out")[-1])
        begun.set()
        forked.wait(PATIENCE_S)

    planned = draft.with_plan(slow)
    assert planned is not None
    thread = Thread(target=planned.finish)
    thread.start()
    begun.wait()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(round(PATIENCE_S))
        os._exit(0 if not planned.finish() else 1)  # half done, as another process goes on with them
    forked.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


class Planning(lw.SketchRule):
    """Splits a loop, which there may not be."""

    order: ClassVar[int] = 650

    def __init__(self, loop: str) -> None:
        self.loop = loop

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        return [draft.with_plan(partial(plan, loop=self.loop)) or draft]


@pytest.mark.parametrize("first", ["sketches", "default_schedule"])
@pytest.mark.parametrize("loop", ["i1", "no_such_loop"])
@pytest.mark.parametrize("target", ["llvm cores=1", "llvm cores=2", CUDA])
def test_sketches_with_a_planned_step_that_is_refused_are_made_anew(target: str, loop: str, first: str) -> None:
    task = lw.SearchTask(doubled, args=(64, 128), target=target, rules=[Planning(loop), *lw.sketch_rules()])
    found = getattr(task, first)
    names = [sketch.name for sketch in task.sketches]
    assert ("planned" in names) == (loop == "i1") and getattr(task, first) == found
    number, row = task.default_candidate
    assert task.default_schedule == task.sketches[number].schedule(np.array(row, dtype=np.int64))


def test_sketches_are_legal_where_plans_are_not_asked_for() -> None:
    task = lw.SearchTask(doubled, args=(64, 128), target=CUDA)
    (planned,) = generate_sketches(task.module, task.target, [Planning("no_such_loop")], may_plan=True)
    (found,) = generate_sketches(task.module, task.target, [Planning("no_such_loop")])
    assert planned.name == "planned" and not planned.is_legal
    assert found.name != "planned" and found.is_legal


@pytest.mark.parametrize("target", [CUDA, "llvm cores=1"])
def test_loops_are_fused_around_one_of_one_iteration(target: str) -> None:
    """Filters and pixels of a depthwise layer of one row are, which no plan is refused for."""
    data, kernel = te.placeholder((2, 17, 13, 9), name="data"), te.placeholder((17, 1, 7, 5), name="kernel")
    task = lw.SearchTask([data, kernel, topi.nn.depthwise_conv2d_nchw(data, kernel, 1, (0, 4), 2)], target=target)
    found = generate_sketches(task.module, task.target, may_plan=True)
    assert all(sketch.is_legal for sketch in found) and any("ff_xx" in sketch.name for sketch in found)


def test_a_block_whose_step_is_refused_is_left_to_later_rules() -> None:
    draft = draft_of(6, 20)
    draft.settled.add("out")
    first, second = draft.loops("out")
    assert draft.tried(Reorder, "out", loops=(second, first)) and draft.settled == {"out"}
    assert not draft.tried(Reorder, "out", loops=(second, "no_such_loop")) and not draft.settled
    assert draft.loops("out") == [second, first]
