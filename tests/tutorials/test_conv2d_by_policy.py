"""The first "Auto-scheduling a convolution layer for GPU" (create_task, auto_schedule, load_best), step by step.

Steps are quoted above what does them here. GPU: compiled for `cuda model=t4`; measured on this CPU.

Left out: nothing of this tutorial needs another machine.
"""

import json
import re
from multiprocessing import active_children
from pathlib import Path

import numpy as np
import pytest
from classic_tutorials import (
    BUILDER,
    LAST_OF_RESNET,
    RUNNER,
    SMALL,
    conv2d_layer,
    layer_arrays,
    printed,
    run_printed_schedule,
    stages,
)
from outputs import one

import loopwright as lw
from loopwright.search.records import file as records

pytestmark = pytest.mark.usefixtures("quick_measuring")

PUBLISHED_GRAPH = """
data = PLACEHOLDER [1, 512, 7, 7]
pad_temp(i0, i1, i2, i3) = tir.if_then_else(((((i2 >= 1) && (i2 < 8)) && (i3 >= 1)) && (i3 < 8)), \
data[i0, i1, (i2 - 1), (i3 - 1)], 0f)
kernel = PLACEHOLDER [512, 512, 3, 3]
compute(nn, ff, yy, xx) += (pad_temp[nn, rc, (yy + ry), (xx + rx)]*kernel[ff, rc, ry, rx])
bias = PLACEHOLDER [1, 512, 1, 1]
T_add(ax0, ax1, ax2, ax3) = (compute[ax0, ax1, ax2, ax3] + bias[ax0, ax1, 0, 0])
compute(i0, i1, i2, i3) = max(T_add[i0, i1, i2, i3], 0f)
"""
TRIALS = 3


@pytest.fixture(scope="module")
def log_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tutorial") / "conv2d.json"


@pytest.fixture(scope="module")
def task() -> lw.SearchTask:
    # "task = auto_scheduler.create_task(conv2d_layer, (N, H, W, CO, CI, KH, KW, strides, padding), target)"
    return lw.SearchTask(conv2d_layer, SMALL, "llvm cores=1")


@pytest.fixture(scope="module")
def output(task: lw.SearchTask, log_file: Path) -> str:
    """Output of the search."""
    # "measure_ctx = LocalRPCMeasureContext(min_repeat_ms=300)": min_repeat_ms is the runner's, processes are a matter
    # of course. "num_measure_trials is the number of measurement trials", "RecordToFile": records=.
    options = lw.TuningOptions(num_measure_trials=TRIALS, records=log_file, verbose=True, final_candidates=1)
    # "sch, args = auto_scheduler.auto_schedule(task, tuning_options=tune_option)"
    result, text = printed(lambda: task.tune(options, builder=BUILDER, runner=RUNNER))
    assert result.state.done == TRIALS
    return text


def test_define_the_computation_and_create_the_task() -> None:
    # "target = tvm.target.Target("cuda")", "Use the last layer in ResNet-50", "Inspect the computational graph"
    task = lw.SearchTask(conv2d_layer, LAST_OF_RESNET, "cuda model=t4")
    made, published = stages(str(task.compute_dag)), stages(PUBLISHED_GRAPH)
    assert made[:-1] == published[:-1]
    # The tutorial's last stage has the name of its convolution, so that its printed schedule does not run.
    assert made[-1] == ("T_relu(i0, i1, i2, i3)", *published[-1][1:])


def test_search_prints_each_trial_and_leaves_no_process(output: str) -> None:
    # "Get devices for measurement successfully!", and a line for each program
    lines = re.findall(
        r"^trial \d+/3: [\d.]+ GFLOP/s \([\d.e-]+ [mun]?s\); best [\d.]+ GFLOP/s .*$", output, re.MULTILINE
    )
    assert len(lines) == TRIALS
    # "Kill the measurement process: del measure_ctx"
    assert not active_children()


def test_every_measurement_is_a_record(task: lw.SearchTask, log_file: Path, output: str) -> None:
    # "During the search, all measurement records are dumped into the record file"
    trials = [record for record in records.load(log_file) if record.role is records.Role.TRIAL]
    assert len(trials) == TRIALS
    assert {record.workload_key for record in trials} == {task.workload_key}
    # A line for each: who computed what, by which schedule, how fast, or why not.
    fields = {"workload_key", "target", "schedule", "times_s", "error", "device", "timestamp"}
    assert all(fields <= set(json.loads(line)) for line in log_file.read_text().splitlines())


def test_check_correctness_and_evaluate_performance(task: lw.SearchTask, log_file: Path, output: str) -> None:
    # "func = tvm.build(sch, args, target)"
    func = task.apply_best(log_file)
    # "data_np = np.random.uniform(...)", "out_np = np.maximum(conv_np + bias_np, 0.0)"
    arrays, out_np = layer_arrays(SMALL)
    # "out_tvm = tvm.nd.empty(out_np.shape, ctx=ctx)", "func(data_tvm, weight_tvm, bias_tvm, out_tvm)"
    out = np.empty(out_np.shape, np.float32)
    func(*arrays, out)
    # "np.testing.assert_allclose(out_np, out_tvm.asnumpy(), rtol=1e-3)"
    np.testing.assert_allclose(out_np, out, rtol=1e-3)
    # "evaluator = func.time_evaluator(func.entry_name, ctx, min_repeat_ms=500)"
    times = func.benchmark(*arrays, out, min_repeat_ms=1)
    line = f"Execution time of this operator: {np.median(times.times_s) * 1000:.3f} ms"
    assert re.fullmatch(r"Execution time of this operator: \d+\.\d{3} ms", line)


def test_load_the_best_schedule_and_rebuild(task: lw.SearchTask, log_file: Path, output: str) -> None:
    # "inp, res = auto_scheduler.load_best("conv2d.json", task.workload_key)"
    record = lw.load_best(log_file, task.workload_key)
    assert record.ok and record.time_s == task.best_record(log_file).time_s
    # "Print equivalent python schedule API"
    text = task.print_best(log_file, mode="python")
    steps = set(re.findall(r"^sch\.(\w+)\(", text, re.MULTILINE))
    assert {"split", "reorder", "vectorize"} <= steps
    # "Rebuild the binary": by the record, and by running what was printed, which the tutorial's print could not be
    arrays, out_np = layer_arrays(SMALL)
    by_hand = run_printed_schedule(text, conv2d_layer(*SMALL))
    for func in (task.build(record.schedule), lw.build(by_hand)):
        np.testing.assert_allclose(out_np, one(func(*arrays)), rtol=1e-3)


def test_resume_the_search(task: lw.SearchTask, log_file: Path, output: str, tmp_path: Path) -> None:
    # "cost_model = auto_scheduler.XGBModel()", "init_search_callbacks=[PreloadMeasuredStates(log_file)]",
    # "In the example below we resume the status and do more 5 trials": the same call goes on from its file.
    again = tmp_path / log_file.name  # other tests count what the search left
    again.write_bytes(log_file.read_bytes())
    options = lw.TuningOptions(more_trials=1, records=again, cost_model="trees", final_candidates=1)
    result, text = printed(lambda: task.tune(options, builder=BUILDER, runner=RUNNER))
    assert result.state.resumed == TRIALS and result.state.done == TRIALS + 1
    assert "4 trials, 3 of them from the records" in text
    assert len({record.schedule for record in result.trials}) == TRIALS + 1  # none is measured twice
