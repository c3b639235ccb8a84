"""Words of TVM's tuners and schedules, each with the one that is used here, for those who bring scripts along.

Wherever a name, a keyword or an option is refused, `instead_of` ends the sentence with the word to use.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")
_C = TypeVar("_C", bound=type)

_BUDGET = "TuningOptions(num_measure_trials=...), of lw.tuners n_trial"
_RECORDS = "TuningOptions(records=file)"
_STRATEGY = "TuningOptions(strategy=..., cost_model=...)"
_RUNNER = "runner=lw.LocalRunner(...)"
_LIMITS = "the target, as in 'opencl max_threads_per_block=256'"
_HISTORY = "lw.apply_history_best(file)"
_LOWERED = "print(sch), or task.print_best(file, mode='ir')"

INSTEAD: Mapping[str, str] = {
    # options of tuning
    "num_trials": _BUDGET,
    "n_trials": _BUDGET,
    "n_trial": _BUDGET,
    "max_trials_global": _BUDGET,
    "num_measures_per_round": "TuningOptions(batch_size=...)",
    "num_trials_per_iter": "TuningOptions(batch_size=...)",
    "measure_callbacks": "records=file for RecordToFile, callbacks=[...] for others",
    "tuning_options": "options",
    "tune_option": "options",
    "tuner": _STRATEGY,
    "search_policy": _STRATEGY,
    "init_search_callbacks": _RECORDS,
    "log_file": "records",
    "log_filename": "records",
    "load_log_file": "load_records",
    "print_mode": "mode",
    "measure_ctx": _RUNNER,
    # tasks and targets
    "func": "workload",
    "func_name": "workload",
    "task_name": "template",
    "task_weights": "weights",
    "hardware_params": _LIMITS,
    "target_host": "one target: the host is this machine",
    "layout_rewrite_option": "nothing: the search packs constant weights by itself",
    "-mcpu": "model=, as in 'llvm model=cortex-a72'",
    "-mattr": "features=, as in 'llvm features=+dotprod'",
    "-mtriple": "arch=, as in 'llvm arch=aarch64'",
    "-device": "model=, as in 'opencl model=mali-t860'",
    "-model": "model=",
    "-arch": "arch=, as in 'cuda arch=sm_86'",
    "-num-cores": "cores=",
    "-max_num_threads": "max_threads_per_block=",
    "-libs": "nothing: no library is called",
    # names of the package
    "auto_scheduler": "lw itself: lw.SearchTask, lw.TaskScheduler, ...",
    "autotvm": "lw itself: lw.template, lw.tuners, ...",
    "meta_schedule": "lw itself: lw.SearchTask, lw.TaskScheduler, ...",
    "relay": "lw.Network, lw.from_onnx, or lw.testing.network",
    "create_task": "lw.SearchTask(workload, args, target)",
    "auto_schedule": "task.tune(lw.TuningOptions(...))",
    "get_config": "the first parameter of a template",
    "LocalRPCMeasureContext": _RUNNER,
    "RPCRunner": _RUNNER,
    "RecordToFile": _RECORDS,
    "PreloadMeasuredStates": _RECORDS,
    "SketchPolicy": _STRATEGY,
    "XGBModel": "TuningOptions(cost_model='trees')",
    "HardwareParams": _LIMITS,
    "ApplyHistoryBest": _HISTORY,
    "load_best_record": "lw.load_best(file)",
    "extract_from_program": "lw.extract_template_tasks(net, target)",
    "time_evaluator": "kernel.benchmark(...)",
    "xgb": "'annealing' with the cost model 'trees' (with trees of its own, lw.tuners.XGBTuner)",
    "ga": "'genetic'",
    "gridsearch": "'grid'",
    # schedules
    "create_schedule": "lw.Schedule(tensors)",
    "thread_axis": "sch.bind(block, loop, 'threadIdx.x')",
    "lower": _LOWERED,
    "factor": "factors=[None, 8]",
    "nparts": "factors=[8, None]",
    "tile": "split of both loops, and reorder",
    "compute_root": "nothing: a block stays where it is until compute_at moves it",
    "get_block": "the block's name, or its tensor",
    "get_child_blocks": "sch.blocks",
    "storage_scope": "scope",
    "set_store_predicate": "nothing: lowering places predicates",
    "tensorize": "nothing yet: matrix instructions are not used",
    "mod": "sch.workload and print(sch)",
}
"""From a word of TVM's (autotvm, auto_scheduler, meta_schedule, te and tir schedules) to what stands for it here."""


def instead_of(word: str) -> str:
    """The end of a sentence that refuses a word: what to use in its place; empty for words of nobody's."""
    return f"; instead of TVM's '{word}' use {INSTEAD[word]}" if word in INSTEAD else ""


def takes_no(callee: str, keyword: str) -> TypeError:
    """The error of a call with a keyword that it does not have."""
    return TypeError(f"{callee} takes no '{keyword}'{instead_of(keyword)}")


def knows_classic_words(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function whose users may bring keywords of TVM's: the error for one names the word to use."""
    known = inspect.signature(function).parameters
    name = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*arguments: _P.args, **options: _P.kwargs) -> _R:
        for keyword in options:
            if keyword in INSTEAD and keyword not in known:
                raise takes_no(name, keyword)
        return function(*arguments, **options)

    return checked


def options_know_classic_words(made: _C) -> _C:
    """Decorate a dataclass as `knows_classic_words` does a function."""
    made.__init__ = knows_classic_words(made.__init__)  # type: ignore[misc]
    return made
