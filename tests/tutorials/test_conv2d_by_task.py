"""The later "Auto-scheduling a convolution layer for GPU" (SearchTask, tune, apply_best, print_best), step by step.

Steps are quoted above what does them here. GPU: compiled for `cuda model=t4`; measured on the OpenCL device of
the tests.

Left out: nothing of this tutorial needs another machine.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from classic_tutorials import BUILDER, LAST_OF_RESNET, RUNNER, SMALL, conv2d_layer, layer_arrays, printed
from outputs import one

import loopwright as lw

pytestmark = pytest.mark.usefixtures("quick_measuring")

TRIALS = 3

registered = lw.register_workload("tutorial_conv2d_layer", conv2d_layer)
"""`@auto_scheduler.register_workload`"""


@pytest.fixture(scope="module")
def log_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tutorial") / "conv2d.json"


@pytest.fixture(scope="module")
def task() -> lw.SearchTask:
    # "task = auto_scheduler.SearchTask(func=conv2d_layer, args=(N, H, W, ...), target=target)"
    return lw.SearchTask(registered, args=SMALL, target="opencl")


@pytest.fixture(scope="module")
def cuda() -> lw.SearchTask:
    # "target = tvm.target.Target("cuda")": the tutorial's page ends here, with "Cannot find GPU device_api in registry"
    return lw.SearchTask("tutorial_conv2d_layer", args=LAST_OF_RESNET, target="cuda model=t4")


@pytest.fixture(scope="module")
def output(task: lw.SearchTask, log_file: Path) -> str:
    """Output of the search."""
    # "TuningOptions(num_measure_trials=10, runner=measure_ctx.runner, measure_callbacks=[RecordToFile(log_file)], ...)"
    options = lw.TuningOptions(num_measure_trials=TRIALS, records=log_file, verbose=True, final_candidates=1)
    # "task.tune(tune_option)"
    result, text = printed(lambda: task.tune(options, builder=BUILDER, runner=RUNNER))
    assert result.state.done == TRIALS and not result.state.errors
    return text


def test_a_task_for_a_gpu_needs_no_gpu(cuda: lw.SearchTask) -> None:
    # "print("Computational DAG:")", "print(task.compute_dag)"
    assert "data = PLACEHOLDER [1, 512, 7, 7]" in str(cuda.compute_dag).splitlines()
    assert cuda.workload_key.startswith('["tutorial_conv2d_layer", [1, 7, 7, 512, 512, 3, 3, [1, 1], [1, 1]], "')
    # "task.hardware_params" are the target's
    assert cuda.target.max_threads_per_block == 1024 and cuda.target.warp_size == 32


@pytest.mark.slow(1.2)
def test_the_lowered_ir_has_what_the_auto_scheduler_is_said_to_do(cuda: lw.SearchTask) -> None:
    # "print(tvm.lower(sch, args, simple_mode=True))": "multi-level tiling, cooperative fetching, unrolling and operator
    # fusion"
    lowered = cuda.render(cuda.default_schedule, "ir")
    assert all(f" {kind} {{" in lowered for kind in ("blockIdx.x", "vthread", "threadIdx.x", "unrolled"))
    assert set(re.findall(r"lw_loop\.block (\w+)_shared ", lowered)) == {"pad_temp", "kernel"}
    assert "lw_loop.block T_add" not in lowered  # it is part of T_relu


def test_cuda_source_is_that_of_a_kernel_that_compiles(cuda: lw.SearchTask) -> None:
    # "print("CUDA source code:")", "print(task.print_best(log_file, print_mode="cuda"))": compiled by NVRTC on the way
    source = cuda.render(cuda.default_schedule, "source")
    assert "__global__" in source and "__shared__" in source and "threadIdx.x" in source


def test_run_the_search(output: str) -> None:
    assert len(re.findall(r"^trial \d/3: [\d.]+ GFLOP/s", output, re.MULTILINE)) == TRIALS


def test_apply_the_best_check_and_evaluate(task: lw.SearchTask, log_file: Path, output: str) -> None:
    # "sch, args = task.apply_best(log_file)", "func = tvm.build(sch, args, target)": apply_best builds, too
    func = task.apply_best(log_file)
    arrays, out_np = layer_arrays(SMALL)
    np.testing.assert_allclose(out_np, one(func(*arrays)), rtol=1e-3)
    # "evaluator = func.time_evaluator(func.entry_name, ctx, min_repeat_ms=500)"
    assert re.fullmatch(
        r"median [\d.]+ ms, mean [\d.]+ ms, std [\d.]+ ms", str(func.benchmark(*arrays, min_repeat_ms=1))
    )


def test_the_record_file_shows_the_best_schedule_and_its_source(
    task: lw.SearchTask, log_file: Path, output: str
) -> None:
    # "print("Equivalent python schedule:")", "print(task.print_best(log_file, print_mode="schedule"))"
    python = task.print_best(log_file, mode="python")
    assert {"split", "reorder", "bind", "compute_at"} <= set(re.findall(r"^sch\.(\w+)\(", python, re.MULTILINE))
    assert task.print_best(log_file, mode="schedule").startswith("lw-lower-te-to-loop,")
    # print_mode="cuda" on this device
    assert "__kernel" in task.print_best(log_file, mode="source")


def test_resume_the_search(task: lw.SearchTask, log_file: Path, output: str, tmp_path: Path) -> None:
    # "cost_model.update_from_file(log_file)", "search_policy = auto_scheduler.SketchPolicy(task, cost_model, ...)",
    # "task.tune(tune_option, search_policy=search_policy)"
    again = tmp_path / log_file.name  # other tests read what the search left
    again.write_bytes(log_file.read_bytes())
    options = lw.TuningOptions(
        more_trials=1, records=again, strategy="evolution", cost_model="trees", progress=False, final_candidates=1
    )
    result = task.tune(options, builder=BUILDER, runner=RUNNER)
    assert (result.state.resumed, result.state.done) == (TRIALS, TRIALS + 1)
