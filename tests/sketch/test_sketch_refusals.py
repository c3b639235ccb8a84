"""Workloads for which sketch rules were refused a step: names taken, divisions by what is read, readers that wait."""

import warnings

import effort
import numpy as np
import pytest
from gpu_programs import run_opencl

import loopwright as lw
from loopwright import te
from loopwright.backends.build import lower_to_kernel
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.loop import run_loops
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.target import Target
from loopwright.passes.schedule.split import Split
from loopwright.passes.schedule.vectorize import Vectorize
from loopwright.search.sketch.rule import SketchRuleWarning

GPU = "cores=2 max_threads_per_block=256 max_shared_bytes=32768 max_vthreads=8"
TARGETS = {
    "llvm": "llvm cores=2 vector_bytes=16",
    "opencl": f"opencl {GPU} warp_size=1",
    "cuda": f"cuda {GPU} warp_size=32 compute_capability=90",
}


def same_names_in_a_chain() -> list[te.Tensor]:
    """Both blocks have axes i and y, which become a loop i_y each: one around the other."""
    x, w = te.placeholder((2, 11, 2, 1), name="x"), te.placeholder((2, 1, 11, 1), name="w")
    r, s, t = te.reduce_axis((0, 1), "r"), te.reduce_axis((0, 2), "s"), te.reduce_axis((0, 11), "t")
    least = te.compute((2, 11, 1, 1), lambda i, y, k, j: te.min(x[i, y, k * 3 + r, j], axis=r), name="least")
    return [x, w, te.compute((1, 1, 1), lambda i, y, j: te.sum(least[s, t, i, y] * w[s, j, t, i], axis=[s, t]))]


def remainder(rows: int, columns: int, divisor: int | None) -> list[te.Tensor]:
    """Rows of remainders by a constant, or by what is read, summed; then taken from each element.

    They are shorter than some of the vectors and blocks of threads that a rule may choose for them.
    """
    x = te.placeholder((rows, columns), "int32", "x")
    k = te.reduce_axis((0, columns), "k")
    by = te.const(divisor, "int32") if divisor is not None else None
    total = te.compute((rows,), lambda i: te.sum(te.const(1000, "int32") % (x[i, k] if by is None else by), axis=k))
    if by is not None:
        total = te.compute((rows,), lambda i: te.sum(x[i, k] % by, axis=k))
    return [x, te.compute((rows, columns), lambda i, j: x[i, j] - total[i])]


def read_with_what_comes_later() -> list[te.Tensor]:
    """The last block reads one sum element by element, and another one that is computed after it elsewhere."""
    x, w = te.placeholder((1, 17), "int32", "x"), te.placeholder((3, 8, 4), "int32", "w")
    r, s = te.reduce_axis((0, 3), "r"), te.reduce_axis((0, 3), "s")
    first = te.compute((1, 15), lambda y, i: te.min(x[y, i + r], axis=r), name="first")
    later = te.compute((8, 4), lambda j, k: te.max(w[s, j, k], axis=s), name="later")
    return [x, w, te.compute((1, 15), lambda i, j: first[0, j] - later[j % 8, i + 1])]


WORKLOADS = {
    "read with what comes later": read_with_what_comes_later,
    "same names": same_names_in_a_chain,
    "remainders by 5": lambda: remainder(3, 24, 5),
    "remainders by data": lambda: remainder(3, 24, None),
    "one row": lambda: remainder(1, 24, None),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.few(2)
def test_every_rule_finds_its_sketches_and_they_are_right(name: str, target: str) -> None:
    task = lw.SearchTask(te.create_module(WORKLOADS[name]()), target=TARGETS[target])
    with warnings.catch_warnings():
        warnings.simplefilter("error", SketchRuleWarning)
        sketches = task.sketches
    rng = np.random.default_rng(0)
    tensors = WORKLOADS[name]()[:-1]
    inputs = [rng.integers(1, 90, [int(n) for n in t.shape]).astype(t.dtype) for t in tensors]
    (expected,) = run_te(task.module, inputs)
    count = 4 if target == "llvm" else int(min(4, effort.level()))  # the driver takes a second for each kernel
    for sketch in sketches:
        for row in (sketch.default, *sketch.sample(rng, count)):
            kernel = lower_to_kernel(task.schedule_module(sketch.schedule(row)))
            (got,) = run_opencl(kernel, *inputs) if target == "opencl" else run_kernel(kernel, inputs)
            np.testing.assert_allclose(got, expected, rtol=1e-6, err_msg=sketch.schedule(row))


def test_divisions_by_a_constant_have_partial_results_in_lanes() -> None:
    """What is not there is divided by 5 as well, and is left out of the sum."""
    texts = {}
    for name in ("remainders by 5", "remainders by data"):
        task = lw.SearchTask(te.create_module(WORKLOADS[name]()), target=TARGETS["llvm"])
        texts[name] = task.default_schedule
    assert "lw-rfactor" in texts["remainders by 5"]
    assert "lw-rfactor" not in texts["remainders by data"]


class Hasty(lw.SketchRule):
    """Changes the draft that it gets, then vectorizes a loop that is not innermost."""

    order = 600

    def apply(self, draft: lw.Draft, target: Target) -> list[lw.Draft]:
        draft.do(Split, block="y", loop="i", factors=(0, 4))
        draft.do(Vectorize, block="y", loop="i0")
        return [draft]


def doubled() -> list[te.Tensor]:
    x = te.placeholder((64,), name="x")
    return [x, te.compute((64,), lambda i: x[i] * 2.0, name="y")]


def test_a_rule_whose_step_is_refused_is_left_out_with_a_warning() -> None:
    """The draft goes on as it was before the rule changed it, and every other rule has its say."""
    task = lw.SearchTask(te.create_module(doubled()), target=TARGETS["llvm"], rules=[Hasty, *lw.sketch_rules()])
    said = r"sketch rule 'hasty' is left out: it raised ScheduleError: lw-vectorize.*must be innermost.*$"
    with pytest.warns(SketchRuleWarning, match=said) as found:
        sketches = task.sketches
    assert len(found) == 1 and "\n" not in str(found[0].message)
    without = lw.SearchTask(te.create_module(doubled()), target=TARGETS["llvm"]).sketches
    assert [s.template for s in sketches] == [s.template for s in without]


def test_with_no_other_rule_the_plain_sketch_remains() -> None:
    task = lw.SearchTask(te.create_module(doubled()), target=TARGETS["llvm"], rules=[Hasty])
    with pytest.warns(SketchRuleWarning, match="hasty"):
        (sketch,) = task.sketches
    assert sketch.name == "plain"
    x = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(run_loops(task.schedule_module(task.default_schedule), [x])[0], 2 * x)


def test_a_rule_is_left_out_of_the_draft_that_it_fails_for_only() -> None:
    class Both(lw.SketchRule):
        def apply(self, draft: lw.Draft, target: Target) -> list[lw.Draft]:
            other = draft.copy()
            other.names.append("other")
            return [draft, other]

    class Picky(Hasty):
        def apply(self, draft: lw.Draft, target: Target) -> list[lw.Draft]:
            if "other" in draft.names:
                return super().apply(draft, target)
            draft.do(Split, block="y", loop="i", factors=(0, 8))
            return [draft]

    task = lw.SearchTask(te.create_module(doubled()), target=TARGETS["llvm"], rules=[Both, Picky])
    with pytest.warns(SketchRuleWarning, match="picky"):
        templates = {s.name: s.template for s in task.sketches}
    assert {name: "lw-split" in text for name, text in templates.items()} == {"plain": True, "other": False}
