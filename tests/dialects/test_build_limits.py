"""Somebody's schedule, and what does not fit into memory, end with a sentence before anything is written."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outputs import one
from xdsl.dialects.builtin import ModuleOp

import loopwright as lw
from loopwright import te, topi
from loopwright.backends import host_memory, kernel_memory
from loopwright.backends.host_memory import NotEnoughMemory, available_bytes, host_memory_bytes
from loopwright.cli import main
from loopwright.passes.build_limits import USUAL_LIMITS, BuildLimits
from loopwright.search.measure.backend_api import load_backend
from loopwright.search.measure.measurer import MeasureOptions
from loopwright.search.measure.reference import reference_bytes
from loopwright.search.records.file import Record, append


def product(m: int, n: int, k: int) -> list[te.Tensor]:
    a, b = te.placeholder((m, k), name="a"), te.placeholder((n, k), name="b")
    return [a, b, topi.nn.dense(a, b)]


@pytest.fixture(scope="module")
def task() -> lw.SearchTask:
    return lw.SearchTask(product, args=(512, 512, 512), target="llvm cores=1")


def steps(*texts: str) -> str:
    return ",".join(texts)


ALL = [f"lw-unroll{{block=T_dense loop={name}}}" for name in "ijk"]
STRANGE = {
    "copies": (
        steps(*ALL),
        "build: block 'T_dense' over 'i', 'j', 'k' as 134,217,728 statements of straight-line code would be "
        "more than the limit of 4,096 (BuildLimits.statements)",
    ),
    "pragma": ("lw-pragma{block=T_dense loop=i auto_unroll_max_step=4000000000}", "134,217,728 statements"),
    "lanes": (
        "lw-reorder{block=T_dense loops=k,i,j},lw-fuse{block=T_dense loops=i,j},lw-vectorize{block=T_dense loop=i_j}",
        "over 'i_j' as 262,144 elements at once would be more than the limit of 4,096 (BuildLimits.lanes)",
    ),
    "nested": (
        steps(*(f"lw-split{{block=T_dense loop=i{'0' * n} factors=1,512}}" for n in range(300))),
        "block 'T_dense' in 129 loops would be more than the limit of 128 (BuildLimits.depth)",
    ),
    "long": (
        steps(*["lw-reorder{block=T_dense loops=i,j,k}"] * 5000),
        "5,000 steps would be more than the limit of 2,048",
    ),
    "overshoot": (
        f"lw-split{{block=T_dense loop=k factors={1 << 40},1}}",
        "2,147,483,648 iterations for each that it has would be more than the limit of 65,536 (BuildLimits.overshoot)",
    ),
    "aligned": (
        "lw-cache-read{block=T_dense buffer=a scope=global},"
        f"lw-storage-align{{block=a_global axis=0 factor={1 << 40} offset=0}}",
        "kernel main, whose largest buffer 'a_global' has 2,247,401,767,176,192 bytes, takes",
    ),
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_would_take_for_ever_to_build_is_a_sentence(task: lw.SearchTask, name: str, tmp_path: Path) -> None:
    """By hand, from records, and as a candidate."""
    schedule, sentence = STRANGE[name]
    with pytest.raises((lw.ScheduleError, NotEnoughMemory)) as caught:
        task.build(schedule)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)
    path = tmp_path / "theirs.jsonl"
    versions = load_backend("loopwright.backends.llvm.device").versions()
    append(path, [stranger(task, schedule, versions)])
    with pytest.raises((lw.ScheduleError, NotEnoughMemory)) as caught:
        task.apply_best(path)
    assert sentence in str(caught.value)
    with pytest.raises((lw.ScheduleError, NotEnoughMemory)):
        load_backend("loopwright.backends.llvm.device").build(str(task.module), schedule)


def stranger(task: lw.SearchTask, schedule: str, versions: dict[str, str]) -> Record:
    return Record(
        workload_key=task.workload_key,
        workload_hash=task.compute_dag.hash,
        target=str(task.target),
        sketch="theirs",
        decisions=(),
        schedule=schedule,
        times_s=(1e-9,),
        versions=versions,
    )


def test_the_command_line_says_it_with_exit_code_2(
    task: lw.SearchTask, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "product.mlir"
    path.write_text(str(task.compute_dag.module))
    for name in ("copies", "aligned"):
        assert main(["replay", str(path), "--schedule", STRANGE[name][0]]) == 2
        said = capsys.readouterr().err
        assert STRANGE[name][1] in said and len(said.strip().splitlines()) == 1


def test_callers_set_the_limits(task: lw.SearchTask) -> None:
    small = lw.SearchTask(product, args=(8, 8, 8), target="llvm cores=1")
    schedule = steps(*ALL)
    a, b = small.reference.inputs
    np.testing.assert_allclose(small.build(schedule)(a, b), a @ b.T, rtol=1e-5, atol=1e-5)
    with pytest.raises(lw.ScheduleError, match=r"512 statements .* the limit of 100 \(BuildLimits.statements\)"):
        small.build(schedule, limits=BuildLimits(statements=100))
    with pytest.raises(lw.ScheduleError, match=r"3 steps would be more than the limit of 2"):
        small.build(schedule, limits=BuildLimits(steps=2))
    with pytest.raises(NotEnoughMemory, match=r"takes 768 bytes of memory, there are 500"):
        small.build("", limits=BuildLimits(bytes=500))
    wide = "lw-reorder{block=T_dense loops=k,i,j},lw-vectorize{block=T_dense loop=j}"
    with pytest.raises(lw.ScheduleError, match=r"over 'j' as 8 elements at once would be more than the limit of 4"):
        lw.build(small.schedule_module(wide), limits=BuildLimits(lanes=4))
    assert one(small.build(wide, limits=replace(USUAL_LIMITS, lanes=8))(a, b)).shape == (8, 8)


@pytest.mark.parametrize("field", [f.name for f in fields(BuildLimits)])
def test_limits_that_make_no_sense_are_refused(field: str) -> None:
    values: tuple[Any, ...] = (0, -1, 1.5, True, "many")
    for value in values:
        with pytest.raises(ValueError, match=f"{field} must be a whole number of at least 1, got"):
            BuildLimits(**{field: value})


# -- memory -----------------------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_refused_before_work_starts_with_the_bytes(
    monkeypatch: pytest.MonkeyPatch, task: lw.SearchTask
) -> None:
    huge = lw.SearchTask(product, args=(1 << 20, 1 << 20, 1 << 4), target="llvm cores=1")
    with pytest.raises(NotEnoughMemory, match=r"'T_dense' has 4,398,046,511,104 bytes, takes 4,398,180,728,832 bytes"):
        huge.build("")
    with pytest.raises(NotEnoughMemory, match=r"data to check 'main' by takes [\d,]{18,} bytes of memory, there are"):
        huge.tune(lw.TuningOptions(num_measure_trials=2, progress=False), MeasureOptions("fake_backend", builders=1))
    monkeypatch.setattr(kernel_memory, "host_memory_bytes", lambda: 3 << 20)
    with pytest.raises(NotEnoughMemory, match=r"takes 3,145,729 bytes of memory, there are 3,145,728"):
        kernel_memory.require_memory(lowered(3 << 20, 1))
    kernel_memory.require_memory(lowered((3 << 20) - 1, 1))


def lowered(size: int, others: int) -> ModuleOp:
    """A kernel with an input of `size` bytes and an output of `others`."""
    data = te.placeholder((size,), "int8", name="data")
    out = te.compute((others,), lambda i: data[i], name="out")
    from loopwright.backends.build import lower_to_kernel

    return lower_to_kernel(te.create_module([data, out]), "llvm cores=1")


def test_bytes_of_a_reference_bound_what_making_it_takes() -> None:
    """Inputs, stages in their types, and one of them in double precision: NumPy's own peak is not above that."""
    import tracemalloc

    data = te.placeholder((512, 1024), name="data")
    task = lw.SearchTask(te.create_module([data, topi.nn.relu(topi.nn.relu(data))]), target="llvm cores=1")
    func = task.compute_dag.func
    tracemalloc.start()
    task.reference  # noqa: B018 (made now)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    boxes = 64 << 20  # what the interpreter works on at a time
    assert reference_bytes(func) >= 4 * 512 * 1024 * 4 and peak <= reference_bytes(func) + boxes


