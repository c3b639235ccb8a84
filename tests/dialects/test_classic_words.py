"""Words of TVM's: refused with the one that is used here, by whatever refuses an unknown name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import loopwright as lw
from loopwright import te
from loopwright.dialects.classic_words import INSTEAD, knows_classic_words
from loopwright.search.cost_model.make import MODELS
from loopwright.search.strategies.make import STRATEGIES
from loopwright.search.tuners import Tuner


def schedule() -> lw.Schedule:
    a = te.placeholder((6, 32), name="a")
    return lw.Schedule([a, te.compute((6, 32), lambda i, j: a[i, j] + 1.0, name="c")])


REFUSED: list[tuple[Callable[..., object], dict[str, object], str]] = [
    (lw.TuningOptions, {"num_trials": 1}, "TuningOptions takes no 'num_trials'"),
    (lw.TuningOptions, {"measure_callbacks": []}, "TuningOptions takes no 'measure_callbacks'"),
    (lw.LocalRunner, {"measure_ctx": None}, "LocalRunner takes no 'measure_ctx'"),
    (lw.SearchTask, {"func": None, "args": ()}, "SearchTask takes no 'func'"),
    (lw.SearchTask.tune, {"n_trial": 1}, "SearchTask.tune takes no 'n_trial'"),
    (lw.SearchTask.print_best, {"print_mode": "cuda"}, "SearchTask.print_best takes no 'print_mode'"),
    (lw.TemplateTask, {"task_name": "dense"}, "TemplateTask takes no 'task_name'"),
    (lw.TemplateTask.tune, {"n_trial": 1}, "TemplateTask.tune takes no 'n_trial'"),
    (lw.TaskScheduler, {"task_weights": []}, "TaskScheduler takes no 'task_weights'"),
    (lw.TaskScheduler.tune, {"search_policy": None}, "TaskScheduler.tune takes no 'search_policy'"),
    (Tuner.tune, {"n_trials": 1}, "Tuner.tune takes no 'n_trials'"),
    (lw.build, {"target_host": "llvm"}, "build takes no 'target_host'"),
    (lw.compile, {"target_host": "llvm"}, "compile takes no 'target_host'"),
    (lw.extract_tasks, {"hardware_params": None}, "extract_tasks takes no 'hardware_params'"),
    (lw.extract_template_tasks, {"target_host": "llvm"}, "extract_template_tasks takes no 'target_host'"),
    (lambda **given: schedule().split("c", "i", **given), {"nparts": 2}, "split takes no 'nparts'"),
    (lw.TuningOptions, {"builder": None}, "TuningOptions takes no 'builder'"),
    (lw.TuningOptions, {"runner": None}, "TuningOptions takes no 'runner'"),
    (lw.SearchTask.tune, {"tuning_options": None}, "SearchTask.tune takes no 'tuning_options'"),
    (lw.SearchTask.tune, {"search_policy": None}, "SearchTask.tune takes no 'search_policy'"),
    (lw.LocalBuilder, {"build_func": "ndk"}, "LocalBuilder takes no 'build_func'"),
    (lw.LocalRunner, {"cooldown_interval": 1}, "LocalRunner takes no 'cooldown_interval'"),
    (lw.LocalRunner, {"enable_cpu_cache_flush": True}, "LocalRunner takes no 'enable_cpu_cache_flush'"),
    (lw.TaskScheduler, {"load_log_file": "log.json"}, "TaskScheduler takes no 'load_log_file'"),
    (lw.TaskScheduler, {"objective_func": sum}, "TaskScheduler takes no 'objective_func'"),
    (lw.tuners.XGBTuner, {"num_threads": 4}, "GradientBoostingTuner takes no 'num_threads'"),
    (lw.tuners.XGBTuner, {"optimizer": "sa"}, "GradientBoostingTuner takes no 'optimizer'"),
    (lw.tuners.XGBTuner, {"log_interval": 50}, "GradientBoostingTuner takes no 'log_interval'"),
    (lw.extract_tasks, {"params": {}}, "extract_tasks takes no 'params'"),
    (lw.extract_template_tasks, {"params": {}}, "extract_template_tasks takes no 'params'"),
    (lw.compile, {"params": {}}, "compile takes no 'params'"),
    (lw.Target, {"host": "llvm"}, "Target takes no 'host'"),
    (lw.resolve_target, {"host": "llvm"}, "resolve_target takes no 'host'"),
    (partial(lw.testing.network, "mobilenet"), {"batch_size": 1}, "mobilenet takes no 'batch_size'"),
    (partial(lw.testing.network, "mobilenet"), {"image_shape": (224, 224, 3)}, "mobilenet takes no 'image_shape'"),
    (lw.testing.resnet, {"num_layers": 18}, "resnet takes no 'num_layers'"),
    (lw.testing.squeezenet, {"version": "1.1"}, "squeezenet takes no 'version'"),
    (lw.testing.vgg, {"num_classes": 10}, "vgg takes no 'num_classes'"),
    (lw.TuningOptions, {"max_trials_global": 1}, "TuningOptions takes no 'max_trials_global'"),
    (lw.TuningOptions, {"num_measures_per_round": 64}, "TuningOptions takes no 'num_measures_per_round'"),
    (lw.TuningOptions, {"num_trials_per_iter": 64}, "TuningOptions takes no 'num_trials_per_iter'"),
    (lw.TuningOptions, {"init_search_callbacks": []}, "TuningOptions takes no 'init_search_callbacks'"),
    (lw.TuningOptions, {"log_filename": "log.json"}, "TuningOptions takes no 'log_filename'"),
    (lw.SearchTask.tune, {"tune_option": None}, "SearchTask.tune takes no 'tune_option'"),
    (lw.SearchTask.apply_best, {"log_file": "log.json"}, "SearchTask.apply_best takes no 'log_file'"),
    (lw.TemplateTask, {"func_name": "dense"}, "TemplateTask takes no 'func_name'"),
    (lambda **given: schedule().split("c", "i", **given), {"factor": 2}, "split takes no 'factor'"),
    (lambda **given: schedule().cache_read("c", "a", **given), {"storage_scope": ""}, "cache_read takes no 'storage_"),
]


@pytest.mark.parametrize(
    ("call", "keywords", "sentence"), REFUSED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_keyword_of_tvm_is_refused_with_ours(
    call: Callable[..., object], keywords: dict[str, object], sentence: str
) -> None:
    with pytest.raises(TypeError) as caught:
        call(**keywords)
    assert str(caught.value).startswith(sentence)
    assert str(caught.value).endswith(INSTEAD[next(iter(keywords))])


def test_a_host_in_a_targets_text_is_refused_with_ours() -> None:
    with pytest.raises(ValueError) as caught:
        lw.resolve_target("cuda target_host=llvm")
    assert str(caught.value).endswith(f"; instead of TVM's 'target_host' use {INSTEAD['target_host']}")


NAMES: dict[str, tuple[Callable[[], object], str]] = {
    "loopwright": (
        lambda: lw,
        "auto_scheduler autotvm relay contrib target nd gpu context device lower transform IRModule placeholder "
        "compute reduce_axis create_schedule thread_axis create_task auto_schedule LocalRPCMeasureContext RPCRunner "
        "RecordToFile XGBModel SketchPolicy PreloadMeasuredStates HardwareParams ApplyHistoryBest load_best_record "
        "measure_record get_config task tuner callback record XGBTuner GATuner RandomTuner GridSearchTuner log_to_file "
        "progress_bar load_from_file extract_from_program frontend from_mxnet graph_executor runtime GraphModule "
        "PassContext utils request_remote ndk rpc exec tvm",
    ),
    "the package, of later ones": (lambda: lw, "meta_schedule"),
    "te": (lambda: te, "create_schedule thread_axis lower"),
    "testing": (lambda: lw.testing, "assert_allclose get_workload"),
    "tuners": (lambda: lw.tuners, "callback record"),
    "task": (lambda: doubling("opencl model=mali-t860"), "hardware_params layout_rewrite_option"),
    "compute_dag": (
        lambda: doubling("llvm").compute_dag,
        "apply_steps_from_state print_python_code_from_state",
    ),
    "kernel": (lambda: lw.build(schedule()), "time_evaluator entry_name imported_modules get_source"),
    "times": (lambda: lw.BenchmarkResult((1.0,), 1), "results"),
}
"""Names of the classic tutorials that are others here, by what is asked for them, after `import loopwright as lw`."""


def doubling(target: str) -> lw.SearchTask:
    a = te.placeholder((6, 32), name="a")
    return lw.SearchTask(
        te.create_module([a, te.compute((6, 32), lambda i, j: a[i, j] * 2.0, name="c")]), target=target
    )


def perceptron() -> lw.Network:
    net = lw.Network("perceptron")
    net.output(net.relu(net.input("x", (1, 4))))
    return net


@pytest.mark.parametrize("owner", NAMES)
def test_names_of_the_tutorials_are_refused_with_ours(owner: str) -> None:
    make, words = NAMES[owner]
    value = make()
    for word in words.split():
        with pytest.raises(AttributeError) as caught:
            getattr(value, word)
        assert str(caught.value).endswith(f"has no attribute '{word}'; instead of TVM's '{word}' use {INSTEAD[word]}")


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("loopwright", "relay autotvm auto_scheduler tvm"),
        ("loopwright.te", "thread_axis"),
        ("loopwright.testing", "assert_allclose"),
    ],
)
def test_importing_names_of_the_tutorials_is_refused_with_ours(package: str, words: str) -> None:
    """`from loopwright import relay` ended with Python's own sentence."""
    module = importlib.import_module(package)
    for word in words.split():
        with pytest.raises(ImportError) as caught:
            exec(f"from {package} import {word}", {})
        said = f"cannot import name '{word}' from '{package}'; instead of TVM's '{word}' use {INSTEAD[word]}"
        assert str(caught.value) == said
        assert not hasattr(module, word) and getattr(module, word, None) is None
    with pytest.raises(ImportError, match=r"^cannot import name 'nothing' from '[\w.]+' \("):
        exec(f"from {package} import nothing", {})


