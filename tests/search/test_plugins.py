"""Primitives, targets, backends, cost models and sketch rules of others: the example outside the tree."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import plugin_site
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.installed import BackendError, backend_module
from loopwright.dialects.plugins import COST_MODELS, SKETCH_RULES, TARGETS, UNIVERSES
from loopwright.search.cost_model.make import make_model
from loopwright.search.features.of_records import features_of_schedule
from loopwright.search.records.file import is_primitive, load, primitives_of

TARGET = "simple-core vector_bytes=16 vector_registers=32"
STEP = 'simple-core-strip-mine{block="T_relu" loop="i1" lanes=8}'


def layer() -> list[te.Tensor]:
    a, b = te.placeholder((4, 6), name="a"), te.placeholder((6, 16), name="b")
    return [a, b, topi.nn.relu(topi.matmul(a, b))]


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    site = tmp_path / "site"
    site.mkdir()
    plugin_site.install_example(site)
    plugin_site.on_path(site, monkeypatch)
    return site


def test_a_primitive_is_a_step_of_every_schedule(example: Path) -> None:
    sch = lw.Schedule(layer(), target="llvm cores=1")
    sch.simple_core_strip_mine("T_relu", sch.get_loops("T_relu")[-1], 8)  # type: ignore[attr-defined]
    assert sch.pipeline == f"lw-lower-te-to-loop,{STEP}"
    again = lw.Schedule(layer(), target="llvm cores=1")
    again.apply(sch.pipeline)
    assert str(again) == str(sch) and again.steps == sch.steps
    assert "simple_core_strip_mine" in dir(sch)
    assert primitives_of(sch.pipeline) == {"lw-lower-te-to-loop", "simple-core-strip-mine"}
    assert is_primitive("simple-core-strip-mine") and not is_primitive("simple-core")
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype("float32") for shape in ((4, 6), (6, 16)))
    np.testing.assert_allclose(lw.build(sch)(a, b), np.maximum(a @ b, 0), rtol=1e-5)
    with pytest.raises(lw.ScheduleError, match="factors must be positive"):
        again.simple_core_strip_mine("T_matmul", "j", -1)  # type: ignore[attr-defined]


def test_stock_xdsl_opt_replays_its_text(example: Path, tmp_path: Path) -> None:
    sch = lw.Schedule(layer(), target="llvm cores=1")
    (tmp_path / "layer.mlir").write_text(str(sch.workload))
    sch.apply(STEP)
    command = [sys.executable, "-m", "xdsl.tools.xdsl_opt", "layer.mlir", "-p", sch.pipeline]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(sch.module), done.stderr


def test_a_target_has_what_its_kind_says(example: Path) -> None:
    target = lw.resolve_target("simple-core")
    assert str(target) == TARGET and not target.is_gpu and not target.is_ours
    assert lw.resolve_target("simple-core cores=2 vector_bytes=32 model=big").model == "big"
    assert [rule.name for rule in lw.sketch_rules(target)].count("strip_mining") == 1
    assert "strip_mining" not in [rule.name for rule in lw.sketch_rules(lw.Target())]
    with pytest.raises(ValueError, match="kind must be llvm, cuda, opencl or simple-core, got 'simple-cor'"):
        lw.resolve_target("simple-cor")
    net = lw.Network("net")
    net.output(net.relu(net.input("x", (2, 2))))
    with pytest.raises(ValueError, match="networks are compiled for llvm, cuda, opencl, not for 'simple-core"):
        lw.compile(net, "simple-core")


def test_features_on_all_candidates_are_those_of_the_ir(example: Path) -> None:
    task = lw.SearchTask(layer, target="simple-core")
    (sketch,) = task.sketches
    rows = sketch.sample(np.random.default_rng(0), 8)
    for row, features in zip(rows, sketch.features(rows), strict=True):
        wanted = features_of_schedule(task.module, task.target, sketch.schedule(row))
        np.testing.assert_allclose(features[: len(wanted)], wanted, rtol=1e-5)


@pytest.mark.slow(1.2)
def test_it_is_tuned_by_worker_processes_and_its_records_are_read(example: Path, tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    task = lw.SearchTask(layer, target="simple-core")
    options = lw.TuningOptions(num_measure_trials=8, records=records, cost_model="nearest", verbose=False)
    task.tune(options)
    best = task.best_record(records)
    assert best.device == "simple core at 100 MHz (simulated)" and best.versions["simple-core-strip-mine"] == "1"
    assert {record.error.value for record in load(records)} == {"OK"}
    kernel = task.build(best.schedule)
    assert kernel.benchmark(repeat=2).median == pytest.approx(best.time_s)
    assert best.time_s < task.build().benchmark(repeat=2).median / 3, "strips of vectors take a quarter of the cycles"
    inputs = task.reference.inputs
    np.testing.assert_allclose(kernel(*inputs), task.reference.expected[0], rtol=1e-5, atol=1e-6)
    assert "lw_kernel.store" in kernel.source


def test_a_kernel_packs_its_constants_before_the_backend_sees_them(example: Path) -> None:
    x, w = te.placeholder((4, 8), name="x"), te.placeholder((8, 16), name="w", constant=True)
    sch = lw.Schedule([x, w, topi.matmul(x, w)], target="simple-core")
    sch.transform_layout("T_matmul", "w", ["j/4", "k", "j%4"])
    weight = np.random.default_rng(1).standard_normal((8, 16)).astype("float32")
    data = np.random.default_rng(2).standard_normal((4, 8)).astype("float32")
    for kernel, arrays in ((lw.build(sch, params={"w": weight}), [data]), (lw.build(sch), [data, weight])):
        np.testing.assert_allclose(kernel(*arrays), data @ weight, rtol=1e-5, atol=1e-5)


def test_a_cost_model_is_known_by_its_name_and_kept_in_files(example: Path, tmp_path: Path) -> None:
    model, features = make_model("nearest"), np.random.default_rng(0).random((6, 3)).astype(np.float32)
    width = len(make_model("linear").state())
    assert width and not model.ready
    model.fit(features, np.linspace(0, 1, 6))
    model.save(tmp_path / "model")
    again = lw.load_cost_model(tmp_path / "model")
    assert type(again) is type(model) and np.array_equal(again.predict(features)[0], model.predict(features)[0])
    with pytest.raises(ValueError, match=r"there are: trees, .*, nearest"):
        lw.TuningOptions(cost_model="nearer")


def test_without_the_package_its_text_and_files_are_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Unrecognized passes"):
        lw.Schedule(layer(), target="llvm cores=1").apply(STEP)
    with pytest.raises(AttributeError, match="a Schedule has no 'simple_core_strip_mine'"):
        lw.Schedule(layer(), target="llvm cores=1").simple_core_strip_mine("T_relu", "i1")  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="kind must be llvm, cuda or opencl, got 'simple-core'"):
        lw.resolve_target("simple-core")


BROKEN = {
    UNIVERSES: {"torn": "no_such_module:UNIVERSE"},
    SKETCH_RULES: {"torn": "no_such_module:Rule", "odd": "json:dumps"},
    COST_MODELS: {"torn": "no_such_module:Model", "odd": "json:JSONDecoder"},
    TARGETS: {"torn": "no_such_module:KIND", "odd": "json:dumps"},
}


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "broken"
    site.mkdir()
    plugin_site.write_metadata(site, "torn-package", BROKEN)
    plugin_site.on_path(site, monkeypatch)


def test_a_broken_package_is_named_and_left_out(broken: None) -> None:
    named = r"of package torn-package 0\.1"
    with pytest.warns(lw.PluginWarning, match=rf"'torn' in 'loopwright.sketch_rules' {named} cannot be loaded"):
        assert "injective" in [rule.name for rule in lw.sketch_rules()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.PluginWarning)
        assert "torn" not in str(lw.sketch_rules())
        assert "split" in dir(lw.Schedule(layer(), target="llvm cores=1"))
        lw.Schedule(layer(), target="llvm cores=1").apply('lw-unroll{block="T_relu" loop="i1"}')
    for name, reason in (("torn", "cannot be loaded"), ("odd", "must be a class that derives from lw.SavedCostModel")):
        with pytest.raises(lw.PluginError, match=rf"'{name}' in 'loopwright.cost_models' {named} {reason}"):
            make_model(name)
    for name, reason in (("torn", "cannot be loaded"), ("odd", "must be a lw.TargetKind, it is a function")):
        with pytest.raises(ValueError, match=rf"target '{name}': '{name}' in 'loopwright.targets' {named} {reason}"):
            lw.resolve_target(name)


def test_a_broken_package_does_not_keep_loopwright_from_being_imported(broken: None) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    program = "import loopwright as lw; print(lw.resolve_target('llvm cores=2').cores, 'split' in dir(lw.Schedule))"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("2"), done.stderr


def test_a_backend_says_what_it_lacks() -> None:
    with pytest.raises(BackendError, match="cannot be imported"):
        backend_module("no_such_module")
    with pytest.raises(
        BackendError, match=r"backend 'gzip' lacks the function\(s\) build, load, device_name, versions"
    ):
        backend_module("gzip")
    with pytest.raises(BackendError, match=r"backend 're' lacks the function\(s\) load, device_name, versions"):
        backend_module("re")
