"""Chains of short kernels beside each other: how they are found, that they are right, and where their tensors lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from c_programs import exported_outputs, only_with_gcc
from small_networks import feeds_of
from xdsl.ir import Block, Region
from xdsl.parser import Parser

import loopwright as lw
from loopwright.backends.context import create_context
from loopwright.backends.targets import resolve_target
from loopwright.dialects.graph import GroupOp
from loopwright.graph.chosen_schedules import KnownSchedules
from loopwright.graph.passes.branches import LEAST_KERNELS, _chains, branches_of
from loopwright.graph.runtime.check_plan import Use, branches_that_meet
from loopwright.graph.runtime.memory import Live, arrange, beside, footprint
from loopwright.graph.runtime.on_llvm import LlvmNetwork
from loopwright.graph.tasks import extract_tasks, grouping_for, groups_of
from loopwright.graph.types import tensor_type
from loopwright.search.records.record import Record

TWO = "llvm cores=2"
Net = Any
pytestmark = pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")


def weights_of(net: Net, size: int, seed: int, given: int | None = None) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    weight = random.standard_normal((size, given or size), np.float32) * 0.1
    return net.constant(weight, f"weight{seed}"), net.constant(random.standard_normal(size, np.float32), f"bias{seed}")


def chain(net: Net, state: Any, steps: int, seed: int = 0) -> list[Any]:
    """States of a recurrent layer, each from the one before."""
    weight, bias = weights_of(net, state.shape[-1], seed)
    states = []
    for _ in range(steps):
        state = net.tanh(net.bias_add(net.dense(state, weight), bias))
        states.append(state)
    return states


def rows(batch: int = 4, size: int = 64, steps: int = 10) -> lw.Network:
    """One chain, of a batch."""
    net: Net = lw.Network("rows")
    states = chain(net, net.input("state", (batch, size)), steps)
    net.output(net.softmax(net.stack(*states, axis=0), axis=2), states[-1])
    return net


def lstm(steps: int = 9, batch: int = 4, size: int = 64, layers: int = 2) -> lw.Network:
    """As PyTorch takes it apart, with an axis of one element ahead of what the gates are told apart from."""
    net: Net = lw.Network("lstm")
    x = net.input("x", (steps * batch, size))
    for layer in range(layers):
        weight, _ = weights_of(net, 4 * size, layer, size)
        given = net.reshape(net.dense(x, weight), shape=(steps, batch, 4 * size))
        weight, bias = weights_of(net, 4 * size, 10 + layer, size)
        h = c = net.constant(np.zeros((1, batch, size), np.float32), f"zero{layer}")
        states = []
        for t in range(steps):
            step = net.strided_slice(given, begin=[t], end=[t + 1], axes=[0])
            made = net.bias_add(net.dense(net.reshape(h, shape=(batch, size)), weight), bias)
            sums = net.add(net.reshape(made, shape=(1, batch, 4 * size)), step)
            i, f, new, o = (net.strided_slice(sums, begin=[k * size], end=[(k + 1) * size], axes=[2]) for k in range(4))
            c = net.add(net.multiply(net.sigmoid(f), c), net.multiply(net.sigmoid(i), net.tanh(new)))
            h = net.multiply(net.sigmoid(o), net.tanh(c))
            states.append(h)
        x = net.reshape(net.concatenate(*states, axis=0), shape=(steps * batch, size))
    net.output(net.softmax(x, axis=1))
    return net


def directions(batch: int = 1, steps: int = 9) -> lw.Network:
    """Two chains, of one row each."""
    net: Net = lw.Network("directions")
    x = net.input("x", (batch, 64))
    there, back = (chain(net, x, steps, seed) for seed in range(2))
    pairs = [net.concatenate(a, b, axis=1) for a, b in zip(there, reversed(back), strict=True)]
    net.output(net.softmax(net.concatenate(*pairs, axis=0), axis=1))
    return net


def meeting(steps: int = 9) -> lw.Network:
    """Two chains, each step of which reads the other's."""
    net: Net = lw.Network("meeting")
    a, b = net.input("a", (1, 64)), net.input("b", (1, 64))
    for k in range(steps):
        weight, _ = weights_of(net, 64, k)
        a, b = net.tanh(net.dense(net.add(a, b), weight)), net.tanh(net.dense(net.multiply(a, b), weight))
    net.output(a, b)
    return net


def mixed_up(batch: int = 4) -> lw.Network:
    """A chain whose rows are not computed each by itself."""
    net: Net = lw.Network("mixed")
    state = net.input("state", (batch, 64))
    weight, _ = weights_of(net, 64, 0)
    for _ in range(10):
        state = net.tanh(net.dense(net.add(state, net.mean(state, axis=0, keepdims=True)), weight))
    net.output(state)
    return net


