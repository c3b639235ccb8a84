"""The classic "Auto-scheduling a Neural Network for mali GPU" (extract_tasks, TaskScheduler), step by step.

Steps are quoted above what does them here. The board is `opencl model=mali-t860` (that of the tutorial's rk3399), and
its kernels run on the OpenCL device of the tests, within the board's limits.

"Start an RPC Tracker and Register Devices", `request_remote` and the limits asked of the board through it, `RPCRunner`,
uploading a library and loading it there, and tip 4 (several devices) are in tests/fleet.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from classic_tutorials import BUILDER, RUNNER, printed, small_network, stages

import loopwright as lw
from loopwright.cli import main

pytestmark = pytest.mark.usefixtures("quick_measuring")

TARGET = "opencl model=mali-t860"
PUBLISHED_TASKS = {
    "conv2d_add_relu": """
p0 = PLACEHOLDER [1, 56, 56, 128]
pad_temp(i0, i1, i2, i3) = p0[i0, i1, i2, i3]
p1 = PLACEHOLDER [1, 1, 128, 128]
conv2d_nhwc(nn, yy, xx, ff) += (pad_temp[nn, (yy + ry), (xx + rx), rc]*p1[ry, rx, rc, ff])
p2 = PLACEHOLDER [1, 1, 1, 128]
T_add(ax0, ax1, ax2, ax3) = (conv2d_nhwc[ax0, ax1, ax2, ax3] + p2[ax0, 0, 0, ax3])
T_relu(ax0, ax1, ax2, ax3) = max(T_add[ax0, ax1, ax2, ax3], 0f)
""",
    "depthwise_conv2d_add_relu": """
p0 = PLACEHOLDER [1, 28, 28, 256]
PaddedInput(i0, i1, i2, i3) = tir.if_then_else(((((i1 >= 1) && (i1 < 29)) && (i2 >= 1)) && (i2 < 29)), \
p0[i0, (i1 - 1), (i2 - 1), i3], 0f)
p1 = PLACEHOLDER [3, 3, 256, 1]
DepthwiseConv2d(b, i, j, c) += (PaddedInput[b, (i + di), (j + dj), c]*p1[di, dj, c, 0])
p2 = PLACEHOLDER [1, 1, 1, 256]
T_add(ax0, ax1, ax2, ax3) = (DepthwiseConv2d[ax0, ax1, ax2, ax3] + p2[ax0, 0, 0, ax3])
T_relu(ax0, ax1, ax2, ax3) = max(T_add[ax0, ax1, ax2, ax3], 0f)
""",
    "dense_add": """
p0 = PLACEHOLDER [1, 1024]
p1 = PLACEHOLDER [1000, 1024]
T_matmul_NT(i, j) += (p0[i, k]*p1[j, k])
p2 = PLACEHOLDER [1, 1000]
T_add(ax0, ax1) = (T_matmul_NT[ax0, ax1] + p2[ax0, ax1])
""",
    "softmax": """
