"""The classic "Auto-tuning a Convolutional Network for NVIDIA GPU" (tune_tasks, apply_history_best), step by step.

Steps are quoted above what does them here. GPU: compiled for `cuda model=t4`, since NVRTC has dropped the tutorial's
1080 Ti; measured on this CPU.

"Scale up measurement by using multiple devices" (rpc_tracker, rpc_server, query_rpc_tracker, "Queue Status", RPCRunner)
is on the page of the same name, and in tests/fleet.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from classic_tutorials import BUILDER, RUNNER, printed, small_network

import loopwright as lw
from loopwright.search.records import file as records
from loopwright.search.tuners import Tuner

pytestmark = pytest.mark.usefixtures("quick_measuring")

XGB_TUNERS = {
    "xgb": {"loss_type": "reg"},
    "xgb_knob": {"loss_type": "reg", "feature_type": "knob"},
    "xgb_itervar": {"loss_type": "reg", "feature_type": "itervar"},
    "xgb_curve": {"loss_type": "reg", "feature_type": "curve"},
    "xgb_rank": {"loss_type": "rank"},
    "xgb_rank_knob": {"loss_type": "rank", "feature_type": "knob"},
    "xgb_rank_itervar": {"loss_type": "rank", "feature_type": "itervar"},
    "xgb_rank_curve": {"loss_type": "rank", "feature_type": "curve"},
    "xgb_rank_binary": {"loss_type": "rank-binary"},
    "xgb_rank_binary_knob": {"loss_type": "rank-binary", "feature_type": "knob"},
    "xgb_rank_binary_itervar": {"loss_type": "rank-binary", "feature_type": "itervar"},
    "xgb_rank_binary_curve": {"loss_type": "rank-binary", "feature_type": "curve"},
}
"""The values of `tuner` in the tutorial, and what it gives XGBTuner for each."""
TUNERS = (*XGB_TUNERS, "ga", "random", "gridsearch")


def tuner_of(tsk: lw.TemplateTask, tuner: str) -> Tuner:
    """The branches of the tutorial's `tune_tasks`."""
    if tuner in XGB_TUNERS:
        options: dict[str, Any] = XGB_TUNERS[tuner]
        return lw.tuners.XGBTuner(tsk, **options)
    if tuner == "ga":
        return lw.tuners.GATuner(tsk, pop_size=100)
    if tuner == "random":
        return lw.tuners.RandomTuner(tsk)
    if tuner == "gridsearch":
        return lw.tuners.GridSearchTuner(tsk)
    raise ValueError("Invalid tuner: " + tuner)


def tune_tasks(
    tasks: Sequence[lw.TemplateTask],
    measure_option: Any,
    tuner: str = "xgb",
    n_trial: int = 1000,
    early_stopping: int | None = None,
    log_filename: str = "tuning.log",
    use_transfer_learning: bool = True,
) -> None:
    """The tutorial's function, word for word where the words are the same."""
    # "create tmp log file"
    tmp_log_file = log_filename + ".tmp"
    Path(tmp_log_file).unlink(missing_ok=True)
    for i, tsk in enumerate(reversed(tasks)):
        prefix = f"[Task {i + 1:2d}/{len(tasks):2d}] "
        # "create tuner"
        tuner_obj = tuner_of(tsk, tuner)
        # "tuner_obj.load_history(autotvm.record.load_from_file(tmp_log_file))"
        if use_transfer_learning and Path(tmp_log_file).is_file():
            tuner_obj.load_history(tmp_log_file)
        # "do tuning"
        tsk_trial = min(n_trial, len(tsk.config_space))
        tuner_obj.tune(
            n_trial=tsk_trial,
            early_stopping=early_stopping,
            measure_option=measure_option,
            callbacks=[
                lw.callbacks.progress_bar(tsk_trial, prefix=prefix),
                lw.callbacks.log_to_file(tmp_log_file),
            ],
        )
    # "pick best records to a cache file"
    lw.pick_best(tmp_log_file, log_filename)


@pytest.fixture(scope="module")
def network() -> lw.Network:
    return small_network()


@pytest.fixture(scope="module")
def tasks(network: lw.Network) -> list[lw.TemplateTask]:
    # "tasks = autotvm.task.extract_from_program(mod["main"], target=target, params=params, ops=(...,))"
    found, _ = lw.extract_template_tasks(network, target="llvm cores=1", ops=("conv2d", "depthwise_conv2d"))
    return found


@pytest.fixture(scope="module")
def log_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # "log_file = "%s.log" % network"
    return tmp_path_factory.mktemp("tutorial") / "small.log"


@pytest.fixture(scope="module")
def output(tasks: list[lw.TemplateTask], log_file: Path) -> str:
    """Output of tuning."""
    tuning_option: dict[str, Any] = {
        "log_filename": str(log_file),
        "tuner": "xgb",
        "n_trial": 3,
        "early_stopping": 600,
        # "autotvm.measure_option(builder=autotvm.LocalBuilder(timeout=10), runner=autotvm.LocalRunner(number=20, ...))"
        "measure_option": lw.measure_option(builder=BUILDER, runner=RUNNER),
    }
    # "tune_tasks(tasks, **tuning_opt)"
    return printed(lambda: tune_tasks(tasks, **tuning_option))[1]


