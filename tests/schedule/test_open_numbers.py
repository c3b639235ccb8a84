"""Numbers of a schedule that are not chosen yet: printed, parsed back, filled in, and refused where one is needed."""

import pytest

import loopwright as lw
from loopwright.passes.open_number import OpenNumber, OpenText, open_names
from loopwright.passes.pipeline_text import apply_schedule, parse_schedule, schedule_text
from loopwright.passes.schedule.pragma import Pragma
from loopwright.passes.schedule.split import Split
from loopwright.search.named_workloads import named_workloads


def test_a_step_takes_an_open_number_and_prints_its_name() -> None:
    step = Split("c", "i", (0, OpenNumber("rows", 4), 8))
    assert str(step) == 'lw-split{block="c" loop="i" factors=0,<rows>,8}'
    (parsed,) = parse_schedule(str(step))
    assert parsed == step
    assert open_names(parsed) == ["rows"]


def test_an_open_number_is_not_the_default_that_it_stands_in_for() -> None:
    assert "unroll_explicit" not in str(Pragma("c", "i", unroll_explicit=None))
    assert "<copies>" in str(Pragma("c", "i", unroll_explicit=OpenNumber("copies", 1)))
    assert OpenNumber("n", 3) != 3
    assert OpenNumber("n", 3) == OpenNumber("n", 4)


def test_open_numbers_in_layouts_have_names_too() -> None:
    (step,) = parse_schedule('lw-cache-read{block="c" buffer="b" layout="j/<w>","k","j%<w>"}')
    assert open_names(step) == ["w", "w"]


def test_texts_are_filled() -> None:
    text = OpenText.of("lw-split{factors=<a>,<b>,<a>}")
    assert text.names == ("a", "b", "a")
    assert text.filled({"a": 2, "b": 30}) == "lw-split{factors=2,30,2}"


def test_a_schedule_with_open_numbers_is_not_applied() -> None:
    module = lw.SearchTask(named_workloads()["matmul"], target="llvm cores=1").schedule_module("")
    before = str(module)
    with pytest.raises(lw.ScheduleError, match="'rows' is not chosen yet, put a number in the place of <rows>"):
        apply_schedule(module, 'lw-split{block="c" loop="i" factors=0,<rows>}')
    assert str(module) == before


@pytest.mark.parametrize("target", ["llvm cores=2", "cuda model=h200"])
@pytest.mark.parametrize("workload", ["matmul", "conv2d_nhwc", "softmax"])
def test_sketches_are_schedules_with_open_numbers(workload: str, target: str) -> None:
    for sketch in lw.SearchTask(named_workloads()[workload], target=target).sketches:
        steps = parse_schedule(sketch.template)
        assert schedule_text(steps) == sketch.template
        named = {hole.name for hole in sketch.holes} | {number.name for number in sketch.derived}
        assert {name for step in steps for name in open_names(step)} <= named