p0 = PLACEHOLDER [1, 1000]
T_softmax_maxelem(i0) max= p0[i0, k]
T_softmax_exp(i0, i1) = tir.exp((p0[i0, i1] - T_softmax_maxelem[i0]))
T_softmax_expsum(i0) += T_softmax_exp[i0, k]
T_softmax_norm(i0, i1) = (T_softmax_exp[i0, i1]/T_softmax_expsum[i0])
""",
}
"""Of each kind of task one that the tutorial prints."""
COPY = "pad_temp(i0, i1, i2, i3) = p0[i0, i1, i2, i3]\n"
"""A stage that is not there: a convolution without padding reads its input."""


@pytest.fixture(scope="module")
def mobilenet() -> lw.Network:
    # "network = "mobilenet"", "batch_size = 1", "layout = "NHWC"", "get_network(network, batch_size, layout, dtype)"
    return lw.testing.network("mobilenet", batch=1, layout="NHWC")


@pytest.fixture(scope="module")
def network() -> lw.Network:
    """One that is tuned instead."""
    return small_network()


@pytest.fixture(scope="module")
def log_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # "log_file = "%s-%s-B%d-%s.json" % (network, layout, batch_size, target.kind.name)"
    return tmp_path_factory.mktemp("tutorial") / "small-NHWC-B1-opencl.json"


@pytest.fixture(scope="module")
def output(network: lw.Network, log_file: Path) -> str:
    """Output of tuning."""
    tasks, task_weights = lw.extract_tasks(network, TARGET)
    # "tuner = auto_scheduler.TaskScheduler(tasks, task_weights)"
    tuner = lw.TaskScheduler(tasks, task_weights)
    # "num_measure_trials=200, builder=LocalBuilder(...), runner=..., measure_callbacks=[RecordToFile(log_file)]"
    options = lw.TuningOptions(num_measure_trials=3, records=log_file, final_candidates=1)
    result, text = printed(lambda: tuner.tune(options, builder=BUILDER, runner=RUNNER, trials_per_round=1))
    assert result.state.done == 3 and all(result.best)
    return text


def test_networks_of_the_tutorial_in_the_layouts_it_has_them_in(mobilenet: lw.Network) -> None:
    # "input_shape = (batch_size,) + image_shape", "output_shape = (batch_size, 1000)"
    assert [value.shape for value in mobilenet.inputs.values()] == [(1, 224, 224, 3)]
    assert [value.shape for value in mobilenet.outputs.values()] == [(1, 1000)]
    # "resnet-", "resnet3d-", "mobilenet", "squeezenet_v1.1", "inception_v3"
    assert {"resnet-18", "resnet3d-18", "mobilenet", "squeezenet_v1.1", "inception_v3"} <= set(lw.testing.NETWORKS)
    # "raise ValueError("Invalid layout: " + layout)"
    with pytest.raises(ValueError, match="NHCW"):
        lw.testing.network("mobilenet", layout="NHCW")


def test_tasks_print_as_in_the_tutorial(mobilenet: lw.Network) -> None:
    # "tasks, task_weights = auto_scheduler.extract_tasks(mod["main"], params, target)"
    tasks, task_weights = lw.extract_tasks(mobilenet, TARGET)
    # "The weight of a task is the number of appearances of the task's subgraph in the whole network"
    assert (len(tasks), sum(task_weights)) == (22, 30)
    graphs = {}
    for index, task in enumerate(tasks):
        # "print("========== Task %d  (workload key: %s) ==========" % (idx, task.workload_key))"
        header = f"========== Task {index}  (workload key: {task.workload_key}) =========="
        found = re.fullmatch(r"={10} Task \d+  \(workload key: (\[\"(\w+)\", .*\])\) ={10}", header)
        assert found is not None
        name, shapes, digest = json.loads(found[1])
        assert name == task.name and re.fullmatch(r"[0-9a-f]{16}", digest)
        # "print(task.compute_dag)": the placeholders and the result of the key's shapes
        graphs[name, tuple(shapes[0])] = str(task.compute_dag)
        placeholders = re.findall(r"PLACEHOLDER (\[.*?\])", graphs[name, tuple(shapes[0])])
        assert [json.loads(shape) for shape in placeholders] == shapes[:-1]
    for name, published in PUBLISHED_TASKS.items():
        theirs = stages(published.replace(COPY, ""))
        ours = stages(graphs[name, tuple(json.loads(theirs[0][2].removeprefix("PLACEHOLDER ")))])
        # Stages in the same order, placeholders equal, the others of as many axes and assigned alike.
        assert [(how, left.count(","), right if "PLACEHOLDER" in right else "") for left, how, right in ours] == [
            (how, left.count(","), right if "PLACEHOLDER" in right else "") for left, how, right in theirs
        ]


def test_limits_of_the_device_are_part_of_the_target(mobilenet: lw.Network, capsys: pytest.CaptureFixture[str]) -> None:
    # "How to get the hardware parameters from remote device": the board prints them as a target's text
    assert main(["devices", "--json"]) == 0
    devices = json.loads(capsys.readouterr().out)["devices"]
    board = lw.resolve_target(next(device["target"] for device in devices if device["kind"] == "opencl"))
    assert board.max_threads_per_block > 0 and board.max_shared_bytes > 0
    # "hardware_params = auto_scheduler.HardwareParams(-1, 16, 64, max_shared_memory_per_block, ...)",
    # "extract_tasks(mod["main"], params, target, hardware_params = hardware_params)"
    tasks, _ = lw.extract_tasks(mobilenet, f"{TARGET} max_threads_per_block=64 max_shared_bytes=16384")
    source = tasks[5].build().source
    groups = re.findall(r"reqd_work_group_size\((\d+), (\d+), (\d+)\)", source)
    assert groups and all(np.prod([int(n) for n in group]) <= 64 for group in groups)


def test_the_task_scheduler_prints_its_table(output: str) -> None:
    # "|  ID  | Latency (ms) | Speed (GFLOPS) | Trials |", "|    0 |        0.010 |           0.40 |     64 |"
    heads = re.findall(r"^\|   ID \| Latency \(ms\) \| Speed \(GFLOPS\) \| Trials \|.*\|$", output, re.MULTILINE)
    rows = re.findall(r"^\| +(\d) \| +([\d.]+|-) \| +([\d.]+|-) \| +(\d+) \|.*\|$", output, re.MULTILINE)
    assert heads and [row[0] for row in rows[-2:]] == ["0", "1"]
    # Of the tutorial's table the trials do not add up to those of the line below it.
    assert sum(int(row[3]) for row in rows[-2:]) == 3
    # "Estimated total latency: 10.016 ms      Trials: 3992    Used time : 1131 s      Next ID: 15"
    lines = re.findall(
        r"^Estimated total latency: (?:[\d.]+ ms|-)  Trials: (\d+)  Used time: \d+ s  Next ID: (\d|-)", output, re.M
    )
    assert lines[-1] == ("3", "-") and {"1", "2"} <= {done for done, _ in lines}
    # What no board has measured is said.
    assert re.search(
        r"target opencl model=mali-t860 is measured on .*: limits are the target's, times that one's", output
    )


def test_compile_export_load_and_evaluate(network: lw.Network, log_file: Path, output: str) -> None:
    # "with auto_scheduler.ApplyHistoryBest(log_file):", "lib = relay.build(mod, target, params=params)"
    with lw.apply_history_best(log_file):
        lib = lw.compile(network, TARGET, processes=1)
    assert all(kernel.tuned for kernel in lib.kernels)
    # "lib.export_library(path_lib, ndk.create_shared)", "loaded_lib = remote.load_module(filename)": on this machine
    path = log_file.parent / "deploy_lib.lw"
    lib.save(path)
    # "module = graph_executor.GraphModule(loaded_lib["default"](dev))", "module.set_input("data", data_tvm)"
    module = lw.load_network(path).executor()
    data = np.random.default_rng(0).uniform(size=(1, 4, 4, 4)).astype("float32")
    module.set_input("data", data)
    module.run()
    np.testing.assert_allclose(module.get_output(0), network.evaluate(data=data)[0], rtol=1e-3, atol=1e-5)
    # "print("Evaluate inference time cost...")", "print(module.benchmark(dev, repeat=3, min_repeat_ms=500))"
    times = module.benchmark(repeat=3, min_repeat_ms=1)
    assert re.fullmatch(r"median [\d.]+ ms, mean [\d.]+ ms, std [\d.]+ ms", str(times)) and len(times.times_s) == 3


@pytest.mark.slow
def test_the_host_of_a_board_is_compiled_for_without_its_tools(network: lw.Network, tmp_path: Path) -> None:
    # "os.environ["TVM_NDK_CC"] = "/usr/bin/aarch64-linux-gnu-g++"", "host="llvm -mtriple=aarch64-linux-gnu""
    with pytest.warns(UserWarning, match="2 of 2 kernels have no record"):
        lib = lw.compile(network, "llvm arch=aarch64", processes=1)
    lib.save(tmp_path / "deploy_lib.lw")
    assert lib.plan.target.startswith("llvm ") and "aarch64" in lib.plan.target


def test_terminate_the_tuning_earlier(network: lw.Network, log_file: Path, output: str, tmp_path: Path) -> None:
    # "You can terminate the tuning earlier by forcibly killing this process": the last line may be torn
    lines = log_file.read_text().splitlines(keepends=True)
    torn = tmp_path / "killed.json"
    torn.write_text("".join(lines[:2]) + lines[2][:40])
    # "As long as you get at least one valid schedule for each task in the log file, you should be able to do the
    # compilation"
    with pytest.warns(UserWarning, match="1 line"):
        tasks, weights = lw.extract_tasks(network, TARGET)
        assert all(lw.load_best(torn, task).ok for task in tasks)
    # "You can resume a search from the previous log file": "TaskScheduler(tasks, task_weights, load_log_file=log_file)"
    with pytest.warns(UserWarning, match="1 line"):
        options = lw.TuningOptions(num_measure_trials=2, progress=False, final_candidates=1)
        result = lw.TaskScheduler(tasks, weights, load_records=torn).tune(options, builder=BUILDER, runner=RUNNER)
    assert (result.state.resumed, result.state.done) == (2, 2)


def test_distill_the_log(log_file: Path, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    # "python3 -m tvm.auto_scheduler.measure_record --mode distill -i log.json"
    best = log_file.with_suffix(".best.json")
    assert main(["records", "distill", str(log_file), "--output", str(best)]) == 0
    assert re.search(r"2 of \d+ records", capsys.readouterr().out)
    assert len(best.read_text().splitlines()) == 2