def test_define_network() -> None:
    # "resnet", "vgg", "mobilenet", "squeezenet_v1.1", "inception_v3"
    names = ("resnet-18", "vgg-16", "mobilenet", "squeezenet_v1.1", "inception_v3")
    assert set(names) <= set(lw.testing.NETWORKS)
    # "raise ValueError("Unsupported network: " + name)"
    with pytest.raises(ValueError, match="there is no network 'resnet-19'; there are resnet-18,"):
        lw.testing.network("resnet-19")
    # "input_shape = (batch_size, 3, 224, 224)", "output_shape = (batch_size, 1000)"
    net = lw.testing.network("resnet-18", batch=1)
    assert [v.shape for v in (*net.inputs.values(), *net.outputs.values())] == [(1, 3, 224, 224), (1, 1000)]


def test_extract_tasks_and_compile_one_for_the_gpu() -> None:
    # "print("Extract tasks...")", "ops=(relay.op.get("nn.conv2d"),)": the tutorial has 12, of a ResNet whose first
    # stage has a convolution in its shortcut
    net = lw.testing.network("resnet-18", batch=1)
    tasks, _ = lw.extract_template_tasks(net, target="cuda model=t4", ops=("conv2d",))
    assert len(tasks) == 11
    assert tasks[0].title == (
        "conv2d_nchw_gpu of conv2d_add_relu([1, 3, 224, 224], [64, 3, 7, 7], [1, 64, 1, 1], [1, 64, 112, 112])"
    )
    # "The operator implementation for NVIDIA GPU in TVM is written in template form", "many tunable knobs"
    task = tasks[-1]
    assert {"tile_ff", "tile_yy", "tile_xx"} <= set(task.config_space.knobs)
    legal = next(config.index for config in task.config_space if task.why_not(config.index) is None)
    assert "__global__" in task.build(legal).source


@pytest.mark.parametrize("tuner", TUNERS)
@pytest.mark.few(8)
def test_every_tuner_of_the_tutorial_tunes(tasks: list[lw.TemplateTask], tuner: str, tmp_path: Path) -> None:
    def seconds(task: lw.TemplateTask, configs: Sequence[Any]) -> list[float]:
        return [1e-3 / (1 + config.index) for config in configs]  # in place of a device

    log = str(tmp_path / "resnet-18.log")
    printed(lambda: tune_tasks(tasks, seconds, tuner, n_trial=4, early_stopping=3, log_filename=log))
    assert {record.workload_key for record in records.load(log)} == {task.workload_key for task in tasks}


def test_tuning_prints_a_line_for_each_task(output: str, tasks: list[lw.TemplateTask]) -> None:
    # "[Task  1/12]  Current/Best:  541.83/3570.66 GFLOPS | Progress: (960/2000) | 1001.31 s Done."
    lines = [line.rsplit("\r", 1)[-1] for line in output.removesuffix("\n").split("\n")]
    for number, line in enumerate(lines, start=1):
        shown = rf"\[Task +{number}/ 2\]  Current/Best: +[\d.]+/ *[\d.]+ GFLOPS \| Progress: \(3/3\) \| [\d.]+ s Done\."
        assert re.fullmatch(shown, line), line
    assert len(lines) == len(tasks) == 2


def test_best_records_are_picked(output: str, tasks: list[lw.TemplateTask], log_file: Path) -> None:
    # "autotvm.record.pick_best(tmp_log_file, log_filename)"
    tried, best = records.load(f"{log_file}.tmp"), records.load(log_file)
    assert len(tried) == 6 and len(best) == 2
    for record in best:
        same = [r.time_s for r in tried if r.workload_key == record.workload_key and r.ok]
        assert record.time_s == min(same)


def test_compile_kernels_with_history_best_and_evaluate(
    output: str, network: lw.Network, tasks: list[lw.TemplateTask], log_file: Path
) -> None:
    # "with autotvm.apply_history_best(log_file):", "lib = relay.build(mod, target=target, params=params)"
    with lw.apply_history_best(log_file):
        lib = lw.compile(network, target="llvm cores=1", processes=1)
    assert [kernel.tuned for kernel in lib.kernels] == [True, True]
    # "load parameters", "module = runtime.GraphModule(lib["default"](dev))"
    module = lib.executor()
    data = np.random.default_rng(0).uniform(size=(1, 4, 4, 4)).astype("float32")
    module.set_input("data", data)
    module.run()
    np.testing.assert_allclose(module.get_output(0), network.evaluate(data=data)[0], rtol=1e-3, atol=1e-5)
    # "print("Evaluate inference time cost...")", "print(module.benchmark(dev, number=1, repeat=600))":
    # "Mean inference time (std dev): 1.07 ms (0.05 ms)"
    times = module.benchmark(number=1, repeat=600)
    assert re.fullmatch(r"median [\d.]+ ms, mean [\d.]+ ms, std [\d.]+ ms", str(times)) and len(times.times_s) == 600