def test_modules_of_the_package_are_imported_whatever_tvm_calls_so() -> None:
    for package in (lw, te, lw.testing):
        assert not {info.name for info in pkgutil.iter_modules(package.__path__)} & set(INSTEAD)


SUBSCRIPTED: list[tuple[Callable[[], object], str, str]] = [
    (schedule, "c", "s[stage]"),
    (perceptron, "main", 'mod["main"]'),
    (lambda: lw.compile(perceptron()), "default", 'lib["default"]'),
]


@pytest.mark.parametrize(("make", "key", "word"), SUBSCRIPTED, ids=("schedule", "network", "compiled"))
def test_what_tvm_subscripts_says_what_is_done_here(make: Callable[[], object], key: str, word: str) -> None:
    value: Any = make()
    with pytest.raises(TypeError) as caught:
        value[key]
    assert str(caught.value).endswith(f"is not subscriptable; instead of TVM's '{word}' use {INSTEAD[word]}")


STEPS = "tile compute_root get_block get_child_blocks set_store_predicate mod"
OPTIONS = "-mcpu -mattr -mtriple -device -model -arch -num-cores -max_num_threads -libs"
STRATEGY_WORDS = "xgb ga gridsearch"


def test_steps_options_and_strategies_of_tvm_are_refused_with_ours() -> None:
    attempts: dict[str, Callable[[str], object]] = {
        STEPS: lambda word: getattr(schedule(), word),
        OPTIONS: lambda word: lw.resolve_target(f"cuda {word}=1"),
        STRATEGY_WORDS: lambda word: lw.TuningOptions(strategy=word),
    }
    for words, attempt in attempts.items():
        for word in words.split():
            with pytest.raises((AttributeError, ValueError)) as caught:
                attempt(word)
            assert str(caught.value).endswith(f"; instead of TVM's '{word}' use {INSTEAD[word]}")


