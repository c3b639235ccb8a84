"""Words of TVM's tuners and schedules, each with the one that is used here, for those who bring scripts along.

Wherever a name, a keyword or an option is refused, `instead_of` ends the sentence with the word to use.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import NoReturn, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")
_C = TypeVar("_C", bound=type)

_BUDGET = "TuningOptions(num_measure_trials=...), of lw.tuners n_trial"
_RECORDS = "TuningOptions(records=file)"
_STRATEGY = "TuningOptions(strategy=..., cost_model=...)"
_RUNNER = "runner=lw.LocalRunner(...)"
_LIMITS = "the target, as in 'opencl max_threads_per_block=256'"
_HISTORY = "lw.apply_history_best(file)"
_EXECUTOR = "lw.compile(net, target).executor()"
_ARRAYS = "nothing: kernels take NumPy arrays, and their target says the device"
_ALL_PASSES = "nothing: lw.compile runs all passes"
_FLEET = "lw.request_device(key, 'HOST:PORT'), and the command loopwright fleet"
_ZOO = "lw.testing.network('resnet-18', batch=1, layout='NHWC')"
_EXPORTED = "lw.from_onnx, of the model exported to ONNX"
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
    "builder": "task.tune(options, builder=lw.LocalBuilder(...))",
    "runner": "task.tune(options, runner=lw.LocalRunner(...))",
    "search_policy": _STRATEGY,
    "init_search_callbacks": _RECORDS,
    "log_file": "records",
    "log_filename": "records",
    "load_log_file": "load_records",
    "print_mode": "mode",
    "measure_ctx": _RUNNER,
    "build_func": "the target, as in 'llvm arch=aarch64': code for it is compiled without other tools",
    "cooldown_interval": "cooldown",
    "enable_cpu_cache_flush": "flush_bytes",
    "objective_func": "objective",
    "num_threads": "nothing: trees are fitted in one thread",
    "optimizer": "lw.tuners.XGBTuner(annealing=...)",
    "log_interval": "the logger 'loopwright.tuners', which has a line for each trial",
    # tasks and targets
    "func": "workload",
    "func_name": "workload",
    "task_name": "template",
    "task_weights": "weights",
    "hardware_params": _LIMITS,
    "target_host": "one target: the host is this machine",
    "host": "one target: the host is this machine",
    "params": "nothing: a network has its weights",
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
    # networks
    "batch_size": "batch",
    "num_layers": "layers, or the name, as in lw.testing.network('resnet-18')",
    "image_shape": "image=224 and layout='NHWC'",
    "num_classes": "classes",
    "version": "the name, as in lw.testing.network('squeezenet_v1.1')",
    'mod["main"]': "the network itself",
    'lib["default"]': _EXECUTOR,
    # names of the package
    "auto_scheduler": "lw itself: lw.SearchTask, lw.TaskScheduler, ...",
    "autotvm": "lw itself: lw.template, lw.tuners, ...",
    "meta_schedule": "lw itself: lw.SearchTask, lw.TaskScheduler, ...",
    "tvm": "lw itself: import loopwright as lw",
    "relay": "lw.Network, lw.from_onnx, or lw.testing.network",
    "frontend": _EXPORTED,
    "from_mxnet": _EXPORTED,
    "IRModule": "lw.Network",
    "get_workload": _ZOO,
    "transform": _ALL_PASSES,
    "PassContext": _ALL_PASSES,
    "target": "text, as in target='cuda arch=sm_86'",
    "task": "lw.TemplateTask(template, args, target), lw.extract_template_tasks(net, target)",
    "tuner": f"lw.tuners, or {_STRATEGY}",
    "XGBTuner": "lw.tuners.XGBTuner",
    "GATuner": "lw.tuners.GATuner",
    "RandomTuner": "lw.tuners.RandomTuner",
    "GridSearchTuner": "lw.tuners.GridSearchTuner",
    "callback": "lw.callbacks",
    "log_to_file": "lw.callbacks.log_to_file",
    "progress_bar": "lw.callbacks.progress_bar",
    "record": "lw.pick_best(file, out), lw.load_best(file), tuner.load_history(file)",
    "load_from_file": "the file itself, as in tuner.load_history(file)",
    "measure_record": "the command: loopwright records distill log.jsonl -o best.jsonl",
    "create_task": "lw.SearchTask(workload, args, target)",
    "auto_schedule": "task.tune(lw.TuningOptions(...))",
    "get_config": "the first parameter of a template",
    "LocalRPCMeasureContext": _RUNNER,
    "RPCRunner": "runner=lw.FleetRunner(key, 'HOST:PORT')",
    "rpc": _FLEET,
    "exec": _FLEET,
    "request_remote": _FLEET,
    "utils": "pathlib and tempfile for files; for devices lw.request_device",
    "RecordToFile": _RECORDS,
    "PreloadMeasuredStates": _RECORDS,
    "SketchPolicy": _STRATEGY,
    "XGBModel": "TuningOptions(cost_model='trees')",
    "HardwareParams": _LIMITS,
    "ApplyHistoryBest": _HISTORY,
    "load_best_record": "lw.load_best(file)",
    "extract_from_program": "lw.extract_template_tasks(net, target)",
    "placeholder": "te.placeholder",
    "compute": "te.compute",
    "reduce_axis": "te.reduce_axis",
    "nd": _ARRAYS,
    "gpu": _ARRAYS,
    "context": _ARRAYS,
    "device": _ARRAYS,
    "assert_allclose": "np.testing.assert_allclose",
    "contrib": _EXECUTOR,
    "graph_executor": _EXECUTOR,
    "runtime": _EXECUTOR,
    "GraphModule": _EXECUTOR,
    "ndk": "the target, as in 'llvm arch=aarch64', and compiled.save(file)",
    # what tasks, kernels and their times have
    "apply_steps_from_state": "task.apply_best(file), or task.build(record.schedule)",
    "print_python_code_from_state": "task.print_best(file, mode='python')",
    "time_evaluator": "kernel.benchmark(...)",
    "entry_name": "nothing: a kernel is one function",
    "imported_modules": "kernel.source",
    "get_source": "kernel.source",
    "results": "times_s",
    "xgb": "'annealing' with the cost model 'trees' (with trees of its own, lw.tuners.XGBTuner)",
    "ga": "'genetic'",
    "gridsearch": "'grid'",
    # schedules
    "create_schedule": "lw.Schedule(tensors)",
    "s[stage]": "methods of the schedule that take the stage first, as sch.split(C, x, [None, 8]), sch.get_loops(C)",
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
    "mod": "sch.workload and print(sch)",
}
"""From a word of TVM's (autotvm, auto_scheduler, meta_schedule, te and tir schedules) to what stands for it here."""