def trees(leaves: int = 6, steps: int = LEAST_KERNELS) -> lw.Network:
    """Two chains that begin with several, which meet one by one."""
    net: Net = lw.Network("trees")
    for half in range(2):
        ends = [chain(net, net.input(f"state{half}{k}", (4, 64)), 2, 10 * half + k)[-1] for k in range(leaves)]
        weight, _ = weights_of(net, 64, 10 * half)
        while len(ends) > 1:
            a, b, *ends = ends
            ends.append(net.tanh(net.add(net.dense(a, weight), b)))
        net.output(chain(net, ends[0], steps, 10 * half)[-1])
    return net


def turned(size: int = 16) -> lw.Network:
    """A chain of products each of whose rows is of a column of the state."""
    net: Net = lw.Network("turned")
    state = net.input("state", (size, size))
    weight, _ = weights_of(net, size, 0)
    for _ in range(10):
        state = net.tanh(net.matmul(state, weight, transpose_a=True))
    net.output(state)
    return net


def grouped(net: lw.Network, target: str = TWO) -> lw.Network:
    return net.transform(grouping_for(resolve_target(target)))


CASES: list[tuple[Callable[[], lw.Network], list[int]]] = [
    (rows, [2]),
    (lambda: rows(batch=6), [2]),
    (lambda: rows(steps=LEAST_KERNELS - 2), []),  # and a copy of the last state
    (lambda: rows(batch=3), []),
    (lambda: rows(batch=2), []),  # of one row each
    (lambda: rows(batch=4, size=20), []),  # blocks that would begin between cache lines
    (lambda: rows(batch=64, size=256), []),  # kernels that are worth several threads
    (lstm, [2, 2]),
    (directions, [2]),
    (lambda: directions(batch=4), [2]),
    (meeting, []),
    (trees, [2]),
    (mixed_up, []),
    (turned, []),
]


