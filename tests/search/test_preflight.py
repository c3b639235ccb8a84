"""Before the first trial a tiny kernel goes the whole way; what is missing is one sentence."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from fake_space import FakeSpace
from patience import PATIENCE_S
from xdsl.dialects.builtin import ModuleOp

import loopwright as lw
from loopwright.backends.c_family.artifact import Artifact
from loopwright.backends.cuda import device as cuda
from loopwright.backends.targets import resolve_target
from loopwright.search.measure.measurer import MeasureOptions, Measurer, MeasureTask, PreflightError
from loopwright.search.measure.preflight import measured_elsewhere, preflight
from loopwright.search.measure.process import WorkerStartError
from loopwright.search.measure.tolerance import EXACT
from loopwright.search.tune.loop import TuningOptions, TuningTask, tune


def tiny(schedule: str) -> Callable[[], tuple[MeasureTask, str]]:
    source = np.arange(8, dtype=np.float32)
    return lambda: (MeasureTask("tiny", [source], [source * 2], [EXACT]), schedule)


OPTIONS = MeasureOptions("fake_backend", builders=1, build_timeout_s=PATIENCE_S, run_timeout_s=PATIENCE_S)


@pytest.mark.parametrize("target", ["llvm cores=2", "opencl"])
@pytest.mark.usefixtures("forked_workers")
def test_targets_of_this_machine_pass(target: str) -> None:
    if target == "opencl":
        pytest.importorskip("pyopencl")
    options = lw.SearchTask(te_module(), target=target).measure_options()
    assert options.preflight is not None
    with Measurer(replace(options, builders=1, run_timeout_s=PATIENCE_S)) as measurer:
        assert measurer.device and measurer.pending == 0 and measurer.running_s == 0.0
        with pytest.raises(ValueError, match="no task to measure"):
            measurer.submit([""])


def te_module() -> ModuleOp:
    from loopwright import te

    a = te.placeholder((8,), name="a")
    return te.create_module([a, te.compute((8,), lambda i: a[i] * 2.0, name="b")])


def test_the_tiny_task_uses_what_trials_use() -> None:
    for vector_bytes in (16, 32, 64):
        _, on_cores = preflight(resolve_target(f"llvm cores=2 vector_bytes={vector_bytes}"))
        assert "lw-parallel" in on_cores and "lw-vectorize" in on_cores, vector_bytes
    task, on_gpu = preflight(resolve_target("cuda model=h200"))
    assert "threadIdx.x" in on_gpu
    np.testing.assert_array_equal(task.expected[0], task.inputs[0] + 1)
    assert Artifact.from_bytes(cuda.build(task.workload, on_gpu), "cuda").binary


@pytest.mark.parametrize(
    ("schedule", "sentence"),
    [
        ("build=raise", "do not compile: ValueError: no such instruction: frobnicate"),
        ("build=hang", "do not compile in time: building took longer than 0.5 s"),
        ("run=raise", "compile, but do not run on fake device: RuntimeError: launch failed"),
        ("run=hang time=1", "compile, but do not run on fake device: running took longer than 0.5 s"),
        ("run=wrong", "a kernel that adds 1 gives something else on fake device: output 0: 8 of 8 elements"),
    ],
)
@pytest.mark.usefixtures("forked_workers")
def test_what_does_not_work_is_one_sentence(schedule: str, sentence: str) -> None:
    pids = []
    options = replace(OPTIONS, preflight=tiny(schedule))
    if "build=hang" in schedule:
        options = replace(options, build_timeout_s=0.5)
    if "run=hang" in schedule:
        options = replace(options, run_timeout_s=0.5)
    with (
        pytest.raises(PreflightError) as caught,
        Measurer(options) as measurer,
    ):
        pids = measurer.pids
    assert sentence in str(caught.value) and "\n" not in str(caught.value)
    assert "loopwright doctor" in str(caught.value)
    assert not pids


@pytest.mark.usefixtures("forked_workers")
def test_tuning_does_not_begin_without_it(tmp_path: Path) -> None:
    source = np.arange(8, dtype=np.float32)
    task = TuningTask("d", "k", "w", "fake", [FakeSpace()], "time=1e-3", [source], [source * 2], [EXACT])
    options = TuningOptions(num_measure_trials=4, records=tmp_path / "r.jsonl", progress=False)
    with pytest.raises(PreflightError):
        tune(task, options, replace(OPTIONS, preflight=tiny("run=wrong")))
    assert not (tmp_path / "r.jsonl").exists()
    result = tune(task, options, replace(OPTIONS, preflight=tiny("time=1e-3")))
    assert result.state.done == 4 and not any(r.reused for r in result.trials)


def test_a_missing_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    if pytest.importorskip("importlib.util").find_spec("pycuda"):
        pytest.skip("pycuda is here")
    options = MeasureOptions("loopwright.backends.cuda.device", builders=1)
    with (
        pytest.raises(WorkerStartError, match=r"needs pycuda, which is not installed: pip install") as caught,
        Measurer(replace(options, preflight=partial(preflight, resolve_target("cuda model=h200")))),
    ):
        pass
    assert "\n" not in str(caught.value) and "Traceback" not in str(caught.value)


def test_artifacts_of_the_same_code_are_one() -> None:
    """Names in the source do not matter to CUDA, the machine code does; to OpenCL the source does."""
    task, schedule = preflight(resolve_target("cuda model=h200"))
    artifact = Artifact.from_bytes(cuda.build(task.workload, schedule), "cuda")
    renamed = replace(artifact, kernel=replace(artifact.kernel, source=artifact.kernel.source + "\n// a note"))
    other = replace(artifact, binary=artifact.binary + b" ")
    launches = (replace(artifact.kernel.launches[0], grid=(1, 1, 1)),)
    relaunched = replace(artifact, kernel=replace(artifact.kernel, launches=launches))
    assert cuda.identity(artifact.to_bytes()) == cuda.identity(renamed.to_bytes())
    assert cuda.identity(artifact.to_bytes()) not in (
        cuda.identity(other.to_bytes()),
        cuda.identity(relaunched.to_bytes()),
    )
    assert cuda.resources(artifact.to_bytes())[0]["registers"] > 0
    assert replace(artifact, kind="opencl").identity() != replace(renamed, kind="opencl").identity()


@pytest.mark.parametrize(
    ("target", "device"),
    [
        ("opencl model=mali-t860", "Mali-T860 (ARM 1.2)"),
        ("cuda model=h200", "NVIDIA H200, driver 570"),
        ("cuda model=gtx1080ti", "NVIDIA GeForce GTX 1080 Ti"),
        ("opencl model=pocl", "pthread-znver5 (Portable Computing Language 3.1)"),
        ("llvm model=znver5", "some CPU"),
        ("nonsense", "some CPU"),
    ],
)
def test_a_device_that_is_the_targets_needs_no_word(target: str, device: str) -> None:
    assert measured_elsewhere(target, device) == ""


def test_another_device_is_named() -> None:
    assert "cuda model=h200 is measured on NVIDIA A100-SXM4-80GB:" in measured_elsewhere(
        "cuda model=h200", "NVIDIA A100-SXM4-80GB"
    )
    assert measured_elsewhere("cuda model=l4", "NVIDIA L40S") and measured_elsewhere("cuda model=h100", "NVIDIA GH200")
    assert measured_elsewhere("cuda model=rtx4090", "NVIDIA GeForce RTX 4090 Laptop GPU")
