"""Explanations of schedules: each step measured and checked, limits of blocks, counters, instructions, knobs."""

import json
import math
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from commands import call

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.cuda.nvrtc import MissingCompiler
from loopwright.backends.llvm.line_table import with_line_table
from loopwright.dialects.target import parse_target
from loopwright.search.explain import nsight
from loopwright.search.explain.block_limits import OCCUPANCY, block_limits, machine_at, roofs
from loopwright.search.explain.explanation import Explanation, explain
from loopwright.search.explain.instructions import FMA, LOAD, SPILL, STORE, hot_loop
from loopwright.search.explain.nsight import Profile, launch_counters, profile
from loopwright.search.explain.perf_events import Event, count
from loopwright.search.explain.sections import Section, as_html, as_text
from loopwright.search.explain.step_times import VariantTime, _beginnings
from loopwright.search.features.machine import machine_of
from loopwright.search.measure.limits import Limits
from loopwright.search.records import file as rec
from loopwright.search.records.file import Record, Role
from loopwright.search.report.group import groups
from loopwright.search.report.knobs import knobs_of

pytestmark = pytest.mark.usefixtures("quick_measuring")
LIMITS = Limits({"float32": 96.0}, 20.0, "measured on 1 thread")


def product(m: int = 32, n: int = 48, k: int = 16) -> list[te.Tensor]:
    a, b = te.placeholder((m, k), name="a"), te.placeholder((k, n), name="b")
    return [a, b, topi.matmul(a, b)]


def scheduled() -> lw.Schedule:
    sch = lw.Schedule(product(), target="llvm cores=1 vector_bytes=32")
    i, j, k = sch.get_loops("T_matmul")
    j0, j1 = sch.split("T_matmul", j, [None, 8])
    sch.reorder("T_matmul", i, j0, k, j1)
    sch.vectorize("T_matmul", j1)
    return sch


@pytest.fixture(scope="module")
def explained(quick_measuring: None) -> Explanation:
    return explain(scheduled(), limits=LIMITS, counters=False)


def test_each_step_is_measured_and_left_out(explained: Explanation) -> None:
    lowered, split, reordered, vectorized = explained.times.steps
    assert all(0 < step.after.time_s < math.inf for step in explained.times.steps)
    assert lowered.without.why == "every schedule begins with it" and lowered.without.needed_by == 0
    assert split.without.needed_by == 3 and "step 3 is refused" in split.without.why
    assert "j0" in split.without.why and "}" not in split.without.why
    assert 0 < vectorized.without.time_s < math.inf and not vectorized.without.why
    # Lanes must be the innermost loop or not: the rule of vectorize decides, and is quoted where it refuses.
    assert (reordered.without.needed_by == 4) == bool(reordered.without.why)
    assert vectorized.after.time_s == explained.time_s, "the schedule that ends with the last step is the whole one"


