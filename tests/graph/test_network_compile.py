"""Compiled networks on the CPU: right, in little memory, kept in a file, run from threads; and what they refuse."""

from __future__ import annotations

import resource
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from process_limits import limited
from small_networks import SMALL, feeds_of

import loopwright as lw
from loopwright.backends.arrays import PAGE_BYTES, place_in_page
from loopwright.backends.targets import resolve_target
from loopwright.dialects.loop import blocks_in
from loopwright.graph.build_ahead import processes_ahead
from loopwright.graph.build_process import BuildProcess
from loopwright.graph.builders import BuildError, Job, build_all
from loopwright.graph.chosen_schedules import UntunedWarning
from loopwright.graph.runtime.memory import Live, arrange
from loopwright.graph.runtime.package import PackageError
from loopwright.search.records.file import ErrorCode, Record, RecordWarning
from loopwright.storage.binary_cache import CacheWarning

pytestmark = pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")

TARGET = "llvm cores=1"


def small_net(batch: int = 1) -> lw.Network:
    net = lw.Network("small")
    random = np.random.default_rng(0)
    x = net.input("data", (batch, 4, 6, 6))
    y = net.conv2d(x, net.constant(random.standard_normal((8, 4, 3, 3), np.float32), "w"), padding=1, label="conv")
    y = net.relu(net.bias_add(y, net.constant(random.standard_normal(8, np.float32), "b")), label="act")
    z = net.dense(
        net.flatten(net.global_avg_pool(y)), net.constant(random.standard_normal((5, 8), np.float32)), label="logits"
    )
    net.output(net.softmax(z), y, names=["prob", "features"])
    return net


@pytest.fixture(scope="module")
def small() -> lw.CompiledNetwork:
    return lw.compile(small_net(), TARGET, processes=1)


def steps_of(net: lw.Network, sequence: Any, count: int) -> list[Any]:
    return [
        net.softmax(net.strided_slice(sequence, begin=[t], end=[t + 1], axes=[0]), axis=2, label=f"at{t}")
        for t in range(count)
    ]


def test_slices_of_a_sequence_are_places_in_its_memory(tmp_path: Path) -> None:
    """Of an input, and of what a kernel writes; bound to arrays of a caller's, kept in a file, and in a library."""
    net = lw.Network("steps")
    data = net.input("data", (5, 8, 16))
    steps = steps_of(net, data, 5)
    again = steps_of(net, net.softmax(net.concatenate(*steps, axis=0), axis=1), 5)
    total = again[0]
    for step in (*steps[1:], *again[1:]):
        total = net.add(net.multiply(total, 2.0), step)
    net.output(total)
    compiled = lw.compile(net, TARGET, processes=1)
    parts = [place for step in compiled.plan.steps for place in step.places[:-1] if place.kind == "part"]
    assert len(parts) == 10 + 4, "two sequences of five steps are read without a copy, and four where they are joined"
    assert sum(step.places[-1].kind == "part" for step in compiled.plan.steps) == 5, "and one is written without"
    assert len({step.kernel for step in compiled.plan.steps if "at" in step.label}) <= 3, "steps share their kernels"

    feeds = feeds_of(net)
    (want,) = net.evaluate(**feeds)
    compiled.save(tmp_path / "steps.lw")
    for network in (compiled, lw.load_network(tmp_path / "steps.lw")):
        executor = network.executor()
        executor.run(**feeds)
        np.testing.assert_allclose(executor.get_output(0), want, rtol=1e-5)
    got = np.zeros_like(want)
    loaded: Any = compiled.loaded()
    loaded.frame().run([feeds["data"].ctypes.data, got.ctypes.data])
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("name", ["mobilenet"])
@pytest.mark.slow(1.2)
def test_networks_are_right(name: str) -> None:
    net = lw.testing.network(name, batch=2, **SMALL[name])
    feeds = feeds_of(net)
    executor = lw.compile(net, TARGET).executor()
    executor.run(**feeds)
    for got, want in zip(map(executor.get_output, executor.output_names), net.evaluate(**feeds), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-4 * np.abs(want).max(), rtol=1e-3)


