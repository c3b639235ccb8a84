"""Templates on the kernels of a network: what is fused around an operator is scheduled with it, records are used."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import template_workloads  # noqa: F401 (registers its template)
from effort import usual

import loopwright as lw
from loopwright.computation import start
from loopwright.graph.chosen_schedules import UntunedWarning
from loopwright.graph.template_tasks import NoTemplateWarning, operator_of
from loopwright.search.records.index import History
from loopwright.search.template import epilogues
from loopwright.search.template.epilogues import RecordedAnchors, anchor_hash
from loopwright.search.template.knobs.knob import ConfigError
from loopwright.search.template.limits import usage
from loopwright.search.template.registry import operators

pytestmark = pytest.mark.usefixtures("quick_measuring")
QUICK = lw.measure_option(lw.LocalBuilder(n_parallel=1), lw.LocalRunner(number=1, repeat=1, min_repeat_ms=0))
TARGETS = ("llvm cores=1", "cuda model=h200", "opencl model=mali-t860")


def network(name: str = "resnet-18", layout: str = "NHWC") -> lw.Network:
    return lw.testing.network(name, batch=1, layout=layout, image=32, width=0.125, classes=10)


def kinds(tasks: list[lw.TemplateTask]) -> list[lw.TemplateTask]:
    """One task of each kind of group."""
    return list({json.loads(task.workload_key)[0]: task for task in tasks}.values())


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_kernels_with_a_template_are_found_with_their_keys_and_weights(layout: str) -> None:
    net = network("mobilenet", layout)
    everything = {task.workload_key: weight for task, weight in zip(*lw.extract_tasks(net), strict=True)}
    tasks, weights = lw.extract_template_tasks(net)
    assert len(tasks) == 20 and len(everything) == 22  # all but the pool and the softmax
    for task, weight in zip(tasks, weights, strict=True):
        assert everything[task.workload_key] == weight
        assert task.compute_dag.hash == json.loads(task.workload_key)[2]
    names = {task.name for task in tasks}
    assert names == {f"conv2d_{layout.lower()}_cpu", f"depthwise_conv2d_{layout.lower()}_cpu", "dense_cpu"}


@pytest.mark.slow(1.2)
def test_operators_are_chosen_by_name_and_templates_replaced() -> None:
    net = network("mobilenet")
    tasks, _ = lw.extract_template_tasks(net, ops=["conv2d"])
    assert {task.name for task in tasks} == {"conv2d_nhwc_cpu"}
    tasks, _ = lw.extract_template_tasks(net, ops=["dense"], templates={"dense": "tests_group_rows"})
    assert [task.name for task in tasks] == ["tests_group_rows"]
    assert tasks[0].title.startswith("tests_group_rows of dense_add(")
    with pytest.raises(ConfigError, match=r"templates know the operators batch_matmul, .*, got 'conv'"):
        lw.extract_template_tasks(net, ops=["conv"])


@lw.template("tests_group_rows")
def group_rows(cfg: Any, workload: str) -> lw.Schedule:
    """A template of a user: one argument, the text of a module."""
    made = start(cfg, workload)
    cfg.define_knob("unroll", [0, 1])
    if cfg["unroll"].val:
        made.sch.unroll(made.block, list(made.loops.values())[-2])
    return made.sch


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_what_is_known_of_populations_holds_for_single_configs(target: str) -> None:
    """Limits, schedules and usage, as tests/template/test_template_trace.py has it for operators alone."""
    tasks = lw.extract_template_tasks(network(), target)[0]
    for task in {json.loads(task.workload_key)[0]: task for task in reversed(tasks)}.values():  # the larger ones
        rows = task.config_space.sample(np.random.default_rng(0), 3 * usual(2))
        legal = task.legal(rows)
        assert legal.tolist() == [task.why_not(row) is None for row in rows], task.title
        for text, row in zip(task.schedules([task.config(r) for r in rows[legal]]), rows[legal], strict=True):
            assert text == task.schedule(row)
        if not task.target.is_gpu:
            continue
        assert legal.any() and all(case is None or case.trusted for case, _ in task.cases.groups(rows[legal]))
        for case, at in task.cases.groups(rows[legal]):
            assert case is not None
            taken = task.cases.usage(case, rows[legal][at])
            for i, row in enumerate(rows[legal][at]):
                exact = asdict(usage(task.search_task.schedule_module(task.schedule(row))))
                found = {key: int(column[i]) for key, column in taken.items()}
                assert found == exact, task.title


@pytest.mark.parametrize(
    ("target", "name", "layout"),
    [(TARGETS[0], "resnet-18", "NHWC"), (TARGETS[0], "mobilenet", "NCHW"), ("opencl", "resnet-18", "NCHW")],
)
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_every_kind_of_group_is_right(target: str, name: str, layout: str) -> None:
    for task in kinds(lw.extract_template_tasks(network(name, layout), target)[0]):
        trials = lw.tuners.RandomTuner(task, seed=3).tune(2, QUICK).trials
        assert [(t.error.name, t.message) for t in trials] == [("OK", "")] * 2, task.title


@pytest.mark.slow
def test_a_network_is_tuned_task_by_task_and_compiled_with_what_was_found(tmp_path: Path) -> None:
    """The classic loop: a tuner for each task, which learns from those before; then the best of all."""
    net = network()
    log = tmp_path / "resnet.jsonl"
    tasks, _ = lw.extract_template_tasks(net, TARGETS[0], ops=["conv2d"])
    for task in tasks[:3]:
        tuner = lw.tuners.XGBTuner(task, loss_type="rank", feature_type="itervar", plan_size=4, seed=0)
        if log.exists():
            assert tuner.load_history(log) > 0
        tuner.tune(min(3, len(task.config_space)), QUICK, callbacks=[lw.callbacks.log_to_file(log)])
    with lw.apply_history_best(log), pytest.warns(UntunedWarning, match="15 of 19 kernels"):
        executor = lw.compile(net, TARGETS[0], processes=1).executor()
    data = np.random.default_rng(0).standard_normal((1, 32, 32, 3), dtype=np.float32)
    got = executor(data)
    np.testing.assert_allclose(got, net.evaluate(data=data)[0], rtol=1e-3, atol=1e-4)
    tuned = {row.kernel.label for row in executor.profile(repeat=1) if row.kernel.tuned}
    assert tuned == {"conv2d_add_relu", "conv2d_add_add_relu"}  # the second convolution with both of its epilogues


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.few(1)
def test_epilogues_make_no_tasks_of_their_own(layout: str) -> None:
    """ResNet-18 has 11 convolutions and a dense layer that differ in operator or shapes, as 16 kernels."""
    net = lw.testing.network("resnet-18", batch=1, layout=layout)
    with pytest.warns(NoTemplateWarning) as caught:
        tasks, weights = lw.extract_template_tasks(net)
    assert [task.name for task in tasks] == [f"conv2d_{layout.lower()}_cpu"] * 11 + ["dense_cpu"]
    assert sum(weights) == 21 and max(weights) == 4  # 20 convolutions; four of the first stage are alike
    assert [str(warning.message) for warning in caught] == [
        "network resnet18: 3 of 19 kernels have no template: max_pool (none for its operator), "
        "global_avg_pool (none for its operator), softmax (several reductions)"
    ]
    assert caught[0].filename == __file__, "who called extract_template_tasks"


@pytest.mark.slow(1.2)
def test_a_network_of_three_axes_has_a_task_for_each_convolution() -> None:
    net = lw.testing.network("resnet3d-18", batch=1)
    with pytest.warns(NoTemplateWarning, match=r"2 of 18 kernels have no template: global_avg_pool .*, softmax .*"):
        tasks, _ = lw.extract_template_tasks(net)
    assert [task.name for task in tasks] == ["conv3d_ncdhw_cpu"] * 11 + ["dense_cpu"]


def test_anchors_differ_by_operator_and_shapes_and_not_by_what_follows() -> None:
    found: dict[str | None, set[str]] = {}
    for task in lw.extract_tasks(network())[0]:
        found.setdefault(anchor_hash(task.compute_dag), set()).add(json.dumps(json.loads(task.workload_key)[:2]))
    shared = [sorted(keys) for anchor, keys in found.items() if anchor is not None and len(keys) > 1]
    assert len(shared) == 4  # one a stage
    for plain, added in ((json.loads(keys[1]), json.loads(keys[0])) for keys in shared):
        assert (plain[0], added[0]) == ("conv2d_add_relu", "conv2d_add_add_relu")
        assert plain[1][:2] == added[1][:2]


@pytest.mark.parametrize("standalone", [False, True])
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_a_tuned_config_is_applied_to_each_kernel_with_its_own_epilogue(standalone: bool) -> None:
    """The task is that of a kernel with a bias and a relu, or of the operator alone."""
    net = network()
    tasks, _ = lw.extract_template_tasks(net, TARGETS[0], ops=["conv2d"])
    task = tasks[1]
    assert task.title.startswith("conv2d_nhwc_cpu of conv2d_add_relu([1, 8, 8, 8], [3, 3, 8, 8]")
    if standalone:
        task = lw.TemplateTask("conv2d_nhwc", (1, 8, 8, 8, 8, 3, 3, (1, 1), (1, 1)), TARGETS[0])
    records = lw.tuners.RandomTuner(task, seed=0).tune(2, QUICK).trials
    with pytest.warns(UntunedWarning, match="17 of 19 kernels"):
        compiled = lw.compile(net, TARGETS[0], records=records, processes=1)
    best = min(records, key=lambda record: record.time_s)
    schedules = {row.kernel.label: row.kernel.schedule for row in compiled.executor().profile(1) if row.kernel.tuned}
    assert set(schedules) == {"conv2d_add_relu", "conv2d_add_add_relu"}
    assert (schedules["conv2d_add_relu"] == best.schedule) is not standalone
    data = np.random.default_rng(0).standard_normal((1, 32, 32, 3), dtype=np.float32)
    np.testing.assert_allclose(compiled.executor()(data), net.evaluate(data=data)[0], rtol=1e-3, atol=1e-4)


@pytest.mark.slow(1.2)
def test_only_records_of_the_same_loops_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of all kernels of a device would be, whenever a network is compiled for it."""
    net = network()
    tasks, _ = lw.extract_template_tasks(net, TARGETS[0], ops=["conv2d"])
    records = [lw.tuners.RandomTuner(task, seed=0).tune(1, QUICK).trials[0] for task in tasks[1:3]]
    kernels = [task for task in lw.extract_tasks(net, TARGETS[0])[0] if task.name == "conv2d_add_relu"]
    parsed: list[str] = []
    anchor_of = epilogues._anchor_of.__wrapped__
    monkeypatch.setattr(epilogues, "_anchor_of", lambda name, args: parsed.append(args) or anchor_of(name, args))
    anchors = RecordedAnchors([History(records)])
    found = [anchors.best(kernel) for kernel in kernels]
    assert sum(each is not None for each in found) == 2
    assert sorted(parsed) == sorted(json.dumps(record.template["args"]) for record in records)


def test_computations_without_a_template_have_no_operator() -> None:
    found = {operator_of(task) for task in lw.extract_tasks(network())[0]}
    assert found == {None, "conv2d_nhwc", "dense"} and found - {None} < operators().keys()