@pytest.mark.parametrize(("make", "wanted"), CASES)
def test_chains_that_do_not_depend_on_each_other_are_branches(make: Any, wanted: list[int], tmp_path: Path) -> None:
    """Right in an arena, from a file and on arrays of a caller's; on one thread, there are none."""
    net = make()
    feeds = feeds_of(net)
    after = grouped(net)
    assert [len(bounds) - 1 for bounds in branches_of(groups_of(after))] == wanted
    assert branches_of(groups_of(grouped(net, "llvm cores=1"))) == ()
    module = Parser(create_context(), str(after.module)).parse_module()
    assert str(module) == str(after.module)
    results = net.evaluate(**feeds)
    for got, want in zip(after.evaluate(**feeds), results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)

    compiled = lw.compile(net, TWO, processes=1)
    assert [len(bounds) - 1 for bounds in compiled.plan.branches] == wanted
    compiled.save(tmp_path / "net.lw")
    for network in (compiled, lw.load_network(tmp_path / "net.lw")):
        executor = network.executor()
        for _ in range(20):
            executor.run(**feeds)
            for k, want in enumerate(results):
                np.testing.assert_allclose(executor.get_output(k), want, rtol=1e-4, atol=1e-5)
        executor.profile(repeat=1)
    found = [np.zeros_like(want) for want in results]
    loaded: Any = compiled.loaded()
    loaded.frame().run([array.ctypes.data for array in (*feeds.values(), *found)])
    for got, want in zip(found, results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_branches_are_the_same_each_time() -> None:
    """Whatever the addresses of their operations are, by which sets of these are in order."""
    found = {str(grouped(trees()).module) for _ in range(6)}
    assert len(found) == 1


def test_shorter_chains_go_behind_the_longest_that_they_meet() -> None:
    """As what each step reads beside the state: ahead of it, each step moved all of those before."""

    def group(*read: GroupOp) -> GroupOp:
        return GroupOp("group", [each.outputs[0] for each in read], Region(Block()), [tensor_type((4,), "float32")])

    state = group()
    groups = [state, group()]
    for _ in range(10):
        state = group(groups[-1], state)
        groups += [state, group()]
    assert _chains(groups) == [[groups[1], groups[0], *groups[2:-1]], groups[-1:]]


def test_kernels_of_branches_are_for_one_thread_and_no_task_of_a_search() -> None:
    net = lstm()
    compiled = lw.compile(net, TWO, processes=1)
    loaded: Any = compiled.loaded()
    assert loaded.branches == list(compiled.plan.branches) and loaded.threads == 2
    tasks, _ = extract_tasks(net, TWO, include_simple_tasks=True)
    assert tasks and {task.target for task in tasks} == {resolve_target(TWO)}
    (low, *_, high), *_ = compiled.plan.branches
    inside = {compiled.plan.kernels[step.kernel].workload_key for step in compiled.plan.steps[low:high]}
    assert inside.isdisjoint(task.workload_key for task in tasks)


def test_a_kernel_of_a_branch_takes_no_record_of_all_threads_where_it_has_its_own() -> None:
    """Nor the other way round: the same workload may be a branch's kernel, and one that all threads run."""
    net: Net = lw.Network("one")
    weight, _ = weights_of(net, 64, 0)
    net.output(net.dense(net.input("x", (2, 64)), weight))
    tasks = [extract_tasks(net, f"llvm cores={cores}")[0][0] for cores in (1, 2)]
    records = [
        Record(task.workload_key, task.compute_dag.hash, str(task.target), "s", (), task.default_schedule, (1e-3,))
        for task in tasks
    ]
    for order in (tasks, tasks[::-1]):
        known = KnownSchedules(records, {}, tasks[1].target)
        for task in order:
            found = known.best(task)
            assert found is not None and found.record.target == str(task.target)


def test_kernels_with_parallel_loops_do_not_run_beside_each_other() -> None:
    """They would hand out work to threads that are at work."""
    net: Net = lw.Network("large")
    x = net.input("x", (512, 512))
    net.output(net.exp(x), net.tanh(x))
    compiled = lw.compile(net, TWO, processes=1)
    package = replace(compiled.package, plan=replace(compiled.plan, branches=((0, 1, 2),)))
    assert LlvmNetwork(package).branches == []


@only_with_gcc
@pytest.mark.parametrize("make", [rows, lstm, directions])
@pytest.mark.few(1)
def test_a_network_of_branches_is_a_c_function(make: Callable[[], lw.Network], tmp_path: Path) -> None:
    """Of its kernels in order, whose tensors lie as those of branches do."""
    net = make()
    compiled, feeds = lw.compile(net, TWO, processes=1), feeds_of(net)
    assert compiled.plan.branches
    found = exported_outputs(compiled, [*feeds.values()], tmp_path)
    for got, want in zip(found, net.evaluate(**feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_tensors_of_branches_share_no_bytes_with_what_is_beside_them(seed: int) -> None:
    random = Random(seed)
    bounds = (4, 9, 13, 20)
    tensors = []
    for _ in range(40):
        first = random.randrange(25)
        last = min(24, first + random.randrange(6))
        tensors.append(Live(256 * random.randrange(1, 5), first, last))
    offsets, _ = arrange([beside(tensor, (bounds,)) for tensor in tensors])
    spans = [range(start, start + footprint(t.nbytes)) for start, t in zip(offsets, tensors, strict=True)]
    for k, one in enumerate(tensors):
        for n, other in enumerate(tensors[:k]):
            if _at_once(one, other, bounds):
                assert spans[k].stop <= spans[n].start or spans[n].stop <= spans[k].start


def _at_once(one: Live, other: Live, bounds: tuple[int, ...]) -> bool:
    """True where there is an order of the branches' steps in which both are there."""

    def branch(step: int) -> int:
        return sum(bound <= step for bound in bounds) if bounds[0] <= step < bounds[-1] else 0

    for mine in {one.first, one.last}:
        for theirs in {other.first, other.last}:
            if branch(mine) and branch(theirs) and branch(mine) != branch(theirs):
                return True
    return one.first <= other.last and other.first <= one.last


def _meet(one: Use, other: Use) -> bool:
    """True where two uses must not be at once, by what that means."""
    return (
        one.branch != other.branch
        and (one.is_write or other.is_write)
        and not {*range(one.start, one.end)}.isdisjoint(range(other.start, other.end))
    )


@pytest.mark.parametrize("seed", range(8))
def test_branches_that_use_the_same_bytes_are_found(seed: int) -> None:
    random, outcomes = Random(seed), set[bool]()
    for _ in range(100):
        uses = []
        for _ in range(random.randrange(12)):
            start = random.randrange(40)
            uses.append(Use(start, start + random.randrange(1, 9), random.randrange(4), random.random() < 0.4))
        wanted = {tuple(sorted((a.branch, b.branch))) for a in uses for b in uses if _meet(a, b)}
        found = branches_that_meet(uses)
        assert found in wanted if wanted else found is None
        outcomes.add(found is None)
    assert outcomes == {False, True}


def test_thousands_of_branches_are_compared_at_once() -> None:
    """A file may say that each step is one: 2000 took 56 s where each was compared with each."""
    read = [Use(3 * n, 3 * n + 2, n, False) for n in range(20_000)]
    written = [Use(3 * n + 2, 3 * n + 3, n, True) for n in range(20_000)]
    assert branches_that_meet([*read, *written]) is None
    assert branches_that_meet([*read, *written, Use(50_000, 50_001, 0, True)]) == (0, 16_666)