def instead_of(word: str) -> str:
    """The end of a sentence that refuses a word: what to use in its place; empty for words of nobody's."""
    return f"; instead of TVM's '{word}' use {INSTEAD[word]}" if word in INSTEAD else ""


def takes_no(callee: str, keyword: str) -> TypeError:
    """The error of a call with a keyword that it does not have."""
    return TypeError(f"{callee} takes no '{keyword}'{instead_of(keyword)}")


def unexpected(callee: str, keyword: str, known: Iterable[str]) -> TypeError:
    """Python's own error of a call with a keyword that is none of those known, and the nearest of them."""
    near = [name for name in known if keyword in name] or get_close_matches(keyword, known)
    like = f"; near: {', '.join(near)}" if near else ""
    return TypeError(f"{callee}() got an unexpected keyword argument '{keyword}'{like}")


def knows_classic_words(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function whose users may bring keywords of TVM's: the error for one names the word to use."""
    known = inspect.signature(function).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    name = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*arguments: _P.args, **options: _P.kwargs) -> _R:
        for keyword in options:
            if keyword in INSTEAD and keyword not in known:
                raise takes_no(name, keyword)
            if keyword not in known and not takes_any:
                raise unexpected(function.__qualname__, keyword, known)
        return function(*arguments, **options)

    return checked


def no_attribute(owner: str, name: str, asked: object = None) -> AttributeError:
    """The error of a module or a value that does not have a name; Python's report of it names those like it.

    It does where it is told what was `asked`, and is not where there is a word to use already.
    """
    told = asked if name not in INSTEAD else None
    return AttributeError(f"{owner} has no attribute {name!r}{instead_of(name)}", name=name, obj=told)


def no_name(module: str, name: str) -> AttributeError | ImportError:
    """The error of a package's `__getattr__` for a name that it does not have.

    Python replaces an AttributeError where `from module import name` asked; a word of TVM's is an ImportError there,
    and an AttributeError to all else, as to hasattr(). (`loopwright.tuners` is a name alone, not a module's.)
    """
    if name in INSTEAD and module in sys.modules and _asked_by_import():
        return ImportError(f"cannot import name {name!r} from {module!r}{instead_of(name)}", name=module)
    return no_attribute(f"module {module!r}", name, sys.modules.get(module))


def _asked_by_import() -> bool:
    """True where what asked for a name, of the function that called the caller, is `from ... import` of a package."""
    asking = sys._getframe(3)
    return asking.f_code.co_name == "_handle_fromlist" and asking.f_globals.get("__name__") == "importlib._bootstrap"


def names_of_module(module: str) -> Callable[[str], NoReturn]:
    """The `__getattr__` of a module that users may ask for names of TVM's."""

    def refuse(name: str) -> NoReturn:
        raise no_name(module, name)

    return refuse


def attributes_know_classic_words(made: _C) -> _C:
    """Decorate a class whose values may be asked for names of TVM's: the error for one has ours."""

    def refuse(self: object, name: str) -> object:
        if name in INSTEAD:
            raise no_attribute(f"{type(self).__name__!r} object", name)
        return object.__getattribute__(self, name)  # raises, as Python does

    made.__getattr__ = refuse  # type: ignore[attr-defined]
    return made


def subscript_knows_classic_word(word: str) -> Callable[[_C], _C]:
    """Decorate a class which scripts for TVM subscript as `word` says: the error has what is done here."""

    def decorate(made: _C) -> _C:
        def refuse(self: object, key: object) -> NoReturn:
            raise TypeError(f"{type(self).__name__!r} object is not subscriptable{instead_of(word)}")

        made.__getitem__ = refuse  # type: ignore[index]
        return made

    return decorate


def options_know_classic_words(made: _C) -> _C:
    """Decorate a dataclass as `knows_classic_words` does a function."""
    made.__init__ = knows_classic_words(made.__init__)  # type: ignore[misc]
    return made