def test_inputs_outputs_and_calls(small: lw.CompiledNetwork) -> None:
    net, executor = small_net(), small.executor()
    (data,) = feeds_of(net).values()
    prob, features = net.evaluate(data=data)
    executor.set_input("data", data)
    executor.run()
    np.testing.assert_allclose(executor.get_output(0), prob, rtol=1e-4)
    np.testing.assert_allclose(executor.get_output("features"), features, rtol=1e-4, atol=1e-5)
    executor.set_input(0, np.zeros_like(data))
    executor.run()
    assert not np.allclose(executor.get_output(0), prob, rtol=1e-3)
    again = executor(data[:, :, ::-1][:, :, ::-1])
    np.testing.assert_allclose(again[0], prob, rtol=1e-4)
    executor.run()  # inputs keep their values
    np.testing.assert_allclose(executor.get_output("prob"), prob, rtol=1e-4)
    assert (executor.input_names, executor.output_names) == (["data"], ["prob", "features"])


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda e: e.get_output(), ValueError, "network small: there is no output before the first run"),
        (lambda e: e.run(), ValueError, "network small: input 'data' was not set"),
        (lambda e: e.set_input("image", 0), ValueError, "network small has no input 'image'; it has data"),
        (lambda e: e.set_input(1, 0), ValueError, "network small has no input 1; it has data"),
        (lambda e: e.get_output("top"), ValueError, "network small has no output 'top'; it has prob, features"),
        (lambda e: e.set_input("data", np.zeros((1, 4, 6, 6))), TypeError, "input 'data' must be float32, got float64"),
        (
            lambda e: e.set_input("data", [[1], [1, 2]]),
            TypeError,
            "input 'data' must be an array of NumPy's, or what it",
        ),
        (
            lambda e: e.run(data=np.zeros((4, 6), "float32")),
            ValueError,
            r"must have shape \(1, 4, 6, 6\), got \(4, 6\)",
        ),
        (lambda e: e(), TypeError, r"network small takes 1 arrays \(data\), got 0"),
    ],
)
def test_mistakes_are_refused(small: lw.CompiledNetwork, use: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        use(small.executor())


def test_file_is_loaded_without_the_front_end(small: lw.CompiledNetwork, tmp_path: Path) -> None:
    net = small_net()
    (data,) = feeds_of(net).values()
    small.save(tmp_path / "small.lw")
    np.save(tmp_path / "data.npy", data)
    program = f"""
import sys
import numpy as np
import loopwright as lw
net = lw.load_network({str(tmp_path / "small.lw")!r})
np.save({str(tmp_path / "prob.npy")!r}, net.executor()(np.load({str(tmp_path / "data.npy")!r}))[0])
front = [f"loopwright.{{package}}" for package in ("te", "topi", "search", "testing", "frontends")]
loaded = [name for name in front if name in sys.modules]
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    np.testing.assert_allclose(np.load(tmp_path / "prob.npy"), net.evaluate(data=data)[0], rtol=1e-4)
    again = lw.load_network(tmp_path / "small.lw")
    assert again.plan == small.plan
    plan = replace(again.plan, target=again.plan.target.replace("model=", "model=other-"))
    with pytest.raises(PackageError, match=r"network small is compiled for other-.*, this CPU is .*: compile it again"):
        lw.CompiledNetwork(replace(again.package, plan=plan)).executor()
    (tmp_path / "other").write_text("no network")
    with pytest.raises(PackageError, match=r"other is no compiled network"):
        lw.load_network(tmp_path / "other")


def test_executors_run_in_threads(small: lw.CompiledNetwork) -> None:
    net = small_net()
    feeds = [feeds_of(net, seed)["data"] for seed in range(4)]
    want = [net.evaluate(data=data)[0] for data in feeds]
    wrong: list[int] = []

    def work(number: int) -> None:
        executor = small.executor()
        for _ in range(50):
            if not np.allclose(executor(feeds[number])[0], want[number], rtol=1e-4):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_profile_and_benchmark(small: lw.CompiledNetwork) -> None:
    executor = small.executor()
    result = executor.benchmark(repeat=2, min_repeat_ms=1)
    assert len(result.times_s) == 2 and result.mean > 0
    profile = executor.profile(repeat=2)
    assert [row.label for row in profile] == ["act", "global_avg_pool", "logits", "softmax"]
    assert profile.total_s == pytest.approx(sum(row.time_s for row in profile))
    table = str(profile).splitlines()
    assert table[0].split() == ["step", "operators", "ms", "share", "GFLOP/s", "schedule"]
    assert any("conv2d_add_relu" in line and line.endswith("default") for line in table)
    assert table[-1].startswith("small: 4 steps")
    assert small.plan.flops == sum(row.kernel.flops for row in profile)
    assert repr(small).startswith("<compiled network small(data: float32[1, 4, 6, 6]) -> prob: float32[1, 5], features")


def test_records_are_used_and_what_lacks_one_is_said_once() -> None:
    net = small_net()
    tasks, _ = lw.extract_tasks(net, TARGET)
    conv = tasks[0]
    plain = "lw-lower-te-to-loop"
    record = Record(conv.workload_key, conv.compute_dag.hash, str(conv.target), "s", (), plain, (1e-3,))
    failed = Record(
        conv.workload_key, conv.compute_dag.hash, str(conv.target), "s", (), "", (), ErrorCode.RUNTIME_ERROR
    )
    with pytest.warns(UntunedWarning) as caught:
        compiled = lw.compile(net, TARGET, records=[failed, record], processes=1)
    assert [str(w.message) for w in caught] == [
        "network small: 3 of 4 kernels have no record and take the default schedule (global_avg_pool, dense, softmax)"
    ]
    assert caught[0].filename == __file__, "who called lw.compile"
    assert [k.tuned for k in compiled.kernels] == [True, False, False, False]
    assert compiled.kernels[0].schedule == plain
    (data,) = feeds_of(net).values()
    np.testing.assert_allclose(compiled.executor()(data)[0], net.evaluate(data=data)[0], rtol=1e-4)
    with lw.apply_history_best([record]), pytest.warns(UntunedWarning, match=r"3 of 4 .*: tune it \(lw.TaskScheduler"):
        around = lw.compile(net, TARGET, processes=1)
    assert [k.tuned for k in around.kernels] == [True, False, False, False]
    other = replace(record, versions={"lw-lower-te-to-loop": "0"})
    with pytest.warns(UntunedWarning, match="4 of 4 kernels"):
        assert not any(k.tuned for k in lw.compile(net, TARGET, records=[other], processes=1).kernels)


@pytest.mark.parametrize(
    "broken", ["lw-lower-te-to-loop,lw-split{", "lw-nothing-known", "lw-split{loop=1 factor=2}", "%"]
)
def test_a_record_of_no_schedule_is_left_out_with_a_warning(broken: str) -> None:
    net = small_net()
    conv, plain = lw.extract_tasks(net, TARGET)[0][0], "lw-lower-te-to-loop"
    record = Record(conv.workload_key, conv.compute_dag.hash, str(conv.target), "s", (), plain, (1e-3,))
    with pytest.warns(RecordWarning, match="a record of conv2d.* is left out: .*") as caught:
        compiled = lw.compile(net, TARGET, [record, replace(record, schedule=broken, times_s=(1e-4,))], processes=1)
    assert len([w for w in caught if w.category is RecordWarning]) == 1
    assert compiled.kernels[0].schedule == plain
    with pytest.warns(RecordWarning), lw.apply_history_best([replace(record, schedule=broken)]):
        assert not lw.compile(net, TARGET, processes=1).kernels[0].tuned


def test_outputs_may_be_inputs_constants_and_views() -> None:
    net = lw.Network("plain")
    x = net.input("data", (2, 3))
    c = net.constant(np.arange(6, dtype="float32"), "c")
    y = net.relu(x)
    net.output(x, c, net.exp(c), net.reshape(y, shape=(6,)), net.expand_dims(y, axis=0), names=list("abcde"))
    executor = lw.compile(net, TARGET, processes=1).executor()
    data = np.array([[-1, 2, 3], [4, -5, 6]], "float32")
    a, b, c_, d, e = executor(data)
    assert (a == data).all() and (b == np.arange(6)).all()
    np.testing.assert_allclose(c_, np.exp(np.arange(6)), rtol=1e-5)
    assert (d == np.maximum(data, 0).reshape(6)).all() and (e == np.maximum(data, 0)[None]).all()
    assert len(lw.compile(net, TARGET, processes=1).plan.steps) == 1  # views and constants cost nothing


def test_integers_and_conditions() -> None:
    net = lw.Network("types")
    x = net.input("data", (4,), "int32")
    y = net.input("other", (4,))
    net.output(net.where(net.greater(x, 1), y, -1.0), net.cast(net.equal(x, 1), dtype="int32"), net.argmax(y))
    out = lw.compile(net, TARGET, processes=1).executor()(np.array([0, 1, 2, 3], "int32"), np.ones(4, "float32"))
    assert [list(np.ravel(o)) for o in out] == [[-1, -1, 1, 1], [0, 1, 0, 0], [0]]


def test_arena_is_smaller_than_what_lies_in_it() -> None:
    net = lw.Network("chain")
    x = net.input("data", (64, 64))
    for _ in range(6):
        x = net.softmax(x)
    net.output(x)
    plan = lw.compile(net, TARGET, processes=1).plan
    tensor = 64 * 64 * 4
    assert plan.arena_bytes <= 3 * tensor + 6 * 4096 < plan.tensor_bytes
    assert len(plan.kernels) == 1 and len(plan.steps) == 6


@given(st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 8), st.integers(0, 4)), min_size=1, max_size=24))
@settings(deadline=None, max_examples=60)
def test_tensors_that_meet_do_not_overlap(drawn: list[tuple[int, int, int]]) -> None:
    tensors = [Live(size, first, first + length) for size, first, length in drawn]
    offsets, total = arrange(tensors)
    for n, (one, start) in enumerate(zip(tensors, offsets, strict=True)):
        assert start % 256 == 0 and start + one.nbytes <= total
        for other, begin in zip(tensors[:n], offsets[:n], strict=True):
            apart = start + one.nbytes <= begin or begin + other.nbytes <= start
            assert apart or not one.meets(other)


def test_tensors_that_follow_each_other_begin_at_other_places_of_a_page() -> None:
    sizes = (802_816, 100, 401_408, 401_408, 4096, 200_704, 200_704)
    offsets, total = arrange([Live(size, step, step + 1) for step, size in enumerate(sizes)])
    large = [offset % PAGE_BYTES for offset, size in zip(offsets, sizes, strict=True) if size > PAGE_BYTES]
    assert {(b - a) % PAGE_BYTES for a, b in pairwise(large)} == {place_in_page(1)}
    assert large[0] == place_in_page(1)  # behind what a caller has at the beginning of a page
    assert total <= sizes[0] + 4 * PAGE_BYTES


@pytest.mark.parametrize("size", [802_816, 69_632])
def test_tensors_of_one_size_take_turns_at_two_stretches(size: int) -> None:
    """Each began at a place of its own, where it no longer fit between two others: half as many bytes again."""
    _, total = arrange([Live(size, step, step + 1) for step in range(50)])
    assert total <= 2 * (size + PAGE_BYTES)


def test_kernels_are_built_by_processes_and_kept(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = "loopwright.backends.llvm.device"
    net = lw.Network("many")
    x = net.input("data", (8, 8))
    net.output(*(net.sum(x + float(k), axis=1) for k in range(5)))
    tasks, _ = lw.extract_tasks(net, TARGET)
    jobs = [Job(t.name, str(t.module), None) for t in tasks]
    assert len(jobs) == 5
    built = build_all(backend, jobs, processes=2)
    assert [b.schedule for b in built] == [t.default_schedule for t in tasks]
    assert all(b.artifact for b in built)
    files = list((own_cache / "kernels").glob("*/*.bin"))
    assert len(files) == 5
    bad = [Job("sum", job.workload, 'lw-lower-te-to-loop,lw-unroll{block="x" loop="y"}') for job in jobs]
    with pytest.raises(BuildError, match=r"kernel sum does not compile: lw-unroll"):
        build_all(backend, bad, processes=2)
    monkeypatch.setattr("loopwright.graph.builders._in_processes", None)
    assert build_all(backend, jobs, processes=2) == built
    with pytest.raises(BuildError, match=r"kernel sum does not compile: lw-unroll"):
        build_all(backend, bad[:1], 1)


@pytest.mark.usefixtures("registries")
def test_kernels_by_rules_of_others_are_not_kept(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of known schedules are: no rule has a say in them."""
    net = lw.Network("few")
    x = net.input("data", (8, 8))
    net.output(*(net.sum(x + float(k), axis=1) for k in range(5)))
    jobs = [Job(t.name, str(t.module), None) for t in lw.extract_tasks(net, TARGET)[0]]
    known = build_all("loopwright.backends.llvm.device", jobs, processes=1)
    scheduled = [replace(job, schedule=built.schedule) for job, built in zip(jobs, known, strict=True)]
    files = {*own_cache.rglob("*.bin")}

    class Plain(lw.SketchRule):
        """Leaves everything as it is written."""

        order = 1

        def apply(self, draft: lw.Draft, target: lw.Target) -> list[lw.Draft]:
            draft.settled |= {block.block_name for block in blocks_in(draft.module)}
            return [draft]

    lw.register_sketch_rule(Plain)
    monkeypatch.setattr("loopwright.graph.builders._in_processes", None)
    found = build_all("loopwright.backends.llvm.device", jobs, processes=2)
    assert all(new.schedule != old.schedule for new, old in zip(found, known, strict=True))
    assert {*own_cache.rglob("*.bin")} == files
    assert build_all("loopwright.backends.llvm.device", [scheduled[0]])[0].artifact == known[0].artifact
    assert len({*own_cache.rglob("*.bin")} - files) == 1


@pytest.mark.slow(1.2)
def test_processes_start_ahead_of_kernels_that_were_not_compiled_before(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[BuildProcess] = []

    def start(backend: str) -> BuildProcess:
        started.append(BuildProcess(backend))
        return started[-1]

    monkeypatch.setattr("loopwright.graph.build_ahead.BuildProcess", start)
    monkeypatch.setattr("loopwright.graph.builders.BuildProcess", None)  # those that are started are used
    net = lw.Network("rows")
    net.output(*(net.sum(net.input(f"data{n}", (8, n)), axis=1) for n in range(8, 12)))
    first = lw.compile(net, TARGET, processes=2)
    assert len(started) == 1 and started[0].has_ended
    assert lw.compile(net, TARGET, processes=2).package.kernels == first.package.kernels
    assert len(started) == 1
    few = lw.Network("few")
    few.output(few.sum(few.input("data", (8, 7)), axis=1))
    lw.compile(few, TARGET, processes=2)
    assert len(started) == 1
    monkeypatch.setattr("loopwright.graph.build_ahead.are_own_rules", lambda: False)
    net.output(*(net.sum(net.input(f"data{n}", (8, n)), axis=1) for n in range(12, 14)))
    with processes_ahead("loopwright.backends.llvm.device", net, resolve_target(TARGET), 2) as none:
        assert not none  # what other rules may choose is compiled here


@pytest.mark.slow(1.2)
def test_kernels_that_were_damaged_on_the_disk_are_compiled_again(own_cache: Path) -> None:
    net = small_net()
    first = lw.compile(net, TARGET, processes=1)
    files = list((own_cache / "kernels").glob("*/*.bin"))
    assert len(files) == len(first.kernels)
    for number, file in enumerate(files):
        data = file.read_bytes()
        file.write_bytes(data[: len(data) // (number + 1)] if number else data[:-9] + b"012345678")
    with pytest.warns(CacheWarning, match=r"^dropped a damaged kernel from the cache, it is compiled again: "):
        again = lw.compile(net, TARGET, processes=1)
    assert again.package.kernels == first.package.kernels
    with warnings.catch_warnings():
        warnings.simplefilter("error", CacheWarning)
        assert lw.compile(net, TARGET, processes=1).package.kernels == first.package.kernels


def test_a_cache_that_cannot_be_written_does_not_stop_compiling(own_cache: Path) -> None:
    with limited(resource.RLIMIT_FSIZE, 500), pytest.warns(CacheWarning) as said:
        compiled = lw.compile(small_net(), TARGET, processes=1)
    folder = own_cache / "kernels"
    texts = {str(each.message) for each in said if issubclass(each.category, CacheWarning)}
    assert texts == {f"compiled kernels are not kept: cannot write to {folder}: File too large"}
    assert compiled.executor()(np.zeros((1, 4, 6, 6), np.float32))
    assert not [path for path in folder.rglob("*") if path.is_file()]


def test_layout_may_be_converted_when_compiling() -> None:
    net = small_net()
    (data,) = feeds_of(net).values()
    after = net.transform("lw-graph-convert-layout{layout=NHWC}")
    compiled = lw.compile(after, TARGET, processes=1)
    assert '"NHWC"' in str(after) and '"NHWC"' not in str(net)
    for got, want in zip(compiled.executor()(data), net.evaluate(data=data), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-5, rtol=1e-3)