def test_no_word_is_without_a_test() -> None:
    tested = {next(iter(keywords)) for _, keywords, _ in REFUSED}
    tested |= {word for _, words in NAMES.values() for word in words.split()}
    tested |= {word for _, _, word in SUBSCRIPTED} | set(f"{STEPS} {OPTIONS} {STRATEGY_WORDS}".split())
    assert set(INSTEAD) == tested


def test_arguments_in_tvms_order_are_refused_with_a_sentence() -> None:
    """`tvm.build(s, args, target)`, `extract_tasks(mod, params, target)` and `relay.build(mod, target)`."""
    with pytest.raises(TypeError, match=r"^a target is text, as 'llvm cores=2', or a Target, got list$"):
        lw.build(schedule(), [te.placeholder((6, 32), name="a")], "llvm")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^a target is text, as 'llvm cores=2', or a Target, got dict$"):
        lw.extract_tasks(perceptron(), {}, "llvm")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"got a network: lw\.compile\(net, target\) compiles it"):
        lw.build(perceptron(), "llvm")


def test_an_attribute_of_nobodys_is_refused_as_python_does() -> None:
    kernel: Any = lw.build(schedule())
    with pytest.raises(AttributeError, match=r"^'CpuKernel' object has no attribute 'nothing'$"):
        _ = kernel.nothing
    assert not hasattr(lw.testing, "nothing")


def test_other_unknown_keywords_are_refused_as_python_does() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'num_trialz'"):
        lw.TuningOptions(num_trialz=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing'$"):
        _ = lw.nothing


def test_a_word_that_a_function_has_is_taken() -> None:
    assert knows_classic_words(lambda n_trial: n_trial)(n_trial=3) == 3


def test_no_word_is_ours_under_its_own_name() -> None:
    """Nothing that the package has is said to be named otherwise."""
    ours = {*dir(lw), *STRATEGIES, *MODELS, *dir(schedule())} - {"te", "testing"}
    assert not ours & set(INSTEAD)


def test_a_name_that_nobody_has_is_known_to_pythons_report() -> None:
    """It says `Did you mean: 'tune'?` where an AttributeError knows what was asked, and for what."""
    sch = schedule()
    for asked, name in ((lw, "tunes"), (te, "placeholderr"), (sch, "spilt")):
        with pytest.raises(AttributeError) as caught:
            getattr(asked, name)
        assert (caught.value.name, caught.value.obj) == (name, asked)
    with pytest.raises(AttributeError) as caught:
        lw.placeholder  # noqa: B018 (asks for it)
    assert caught.value.obj is None
