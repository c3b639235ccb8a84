"""Products in slices: operands read across the barrier of a fill, and rows of multiply-adds to and fro."""

import re

import numpy as np
import pytest
from gpu_programs import check_interpreted, parse
from xdsl.context import Context

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.build import lower_to_kernel
from loopwright.backends.cuda.compile import print_cuda
from loopwright.dialects.target import TargetAttr
from loopwright.passes.lower.expand_pipelines import ExpandPipelines
from loopwright.passes.lower.lower_loop_to_kernel import STEPS
from loopwright.search.named_workloads import matmul
from loopwright.search.rules import _gpu_sliced_products
from loopwright.search.sketch.sketch import Sketch

SHAPES = [(64, 96, 256), (61, 37, 203), (45, 131, 68), (197, 64, 512)]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_gpu_sliced_products, "LEAST_PRODUCTS", 0)


def sliced(shape: tuple[int, int, int], name: str = "sliced_large") -> tuple[lw.SearchTask, Sketch]:
    task = lw.SearchTask(lambda: matmul(*shape), target="cuda model=h200")
    return task, next(each for each in task.sketches if each.name.endswith(name))


def with_numbers(sketch: Sketch, **wanted: int) -> str:
    """The schedule of the defaults but for some holes, by what their names end in."""
    row = sketch.default.copy()
    for place, hole in enumerate(sketch.holes):
        for name, value in wanted.items():
            if hole.name.endswith(f"_shared_{name}"):
                row[place] = hole.choices.index(value)
    assert sketch.legal(row[None])[0]
    return sketch.schedule(row)


def source_of(task: lw.SearchTask, schedule: str) -> str:
    return print_cuda(lower_to_kernel(task.schedule_module(schedule), task.target)).source


SMALL = {"rows_threads": 4, "rows_inner": 4, "columns_virtual": 1, "columns_threads": 8, "slices": 2, "step": 8}


def loop_of_fills(source: str) -> list[str]:
    lines = source.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("    for (int k0 = 0"))
    stop = next(number for number in range(start, len(lines)) if lines[number] == "    }")
    return lines[start:stop]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.few(3)
def test_products_are_right(shape: tuple[int, int, int], stages: int) -> None:
    """Interpreted, no thread reads a fill too early, nor one that is filled again: races are errors."""
    task, sketch = sliced(shape)
    rows = sketch.sample(np.random.default_rng(stages), 2)
    schedules = [with_numbers(sketch, **SMALL, stages=stages), *map(sketch.schedule, rows)]
    check_interpreted(task.module, task.reference, schedules)


def test_the_last_term_of_a_fill_is_multiplied_behind_the_barrier_of_the_next() -> None:
    task, sketch = sliced((64, 96, 256))
    lines = loop_of_fills(source_of(task, with_numbers(sketch, **SMALL, stages=2)))
    (barrier,) = (number for number, line in enumerate(lines) if "__syncthreads" in line)
    before, behind = lines[:barrier], lines[barrier:]
    terms = [sum("fma" in line for line in part) for part in (before, behind)]
    assert terms[0] == 7 * terms[1] > 0
    assert any("_shared[" in line for line in behind)  # the first operands of the next fill
    assert "wait_group" in before[-1]


def test_as_many_fills_as_stages_are_read_in_their_own_steps() -> None:
    """Stages are not taken in turn then, and behind the last fill's barrier there would be none to read."""
    task, sketch = sliced((64, 96, 64))
    lines = loop_of_fills(source_of(task, with_numbers(sketch, **SMALL | {"step": 16}, stages=2)))
    assert "__syncthreads" in "".join(lines[:4])


def test_every_second_row_takes_its_lanes_from_the_last_one_on() -> None:
    task, sketch = sliced((64, 96, 256))
    lines = loop_of_fills(source_of(task, with_numbers(sketch, **SMALL, stages=2)))
    places = [int(found.group(1)) for line in lines if (found := re.match(r"\s*\w+_tile\[(\d+)\] = fmaf", line))]
    assert places[:16] == [0, 1, 2, 3, 7, 6, 5, 4, 8, 9, 10, 11, 15, 14, 13, 12]


def test_what_an_iteration_begins_with_is_printed_and_parsed() -> None:
    task, sketch = sliced((64, 96, 256))
    module = task.schedule_module(with_numbers(sketch, **SMALL, stages=3)).clone()
    module.attributes["lw.target"] = TargetAttr(task.target)
    for step in STEPS[: STEPS.index(ExpandPipelines) + 1]:
        step().apply(Context(), module)
    module.verify()
    text = str(module)
    assert re.search(
        r"lw_loop.at k0 = k0 \+ 1 where \(.*\) \{\s*lw_kernel.wait 1\s*lw_loop.barrier\s*lw_loop.for", text
    )
    assert str(parse(text)) == text


@pytest.mark.parametrize("columns", [70, 72])
@pytest.mark.parametrize("rows", [190, 192])
def test_threads_beyond_an_edge_reach_the_barrier_in_the_last_term(rows: int, columns: int) -> None:
    """No operand is read ahead where a factor is computed as it is copied, but the barrier is in the terms."""
    a, b = te.placeholder((rows, 40), name="a"), te.placeholder((40, columns), name="b")
    task = lw.SearchTask(lambda: [a, b, topi.matmul(topi.nn.relu(a), b)], target="cuda model=h200")
    sketch = next(each for each in task.sketches if each.name.endswith("sliced_large"))
    numbers = SMALL | {"rows_inner": 2, "columns_threads": 16, "stages": 2}
    check_interpreted(task.module, task.reference, [with_numbers(sketch, **numbers)])