@pytest.mark.parametrize(("limit", "used"), [("4096", "1024"), ("max", "0")])
def test_a_container_has_what_it_may_have(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: str, used: str
) -> None:
    paths = tmp_path / "memory.max", tmp_path / "memory.current"
    for path, text in zip(paths, (limit, used), strict=True):
        path.write_text(text + "\n")
    monkeypatch.setattr(host_memory, "_CGROUPS", ((Path("/nowhere"), Path("/nowhere")), paths))
    if limit == "max":
        assert host_memory_bytes() > 1 << 20 and available_bytes() > 1 << 20
    else:
        assert host_memory_bytes() == 4096 and available_bytes() == 3072
        paths[0].unlink()
        assert host_memory_bytes() == 4096, "it does not change, and is asked for each tensor of a model"


def test_a_limit_of_the_address_space_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_memory.resource, "getrlimit", lambda which: (1 << 20, 1 << 20))
    assert host_memory_bytes() == 1 << 20 and available_bytes() == 0


def test_outputs_that_do_not_fit_are_refused_when_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_memory, "available_bytes", lambda: 1 << 20)
    data = te.placeholder((4,), name="data")
    out = te.compute((1 << 27,), lambda i: data[i % 4], name="out")
    kernel = lw.SearchTask(te.create_module([data, out]), target="llvm cores=1").build("")
    with pytest.raises(NotEnoughMemory, match="the output of kernel main takes 536,870,912 bytes of memory"):
        kernel(np.zeros(4, np.float32))


def test_a_device_says_what_it_has_where_a_buffer_is_larger() -> None:
    pytest.importorskip("pyopencl")
    with pytest.raises(NotEnoughMemory, match="a buffer of opencl:0 takes 1,125,899,906,842,624 bytes"):
        lw.opencl(0).allocate(1 << 50)
