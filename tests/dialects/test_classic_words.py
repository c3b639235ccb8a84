"""Words of TVM's: refused with the one that is used here, by whatever refuses an unknown name."""

from __future__ import annotations

from collections.abc import Callable

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


@pytest.mark.parametrize(
    ("attempt", "word"),
    [
        (lambda: lw.auto_scheduler, "auto_scheduler"),
        (
            lambda: te.create_schedule,  # type: ignore[attr-defined]
            "create_schedule",
        ),
        (lambda: schedule().compute_root("c"), "compute_root"),
        (lambda: lw.resolve_target("llvm -mcpu=skylake"), "-mcpu"),
        (lambda: lw.TuningOptions(strategy="ga"), "ga"),
        (lambda: lw.resolve_target("cuda target_host=llvm"), "target_host"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_name_of_tvm_is_refused_with_ours(attempt: Callable[[], object], word: str) -> None:
    with pytest.raises((AttributeError, ValueError)) as caught:
        attempt()
    assert str(caught.value).endswith(f"; instead of TVM's '{word}' use {INSTEAD[word]}")


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