def test_an_explanation_is_text_a_page_and_json(explained: Explanation, tmp_path: Path) -> None:
    text = str(explained)
    for words in (
        "Why T_matmul is as fast as it is",
        "step 3 needs it",
        "Without step 2, step 3 is refused:",
        "Split loop j of T_matmul",
        "Limits of each block",
        "arithmetic 96 GFLOP/s (measured on 1 thread)",
        "None: they were not asked for.",
        "The hottest loop has",
        "GFLOP/s that memory allows (measured on 1 thread)",
    ):
        assert words in text, words
    page = explained.write(tmp_path / "why.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and page.count("<table") == page.count("</table>") >= 3
    assert "http" not in page and "<script" not in page
    assert explained.write(tmp_path / "why.html").read_text() == page, "a page of ours is replaced"
    assert explained.write(tmp_path / "why.txt").read_text() == f"{text}\n"
    cell = explained._repr_html_()
    assert cell.count("<table") == page.count("<table") and "class=" not in cell and len(repr(explained)) < 80
    (tmp_path / "mine.html").write_text("my own page")
    with pytest.raises(OSError, match="page"):
        explained.write(tmp_path / "mine.html")
    plain = json.loads(json.dumps(explained.as_json(), allow_nan=False))
    assert plain["times"]["steps"][0]["without"]["time_s"] is None and plain["time_s"] == explained.time_s


def test_the_method_of_a_schedule_is_the_function() -> None:
    sch = lw.Schedule(product(8, 8, 8), target="llvm cores=1")
    found = sch.explain(limits=LIMITS, counters=False)
    assert isinstance(found, lw.Explanation) and found.schedule == sch.pipeline and len(found.times.steps) == 1
    with pytest.raises(TypeError, match="takes a Schedule alone"):
        lw.explain(sch, "lw-lower-te-to-loop")
    with pytest.raises(TypeError, match="a Schedule or a SearchTask, got int"):
        lw.explain(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no target beside a task"):
        lw.explain(lw.SearchTask(product, target="llvm cores=1"), target="llvm")


def test_the_command_explains_a_record_with_the_knobs_that_were_good(tmp_path: Path) -> None:
    sch = scheduled()
    task = lw.SearchTask(product, target="llvm cores=1 vector_bytes=32")
    path, page = tmp_path / "product.jsonl", tmp_path / "why.html"
    rec.append(path, [replace(each, schedule=sch.pipeline, limits=LIMITS.as_json()) for each in records(task, 8)])
    workload = tmp_path / f"product.{task.compute_dag.hash}.mlir"
    workload.write_text(str(te.create_module(product())) + "\n")
    quick = ("--min-repeat-ms", "1", "--builders", "1", "--quiet", "--no-counters")
    code, out, err = call("explain", str(path), "-o", str(page), *quick)
    assert code == 0 and err == "", err
    assert "Knobs" in out and "good values" in out and "why.html: " in out and "measured on 1 thread" in out
    assert task.sketches[0].holes[0].name in out and "Knobs" in page.read_text()
    code, out, _ = call("explain", str(path), "--no-measure")
    assert code == 0 and "None of them was measured." in out and "Split loop j of T_matmul" in out and "Knobs" in out
    code, _, err = call("explain", str(workload), "--no-measure")
    assert code == 2 and "explains what a record file holds" in err
    code, _, err = call("explain", str(workload), *quick, "--schedule", "lw-gone")
    assert code == 2 and "lw-gone" in err


def test_a_block_is_bound_by_the_resource_that_takes_longest() -> None:
    sch = scheduled()
    target = parse_target("llvm cores=1 vector_bytes=32")
    machine = machine_at(target, LIMITS, "float32")
    assert machine.clock_hz == pytest.approx(96e9 / 32)  # two FMA pipes of 8 lanes
    assert machine.far_bytes_per_cycle * machine.clock_hz == pytest.approx(20e9)
    assert machine_at(target, None, "float32") == machine_of(target)
    (block,) = block_limits(sch.module, target, machine)
    assert block.flop == 2 * 32 * 48 * 16 and block.times_s["arithmetic"] == pytest.approx(block.flop / 96e9)
    assert block.times_s[block.binding] == block.longest_s == max(block.times_s.values())
    assert block.occupancy is None
    slow_memory = replace(machine, far_bytes_per_cycle=1e-6)
    assert block_limits(sch.module, target, slow_memory)[0].binding == "memory"
    known = {roof.name: roof for roof in roofs(target, machine, LIMITS, "float32")}
    assert known["arithmetic"].rate == pytest.approx(96.0) and known["memory"].source == "measured on 1 thread"


def test_few_warps_are_said_to_be_what_binds() -> None:
    def binding(threads: int) -> tuple[str, float | None]:
        data = te.placeholder((1 << 18, 64), name="data")
        k = te.reduce_axis((0, 64), name="k")
        sums = te.compute((1 << 18,), lambda i: te.sum(data[i, k], axis=k), name="sums")
        sch = lw.Schedule([data, sums], target="cuda model=h200")
        i, _ = sch.get_loops("sums")
        outer, inner = sch.split("sums", i, [None, threads])
        sch.bind("sums", outer, "blockIdx.x")
        sch.bind("sums", inner, "threadIdx.x")
        target = parse_target("cuda model=h200")
        quick = replace(machine_of(target), near_bytes_per_cycle=1e6, far_bytes_per_cycle=1e6, latency_cycles=400.0)
        (block,) = block_limits(sch.module, target, quick)
        return block.binding, block.occupancy

    few, many = binding(32), binding(1024)
    assert few[0] == OCCUPANCY and few[1] == 0.5, few
    assert many[0] == "latency" and many[1] == 1.0, many


X86 = """
kernel:
	pushq	%rbp
.LBB0_1:
	movq	%rax, 8(%rsp)
.LBB0_2:
	.loc	1 7 1
	vmovups	(%rdi,%rax,4), %ymm1
	vfmadd231ps	%ymm0, %ymm1, %ymm2
	.loc	1 9 1
	vmovups	-96(%rsp), %ymm3
	vaddss	%xmm2, %xmm3, %xmm3
	vmovups	%ymm3, (%rsi,%rax,4)
	jne	.LBB0_2
	jne	.LBB0_1
	retq
"""
ARM = """
kernel:
.LBB0_1:
	ldr	q1, [x0], #16
	fmla	v0.4s, v1.4s, v2.s[0]
	str	q0, [sp, #32]
	b.ne	.LBB0_1
	ret
"""
PTX = """
.visible .entry main(
$L__BB0_1:
	ld.shared.v4.f32 	{%f1, %f2, %f3, %f4}, [%r8];
	// begin inline asm
	{
.reg .f32 f<1>;
mov.f32 f0, %f5;
@asked0 cp.async.ca.shared.global [place0], [pointer0], 4;
}
	mov.u32 	%r9, %tid.x;
	fma.rn.f32 	%f5, %f1, %f2, %f5;
	cp.async.commit_group;
	st.local.f32 	[%rd1], %f5;
	@%p1 bra 	$L__BB0_1;
	ret;
"""


def test_instructions_of_the_hottest_loop() -> None:
    x86 = hot_loop(X86)
    assert x86 is not None and len(x86.instructions) == 6, "of the inner loop"
    assert x86.counts == {FMA: 1, "other float arithmetic": 1, LOAD: 1, STORE: 1, SPILL: 1, "other": 1}
    assert x86.fma_share == x86.vector_share == 0.5 and x86.registers == 4
    assert [each.source_line for each in x86.instructions] == [7, 7, 9, 9, 9, 9]
    arm, ptx = hot_loop(ARM), hot_loop(PTX)
    assert arm is not None and arm.counts == {FMA: 1, LOAD: 1, SPILL: 1, "other": 1} and arm.vector_share == 1.0
    assert ptx is not None and ptx.counts == {FMA: 1, LOAD: 2, SPILL: 1, "other": 3} and ptx.registers == 0
    assert hot_loop("poclbin") is hot_loop("") is None


def test_lines_of_the_source_change_no_instruction() -> None:
    kernel = lw.build(scheduled())
    plain, numbered = hot_loop(kernel.assembly), hot_loop(kernel.assembly_by_line)
    assert plain is not None and numbered is not None
    assert [each.text for each in plain.instructions] == [each.text for each in numbered.instructions]
    assert {each.source_line for each in plain.instructions} == {0}
    lines = kernel.source.splitlines()
    fused = [lines[each.source_line - 1] for each in numbered.instructions if each.kind == FMA]
    assert fused and all("fma" in line for line in fused)
    assert with_line_table("; nothing\n").count("DILocation") == 0


def test_lines_of_cuda_c() -> None:
    sch = lw.Schedule(product(64, 64, 64), target="cuda model=h200")
    i, j, _ = sch.get_loops("T_matmul")
    sch.bind("T_matmul", i, "blockIdx.x")
    sch.bind("T_matmul", j, "threadIdx.x")
    kernel = lw.build(sch)
    try:
        found = hot_loop(kernel.assembly_by_line)
    except MissingCompiler as error:
        pytest.skip(str(error))
    assert found is not None and found.counts[FMA] > 0 and max(each.source_line for each in found.instructions) > 1


def test_events_are_counted_or_it_is_said_why_not() -> None:
    task_clock = Event("task clock, ns", 1, 1)  # PERF_TYPE_SOFTWARE: a kernel counts it without hardware
    found = count(lambda: sum(range(200_000)), 3, [task_clock])
    if not found.values:
        pytest.skip(f"no perf events here: {found.why}")
    assert 1e4 < found.values["task clock, ns"] < 1e10 and found.why == ""
    none = Event("no such", 1, 10_000)
    missing = count(lambda: None, 1, [none])
    assert missing.values == {} and missing.why
    some = count(lambda: None, 1, [task_clock, none])
    assert list(some.values) == ["task clock, ns"] and some.why.startswith("no such not counted: ")


DETAILS = """\
latency 12 us
"ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"
"0","main_k0(float *, float *)","GPU Speed Of Light Throughput","Duration","us","12.50"
"0","main_k0(float *, float *)","GPU Speed Of Light Throughput","Memory Throughput","%","61.2"
"0","main_k0(float *, float *)","Memory Workload Analysis","Memory Throughput","Tbyte/second","2.9"
"0","main_k0(float *, float *)","Launch Statistics","Function Cache Configuration","","CachePreferNone"
"1","main_k1(float *)","Occupancy","Achieved Occupancy","%","48.1"
"""


def test_what_nsight_compute_prints_is_read() -> None:
    first, second = launch_counters(DETAILS.splitlines())
    assert first.kernel == "main_k0" and first.values == {"Duration": "12.50 us", "Memory Throughput": "61.2 %"}
    assert second.kernel == "main_k1" and second.values == {"Achieved Occupancy": "48.1 %"}
    assert launch_counters(["nothing"]) == ()


def test_nsight_compute_runs_a_replay_or_says_why_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = lw.SearchTask(product, target="cuda model=h200")
    monkeypatch.setattr(nsight, "profiler", lambda: None)
    assert profile(task, "lw-lower-te-to-loop", 1) == Profile(
        (), "Nsight Compute (ncu) is not on PATH, nor in a CUDA toolkit"
    )
    script = tmp_path / "ncu"
    monkeypatch.setattr(nsight, "profiler", lambda: str(script))

    def ncu(body: str) -> Profile:
        script.write_text(f"#!/bin/sh\n{body}\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        return profile(task, "lw-lower-te-to-loop", 2, 60.0)

    (tmp_path / "details.csv").write_text(DETAILS)
    found = ncu(f'echo "$@" > {tmp_path}/words; cat {tmp_path}/details.csv')
    assert [launch.kernel for launch in found.launches] == ["main_k0", "main_k1"]
    words = (tmp_path / "words").read_text()
    assert "--launch-count 2" in words and "-m loopwright replay" in words and "--target cuda model=h200" in words
    refused = ncu("echo '==ERROR== ERR_NVGPUCTRPERM - no permission'; exit 1")
    assert refused == Profile((), "ERR_NVGPUCTRPERM - no permission")


def records(task: lw.SearchTask, count: int) -> list[Record]:
    sketch = task.sketches[0]
    found = []
    for number in range(count):
        row = [0] * sketch.n_decisions
        row[0] = number % len(sketch.holes[0].choices)
        base = Record(
            workload_key=task.workload_key,
            workload_hash=task.compute_dag.hash,
            target=str(task.target),
            sketch=sketch.name,
            decisions=tuple(row),
            schedule="",
            times_s=((1 + row[0]) * 1e-3 * (1 + 0.001 * number),),
            device="cpu",
            timestamp=float(number),
            role=Role.TRIAL,
        )
        found.append(base)
    return found


def test_good_values_of_a_knob_are_those_of_the_best_trials() -> None:
    task = lw.SearchTask(product, target="llvm cores=1")
    hole = task.sketches[0].holes[0]
    (group,) = groups(records(task, 3 * len(hole.choices)))
    (knob,) = knobs_of(replace(group, task=task))
    assert knob.name == hole.name and knob.good == [str(hole.choices[0])]
    first, second = knob.values[:2]
    assert (first.value, first.trials, first.best) == (str(hole.choices[0]), 3, 1.0)
    assert second.best == pytest.approx(0.5, rel=0.02) and second.median <= second.best
    (unknown,) = knobs_of(group)
    assert unknown.name == "decision 0" and unknown.good == ["choice 0"]
    assert knobs_of(groups([replace(rec, decisions=()) for rec in group.records])[0]) == []


def test_sections_escape_what_they_show() -> None:
    section = Section("<b>", "a & b", ("x",), [["<i>"]], listing=["1 < 2", "3"], shown=1)
    assert "<i>" not in as_html([section]) and "&lt;b&gt;" in as_html([section]) and "1 &lt; 2" in as_html([section])
    assert as_text([section]).splitlines() == ["<b>", "  a & b", "  x", "  <i>", "  1 < 2", "  ... 1 more"]


def test_a_kernel_that_fails_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    task = lw.SearchTask(product, target="llvm cores=1")
    reference = task.reference
    wrong = replace(reference, expected=tuple(array + 1 for array in reference.expected))
    task.__dict__["reference"] = wrong
    with pytest.raises(lw.ExplanationError, match="WRONG_RESULT"):
        lw.explain(task, "lw-lower-te-to-loop", limits=LIMITS, counters=False)
    assert rec.ErrorCode.WRONG_RESULT


def test_what_would_run_in_one_thread_of_a_gpu_is_not_measured() -> None:
    task = lw.SearchTask(product, target="cuda model=h200")
    sch = lw.Schedule(product(), target="cuda model=h200")
    sch.bind("T_matmul", sch.get_loops("T_matmul")[0], "blockIdx.x")
    lowered, bound = _beginnings(task, sch.steps)
    assert isinstance(lowered, VariantTime) and lowered.why.startswith("T_matmul would run in one thread")
    assert bound == sch.pipeline


def test_vectors_that_threads_share_come_once_from_shared_memory() -> None:
    def shared_s(shares: bool) -> float:
        data = te.placeholder((64, 1 if shares else 32, 4), name="data")
        out = te.compute((64, 32, 4), lambda i, j, k: data[i, 0 if shares else j, k] + 1, name="out")
        sch = lw.Schedule([data, out], target="cuda model=h200")
        i, j, k = sch.get_loops("out")
        sch.bind("out", i, "blockIdx.x")
        sch.bind("out", j, "threadIdx.x")
        sch.vectorize("out", k)
        sch.compute_at(sch.cache_read("out", "data", "shared"), i)
        target = parse_target("cuda model=h200")
        blocks = {block.block: block for block in block_limits(sch.module, target, machine_of(target))}
        return blocks["out"].times_s["shared memory"]

    assert shared_s(False) == pytest.approx(4 * shared_s(True)) and shared_s(True) > 0
