"""Kernels for GPUs with a barrier, wait or copy less, or elsewhere: each is refused, with both operations named."""

import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from gpu_programs import parse
from lowered_runs import exact_inputs
from pipelined_matmul import CUDA, OPENCL, lower, matmul, tile

from loopwright import te
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.loop import InterpretationError
from loopwright.dialects.interpret.te import run_te
from loopwright.schedule import Schedule

Tensors = list[te.Tensor]
SHAPE = (32, 32, 16)


def pipelined(stages: int, registers: int) -> Callable[[Schedule], None]:
    return lambda sch: tile(sch, stages, registers, 4, True)


def across_warps(sch: Schedule) -> None:
    """Each thread adds up some of a row; warps join by shuffles, then through shared memory."""
    _, k1 = sch.split("s", "k", [None, 64])
    sch.rfactor("s", k1)
    sch.bind("s", "i", "blockIdx.x")
    sch.compute_at("s_rf", "i")
    sch.set_scope("s_rf", "local")
    sch.bind("s_rf", "k1", "threadIdx.x")
    sch.bind("s", "k1", "threadIdx.x")


def rows() -> Tensors:
    x, k = te.placeholder((3, 200), name="x"), te.reduce_axis((0, 200), name="k")
    return [x, te.compute((3,), lambda i: te.sum(x[i, k], axis=k), name="s")]


KERNELS: dict[str, tuple[Callable[[], Tensors], Callable[[Schedule], None], str]] = {
    "asynchronous": (lambda: matmul(*SHAPE), pipelined(3, 0), CUDA),
    "registers": (lambda: matmul(*SHAPE), pipelined(2, 1), CUDA),
    "not pipelined": (lambda: matmul(*SHAPE), pipelined(1, 0), OPENCL),
    "through memory": (rows, across_warps, OPENCL),
    "by shuffles": (rows, across_warps, CUDA),
}
SPARE_BARRIERS = {"through memory": 1, "by shuffles": 1}
"""Barriers before shared memory is first used: they keep apart the iterations of a loop that is not there."""


def text_of(name: str) -> tuple[str, list[np.ndarray], list[np.ndarray]]:
    """The printed kernel, its inputs, and what is right."""
    tensors, steps, target = KERNELS[name]
    sch, module = lower(tensors(), steps, target)
    inputs = exact_inputs(sch.workload)
    return str(module), inputs, run_te(sch.workload, inputs)


def changed(text: str, pattern: str, change: Callable[[str], str]) -> Iterator[str]:
    """The text with one of the lines that have a pattern changed, for each of them."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if re.search(pattern, line):
            yield "\n".join([*lines[:number], change(line), *lines[number + 1 :]])


def refusal(text: str, inputs: list[np.ndarray]) -> str:
    """The error of a kernel, whose operations are where it says; "" where there is none."""
    module = parse(text)
    try:
        run_kernel(module, inputs)
    except InterpretationError as error:
        lines = str(module).splitlines()
        for number, named in re.findall(r"line (\d+): (.*?), by thread", str(error)):
            assert lines[int(number) - 1].strip() == named
        return str(error)
    return ""


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.few(3)
def test_each_is_right_as_it_is(name: str) -> None:
    text, inputs, wanted = text_of(name)
    for got, right in zip(run_kernel(parse(text), inputs), wanted, strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-5)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.few(3)
def test_one_barrier_less(name: str) -> None:
    text, inputs, _ = text_of(name)
    errors = [refusal(mutant, inputs) for mutant in changed(text, r"^\s*lw_kernel\.barrier", lambda line: "")]
    spared = [error for error in errors if not error]
    assert len(errors) > len(spared) == SPARE_BARRIERS.get(name, 0)
    for error in errors:
        if error:
            assert error.startswith("data race: element ") or "in flight" in error
            assert len(re.findall(r"line \d+: .*, by thread", error)) == 2


@pytest.mark.parametrize("change", ["", "lw_kernel.wait 2", "lw_kernel.wait 5"])
def test_a_wait_less_or_for_an_earlier_copy(change: str) -> None:
    text, inputs, _ = text_of("asynchronous")
    (error,) = [refusal(mutant, inputs) for mutant in changed(text, r"lw_kernel\.wait", lambda line: change)]
    assert "is read before the copy to it was waited for" in error
    reader, copy = re.findall(r"line \d+: (?:%\w+ = )?(lw_kernel\.\w+) ", error)
    assert (reader, copy) == ("lw_kernel.load", "lw_kernel.async_copy")


def test_a_commit_less() -> None:
    """Two commits stand before the loop, and one in it: without one, a wait is for a group too early."""
    text, inputs, _ = text_of("asynchronous")
    errors = [refusal(mutant, inputs) for mutant in changed(text, r"lw_kernel\.commit", lambda line: "")]
    assert len(errors) == 3
    assert all("is read before the copy to it was waited for" in error for error in errors)


@pytest.mark.parametrize("name", ["asynchronous", "registers", "not pipelined"])
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_a_write_to_shared_memory_less_or_elsewhere(name: str) -> None:
    """Without one its elements are not written; moved, it meets those that another thread writes, or the end."""
    text, inputs, _ = text_of(name)
    store = r"lw_kernel\.async_copy|lw_kernel\.store .*_shared\["
    without = [refusal(mutant, inputs) for mutant in changed(text, store, lambda line: "")]
    assert len(without) >= 2
    for error in without:
        assert "depends on memory that nobody has written" in error
        assert len(re.findall(r"line \d+: .*, by thread", error)) == 2
    moved = [refusal(mutant, inputs) for mutant in changed(text, store, _moved)]
    rules = "data race|element .* is (?:outside|written while)|misaligned|what is stored depends"
    assert all(re.match(rules, error) for error in moved)


def _moved(line: str) -> str:
    """Write the elements behind those that are meant."""
    lanes = re.search(r"async_copy (\d+)|vector<(\d+)x", line)
    by = int(next(n for n in lanes.groups() if n)) if lanes else 1

    def further(place: re.Match[str]) -> str:
        return f"{place[1]} + {int(place[2] or 0) + by}]"

    return re.sub(r"(%\w*_shared\w*\[%\w+)(?: \+ (\d+))?\]", further, line, count=1)
