"""Wrong calls, one a line: each is one clear sentence, with nothing written and nothing lost. First guesses work."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.frontends.mlir.errors import MlirImportError
from loopwright.frontends.onnx.errors import OnnxImportError
from loopwright.graph.runtime.reading import PackageError
from loopwright.passes.primitive import ScheduleError
from loopwright.search.cost_model import CostModelError
from loopwright.search.records.file import RecordError
from loopwright.search.template.knobs.knob import ConfigError
from loopwright.te import ExpressionError, ShapeError

T = "llvm cores=1"

CALLS: list[tuple[str, type[Exception], str]] = [
    (
        'lw.SearchTask("reg", target=T)',
        TypeError,
        "workload 'reg': missing a required argument: 'm'; it is called with ()",
    ),
    (
        'lw.SearchTask("nothing", target=T)',
        ValueError,
        "there is no workload 'nothing'; there are: avg_pool, batch_matmul, conv2d,",
    ),
    (
        'lw.SearchTask("relu.onnx", target=T)',
        ValueError,
        "there is no workload 'relu.onnx'; there are: avg_pool, batch_matmul, conv2d,",
    ),
    (
        'lw.SearchTask("resnet-18", target=T)',
        ValueError,
        "there is no workload 'resnet-18'; there are: avg_pool, batch_matmul, conv2d,",
    ),
    (
        "lw.SearchTask(5, target=T)",
        TypeError,
        "a workload is a function that returns tensors, its registered name, or a te-level",
    ),
    ("lw.SearchTask(None)", TypeError, "a task is of a workload or of a workload_key: give one of them"),
    (
        "lw.SearchTask(sch, target=T)",
        TypeError,
        "a workload is a function that returns tensors, its registered name, or a te-level",
    ),
    (
        "lw.SearchTask(mm, args=8, target=T)",
        TypeError,
        "args are the arguments of the workload, in a list or a tuple, got 8",
    ),
    (
        "lw.SearchTask(mm, args=(1,2,3,4), target=T)",
        TypeError,
        "workload 'mm': too many positional arguments; it is called with (1, 2, 3, 4)",
    ),
    ("lw.SearchTask(mm, (8,8,8), 'tpu')", ValueError, "target 'tpu': kind must be llvm, cuda or opencl, got 'tpu'"),
    ("lw.SearchTask(mm, (8,8,8), 5)", TypeError, "a target is text, as 'llvm cores=2', or a Target, got int"),
    ("lw.SearchTask(mm, (8,8,8), None)", TypeError, "a target is text, as 'llvm cores=2', or a Target, got NoneType"),
    ("lw.SearchTask(mm, ('a',8,8), T)", ShapeError, "placeholder 'a': extents are integers, got 'a' in shape ('a', 8)"),
    ("lw.SearchTask(mm, (0,8,8), T)", ShapeError, "placeholder 'a': extents are at least 1, got shape (0, 8)"),
    ("lw.SearchTask(mm, (-1,8,8), T)", ShapeError, "placeholder 'a': extents are at least 1, got shape (-1, 8)"),
    ("lw.SearchTask(mm, (8.0,8,8), T)", ShapeError, "placeholder 'a': extents are integers, got 8.0 in shape (8.0, 8)"),
    ("lw.SearchTask(mm, rules=5, target=T)", TypeError, "rules are a list of sketch rules, got 5"),
    ("lw.SearchTask(mm, rules=['x'], target=T)", TypeError, "rules: a sketch rule must be a lw.SketchRule, got str"),
    (
        "lw.SearchTask(workload_key='nothing')",
        ValueError,
        "not a workload key: nothing; one is JSON: [name, arguments, hash]",
    ),
    (
        'lw.SearchTask(workload_key=\'["nothing", [], "x"]\')',
        ValueError,
        "there is no workload 'nothing'; there are: avg_pool, batch_matmul, conv2d,",
    ),
    ("task.tune(-1)", ValueError, "num_measure_trials must be a whole number of at least 1, got -1"),
    ('task.tune("64")', TypeError, "options are lw.TuningOptions(...) or a number of trials, got str"),
    ("task.tune(0)", ValueError, "num_measure_trials must be a whole number of at least 1, got 0"),
    ("task.tune(trials=64)", TypeError, "SearchTask.tune() got an unexpected keyword argument 'trials'"),
    (
        "task.tune(num_measure_trials=64)",
        TypeError,
        "SearchTask.tune() got an unexpected keyword argument 'num_measure_trials'",
    ),
    ("task.tune(records='r.jsonl')", TypeError, "SearchTask.tune() got an unexpected keyword argument 'records'"),
    (
        "task.tune(lw.MeasureOptions('x'))",
        TypeError,
        "options are lw.TuningOptions(...) or a number of trials, got MeasureOptions",
    ),
    (
        "task.tune(lw.TuningOptions(num_measure_trials=0))",
        ValueError,
        "num_measure_trials must be a whole number of at least 1, got 0",
    ),
    (
        "lw.TuningOptions(num_measure_trials='64')",
        ValueError,
        "num_measure_trials must be a whole number of at least 1, got '64'",
    ),
    (
        "lw.TuningOptions(num_measure_trials=1.5)",
        ValueError,
        "num_measure_trials must be a whole number of at least 1, got 1.5",
    ),
    ("lw.TuningOptions(trials=4)", TypeError, "TuningOptions.__init__() got an unexpected keyword argument 'trials'"),
    (
        "lw.TuningOptions(strategy='evo')",
        ValueError,
        "unknown strategy 'evo'; there are: evolution, annealing, genetic, random, grid",
    ),
    (
        "lw.TuningOptions(strategy=5)",
        TypeError,
        "a strategy is one of evolution, annealing, genetic, random, grid, or makes one, got",
    ),
    (
        "lw.TuningOptions(cost_model='tree')",
        ValueError,
        "unknown cost model 'tree'; there are: trees, rank, linear, roofline, random",
    ),
    ("lw.TuningOptions(cost_model=5)", TypeError, "cost_model must be a name or a cost model, got int"),
    ("lw.TuningOptions(time_limit_s='5m')", ValueError, "time_limit_s must be seconds of at least 0, got '5m'"),
    ("lw.TuningOptions(time_limit_s=float('nan'))", ValueError, "time_limit_s must be seconds of at least 0, got nan"),
    ("lw.TuningOptions(time_limit_s=-1)", ValueError, "time_limit_s must be seconds of at least 0, got -1"),
    ("lw.TuningOptions(seed='x')", ValueError, "seed must be a whole number, got 'x'"),
    ("lw.TuningOptions(records=5)", TypeError, "records must be the path of a file, got int"),
    (
        "lw.TuningOptions(callbacks=5)",
        TypeError,
        "callbacks must be a list of functions of a state and a record, got 5",
    ),
    (
        "lw.TuningOptions(callbacks=[5])",
        TypeError,
        "callbacks must be a list of functions of a state and a record, got [5]",
    ),
    ("lw.TuningOptions(batch_size=0)", ValueError, "batch_size must be a whole number of at least 1, got 0"),
    ("lw.TuningOptions(early_stopping=-1)", ValueError, "early_stopping must be a whole number of at least 1, got -1"),
    ("lw.TuningOptions(final_laps=0)", ValueError, "final_laps must be a whole number of at least 1, got 0"),
    (
        "task.apply_best('missing.jsonl')",
        RecordError,
        "cannot read record file 'missing.jsonl': No such file or directory",
    ),
    (
        "task.apply_best('text.txt')",
        RecordError,
        "text.txt holds no record: 1 line(s) skipped; line 1: not a JSON object: Expecting",
    ),
    (
        "task.apply_best('relu.onnx')",
        RecordError,
        "relu.onnx holds no record: 11 line(s) skipped; line 1: not a JSON object: Expecting",
    ),
    ("task.apply_best([])", RecordError, "no record for workload "),
    ("task.apply_best(5)", TypeError, "records are the path of a file, or a list of records, got int"),
    ("task.apply_best(None)", TypeError, "records are the path of a file, or a list of records, got NoneType"),
    (
        "task.print_best('missing.jsonl')",
        RecordError,
        "cannot read record file 'missing.jsonl': No such file or directory",
    ),
    ("task.build('nonsense')", ValueError, "schedule text 'nonsense': Unrecognized passes: ['nonsense']"),
    ("task.build(5)", TypeError, "a schedule is text, or a list of steps, got int"),
    (
        "task.build('lw-split{block=\"x\"}')",
        ValueError,
        'schedule text \'lw-split{block="x"}\': lw-split requires argument "loop"',
    ),
    ("task.render('', 'poem')", ValueError, "mode must be schedule, python, ir or source, got 'poem'"),
    (
        "task.best_record('text.txt')",
        RecordError,
        "text.txt holds no record: 1 line(s) skipped; line 1: not a JSON object: Expecting",
    ),
    ("task.nothing", AttributeError, "'SearchTask' object has no attribute 'nothing'"),
    (
        "lw.Schedule([])",
        ExpressionError,
        "there is no computed tensor in the list, only placeholders: list the outputs too",
    ),
    ("lw.Schedule(5)", TypeError, "a program is a te tensor, or a list of its inputs and outputs, got int"),
    ("lw.Schedule('matmul')", TypeError, "a program is a te tensor, or a list of its inputs and outputs, got str"),
    ("lw.Schedule(mm)", TypeError, "a program is a te tensor, or a list of its inputs and outputs, got function"),
    ("lw.Schedule([a,b,5])", TypeError, "a program is a te tensor, or a list of its inputs and outputs, got int"),
    ("lw.Schedule(task)", TypeError, "a program is a te tensor, or a list of its inputs and outputs, got SearchTask"),
    ("lw.Schedule([a,b,c], target='tpu')", ValueError, "target 'tpu': kind must be llvm, cuda or opencl, got 'tpu'"),
    (
        "sch.splitt(c)",
        AttributeError,
        "a Schedule has no 'splitt'; primitives: bind, cache_read, cache_write, compute_at,",
    ),
    (
        "sch.split('nope', 'i', [2,None])",
        ScheduleError,
        'lw-split{block="nope" loop="i" factors=2,0}: no block is called \'nope\'; blocks',
    ),
    (
        "sch.split(c, 'zz', [2,None])",
        ScheduleError,
        'lw-split{block="T_matmul" loop="zz" factors=2,0}: block \'T_matmul\' is in no loop',
    ),
    (
        "sch.split(c, 'i', 3)",
        ScheduleError,
        'lw-split{block="T_matmul" loop="i" factors=3}: at least two factors are needed, got',
    ),
    ("sch.split(c, 'i')", TypeError, "split() missing 1 required positional argument: 'factors'"),
    ("sch.split(c)", TypeError, "split() missing 2 required positional arguments: 'loop' and 'factors'"),
    ("sch.split()", TypeError, "Schedule.split() missing 1 required positional argument: 'block'"),
    ("sch.split(c, 'i', [2,None], foo=1)", TypeError, "split() got an unexpected keyword argument 'foo'"),
    (
        "sch.split(c, 'i', factors='x')",
        ScheduleError,
        'lw-split{block="T_matmul" loop="i" factors="x"}: at least two factors are needed,',
    ),
    (
        "sch.split(c, 'i', [None, None])",
        ScheduleError,
        'lw-split{block="T_matmul" loop="i" factors=0,0}: factors must be positive, and at',
    ),
    (
        "sch.reorder(c, 'i', 'zz')",
        ScheduleError,
        'lw-reorder{block="T_matmul" loops="i","zz"}: block \'T_matmul\' is in no loop \'zz\';',
    ),
    ("sch.reorder(c)", TypeError, "reorder() missing 1 required positional argument: 'loops'"),
    ("sch.fuse(c, 'i')", ScheduleError, 'lw-fuse{block="T_matmul" loops="i"}: at least two loops are needed, got 1'),
    (
        "sch.fuse(c, 'i', 'k')",
        ScheduleError,
        'lw-fuse{block="T_matmul" loops="i","k"}: each loop must be directly in the one',
    ),
    (
        "sch.vectorize(c, 5)",
        ScheduleError,
        "lw-vectorize{block=\"T_matmul\" loop=5}: block 'T_matmul' is in no loop '5'; loops",
    ),
    ("sch.vectorize('i')", TypeError, "vectorize() missing 1 required positional argument: 'loop'"),
    (
        "sch.parallel(c, 'k')",
        ScheduleError,
        'lw-parallel{block="T_matmul" loop="k"}: iterations that run at once must share',
    ),
    (
        "sch.bind(c, 'i', 'threadIdx.w')",
        ScheduleError,
        'lw-bind{block="T_matmul" loop="i" thread="threadIdx.w"}: thread must be one of',
    ),
    ("sch.bind(c, 'i')", TypeError, "bind() missing 1 required positional argument: 'thread'"),
    ("sch.unroll(c)", TypeError, "unroll() missing 1 required positional argument: 'loop'"),
    (
        "sch.compute_at(c, 'nope')",
        ScheduleError,
        'lw-compute-at{block="T_matmul" loop="nope"}: \'T_matmul\' must not be an output of',
    ),
    (
        "sch.cache_read(c, 'zz', 'shared')",
        ScheduleError,
        'lw-cache-read{block="T_matmul" buffer="zz" scope="shared"}: block \'T_matmul\' must',
    ),
    ("sch.cache_read(c)", TypeError, "cache_read() missing 1 required positional argument: 'buffer'"),
    ("sch.get_loops('nope')", ScheduleError, "get_loops: no block is called 'nope'; blocks here: T_matmul"),
    ("sch.get_loops(5)", TypeError, "a block is given by its name or its tensor, a loop by its name, got 5"),
    ("sch.get_loops(a)", ScheduleError, "get_loops: no block is called 'a'; blocks here: T_matmul"),
    ("sch.apply(5)", TypeError, "a schedule is text, a step, or a list of steps, got 5"),
    ("sch.apply('nothing')", ValueError, "schedule text 'nothing': Unrecognized passes: ['nothing']"),
    ("sch.apply(None)", TypeError, "a schedule is text, a step, or a list of steps, got None"),
    ("sch[c]", TypeError, "'Schedule' object is not subscriptable; instead of TVM's 's[stage]' use methods of"),
    ("lw.build(mm)", TypeError, "build takes te tensors, a module or a schedule, got function"),
    ("lw.build('matmul')", TypeError, "build takes te tensors, a module or a schedule, got str"),
    ("lw.build(None)", TypeError, "build takes te tensors, a module or a schedule, got NoneType"),
    ("lw.register_intrinsic('mma')", TypeError, "register_intrinsic takes an Intrinsic, got str"),
    ("lw.build(sch, target='tpu')", ValueError, "target 'tpu': kind must be llvm, cuda or opencl, got 'tpu'"),
    ("lw.build(sch, params=5)", TypeError, "params of kernel main are arrays by name, got int"),
    ("lw.build(sch, params={'nope': x})", ValueError, "kernel main: there is no constant 'nope'; it has none"),
    ("k()", TypeError, "kernel main takes 2 arrays (a, b), or 3 with its outputs (T_matmul), got 0"),
    ("k(x)", TypeError, "kernel main takes 2 arrays (a, b), or 3 with its outputs (T_matmul), got 1"),
    ("k(x,x,x,x)", TypeError, "kernel main takes 2 arrays (a, b), or 3 with its outputs (T_matmul), got 4"),
    ("k(x.astype(np.float64), x)", TypeError, "kernel main: input 'a' must be float32, got float64"),
    ("k(np.zeros((3,3),np.float32), x)", ValueError, "kernel main: input 'a' must have shape (8, 8), got (3, 3)"),
    ("k('a','b')", TypeError, "kernel main: input 'a' must be float32, got <U1"),
    ("k(None, x)", TypeError, "kernel main: input 'a' must be float32, got object"),
    ("k(a=x, b=x)", TypeError, "Kernel.__call__() got an unexpected keyword argument 'a'"),
    ("k([1,2],[3])", TypeError, "kernel main: input 'a' must be float32, got int64"),
    ("k.benchmark(number=0)", ValueError, "number must be a whole number of at least 1, got 0"),
    ("k.benchmark(repeat=0)", ValueError, "repeat must be a whole number of at least 1, got 0"),
    ("k.benchmark(min_repeat_ms=-1)", ValueError, "min_repeat_ms must be at least 0, got -1"),
    ("k.benchmark(x, repeat='5')", ValueError, "repeat must be a whole number of at least 1, got '5'"),
    ("k.nothing", AttributeError, "'CpuKernel' object has no attribute 'nothing'"),
    (
        "k.export_library('k.txt')",
        ValueError,
        "kernel main: a library is an object file (.o) or a shared one (.so), not k.txt",
    ),
    ("k.save('k.txt')", ValueError, "kernel main is for llvm: it is saved as .ll or .so, not as k.txt"),
    ("k.save('k.cu')", ValueError, "kernel main is for llvm: it is saved as .ll or .so, not as k.cu"),
    ("k.save('k')", ValueError, "kernel main is for llvm: it is saved as .ll or .so, not as k"),
    ("k.save('')", ValueError, "kernel main is for llvm: it is saved as .ll or .so, not as ."),
    ("k.save(5)", TypeError, "kernel main is saved at the path of a file, got int"),
    (
        "k.save('my kernel.so')",
        ValueError,
        "kernel main: programs name its file, in letters, digits, '.', '_', '+' and",
    ),
    ("k.save('missing/k.so')", FileNotFoundError, "No such file or directory: 'missing/k.so'"),
    ("k.save('missing/k.ll')", FileNotFoundError, "No such file or directory: 'missing/k.ll'"),
    (
        "k.save('mine.so')",
        FileExistsError,
        "it is there already and is no file of a saved kernel, so it is left alone:",
    ),
    (
        "lw.build([a, b, c], 'opencl model=mali-g610').save('k.cu')",
        ValueError,
        "kernel main is for opencl: it is saved as .cl, not as k.cu",
    ),
    (
        "lw.build([a, b, c], 'opencl model=mali-g610').save('missing/k.cl')",
        FileNotFoundError,
        "No such file or directory: 'missing/k.cl'",
    ),
    (
        "lw.build([a, b, c], 'opencl model=mali-g610').save('mine.cl')",
        FileExistsError,
        "it is there already and is no file of a saved kernel, so it is left alone:",
    ),
    ("k.export_library('text.so/k.so')", FileNotFoundError, "No such file or directory: 'text.so/k.so'"),
    ("te.placeholder(5.5)", ShapeError, "placeholder 'placeholder': extents are integers, got 5.5 in shape (5.5,)"),
    ("te.placeholder((0,4))", ShapeError, "placeholder 'placeholder': extents are at least 1, got shape (0, 4)"),
    ("te.placeholder((-1,))", ShapeError, "placeholder 'placeholder': extents are at least 1, got shape (-1,)"),
    ("te.placeholder(('a',))", ShapeError, "placeholder 'placeholder': extents are integers, got 'a' in shape ('a',)"),
    (
        "te.placeholder('abc')",
        ShapeError,
        "placeholder 'placeholder': extents are integers, got 'a' in shape ('a', 'b', 'c')",
    ),
    ("te.placeholder(None)", ShapeError, "placeholder 'placeholder': extents are integers, got None in shape (None,)"),
    (
        "te.placeholder((4,4), dtype=float)",
        ExpressionError,
        "placeholder 'placeholder': element type '<class 'float'>' is not one of float16,",
    ),
    (
        "te.placeholder((4,4), dtype=int)",
        ExpressionError,
        "placeholder 'placeholder': element type '<class 'int'>' is not one of float16,",
    ),
    (
        "te.placeholder((4,4), dtype='f32')",
        ExpressionError,
        "placeholder 'placeholder': element type 'f32' is not one of float16, bfloat16,",
    ),
    (
        "te.placeholder((4,4), dtype='float')",
        ExpressionError,
        "placeholder 'placeholder': element type 'float' is not one of float16, bfloat16,",
    ),
    (
        "te.placeholder((4,4), dtype=None)",
        ExpressionError,
        "placeholder 'placeholder': element type 'None' is not one of float16, bfloat16,",
    ),
    (
        "te.compute((8,), lambda i: np.fft.fft(A[i]))",
        TypeError,
        "a te expression is no array, and no index of one: index te tensors, and use te.exp,",
    ),
    (
        "te.compute((8,), lambda i: np.arctan2(A[i],1.0))",
        TypeError,
        "te has no np.arctan2: it has absolute, add, ceil, cos, divide, equal, exp, exp2,",
    ),
    (
        "te.compute((8,), lambda i: max(A[i], 0))",
        TypeError,
        "a te expression has no truth value while the program is written: use te.all(a, b),",
    ),
    (
        "te.compute((8,), lambda i: __import__('math').exp(A[i]))",
        TypeError,
        "a te expression has no value while the program is written: use te.exp, not math.exp",
    ),
    (
        "te.compute((8,), lambda i: A[i] if A[i] > 0 else 0)",
        TypeError,
        "a te expression has no truth value while the program is written: use te.all(a, b),",
    ),
    (
        "te.compute((8,), lambda i: A[i] and 1)",
        TypeError,
        "a te expression has no truth value while the program is written: use te.all(a, b),",
    ),
    ("te.compute((8,), lambda i: A[i].sum())", AttributeError, "'Read' object has no attribute 'sum'"),
    ("te.compute((8,), lambda i: A[i, i])", ExpressionError, "tensor 'A' of shape (8,) takes 1 indices, got 2"),
    (
        "te.compute((8,), lambda i: A[0.5])",
        ExpressionError,
        "tensor 'A' is indexed by a value of type float32, not by an integer",
    ),
    (
        "te.compute((8,), lambda i: A['x'])",
        TypeError,
        "a te expression takes numbers, expressions and tensor elements, got str",
    ),
    (
        "te.compute((8,), lambda i: A[i:])",
        TypeError,
        "a te expression takes numbers, expressions and tensor elements, got slice",
    ),
    (
        "te.compute((8,), lambda i: A[...])",
        TypeError,
        "a te expression takes numbers, expressions and tensor elements, got ellipsis",
    ),
    (
        "te.compute((8,), lambda i: 'x')",
        TypeError,
        "a te expression takes numbers, expressions and tensor elements, got str",
    ),
    (
        "te.compute((8,), lambda i: None)",
        TypeError,
        "a te expression takes numbers, expressions and tensor elements, got NoneType",
    ),
    (
        "te.compute((8,), lambda i: np.zeros(3))",
        TypeError,
        "a te expression takes numbers, expressions and tensor elements, got ndarray",
    ),
    ("te.compute((8,), lambda i: a)", TypeError, "tensor 'a' of shape (8, 8) is used as a scalar: index it, a[...]"),
    (
        "te.compute((8,), lambda: 1.0)",
        ExpressionError,
        "compute 'compute': the shape has 1 axes, the function takes 0 arguments",
    ),
    (
        "te.compute((8,), lambda i, j: A[i])",
        ExpressionError,
        "compute 'compute': the shape has 1 axes, the function takes 2 arguments",
    ),
    ("te.compute((8,), 5)", TypeError, "compute 'compute': an element is given by a function of the axes, got 5"),
    ("te.compute(8.5, lambda i: A[i])", ShapeError, "compute 'compute': extents are integers, got 8.5 in shape (8.5,)"),
    (
        "te.compute((8,), lambda i: A[i].astype('f64'))",
        ExpressionError,
        "element type 'f64' is not one of float16, bfloat16, float32, float64, int8, int16,",
    ),
    (
        "te.compute((8,), lambda i: te.sum(A[i], axis='k'))",
        ExpressionError,
        "te.sum reduces over axes made by te.reduce_axis, got 'k'",
    ),
    (
        "te.compute((8,), lambda i: te.sum(A[i], axis=0))",
        ExpressionError,
        "te.sum reduces over axes made by te.reduce_axis, got 0",
    ),
    ("te.compute((8,), lambda i: te.sum(A[i]))", TypeError, "sum() missing 1 required positional argument: 'axis'"),
    (
        "te.compute((8,), lambda i: 1 + te.sum(A[i], axis=te.reduce_axis((0,8))))",
        ExpressionError,
        "a reduction must be the whole body of a compute: name it with te.compute first,",
    ),
    (
        "te.create_module([A, te.compute((8,), lambda i: A[i + 1])])",
        ExpressionError,
        "compute 'compute': tensor 'A' is read out of bounds on axis 0: index i + 1 ranges",
    ),
    ("te.reduce_axis(8)", ExpressionError, "reduce_axis 'rv': the domain is two whole numbers, as in (0, n), got 8"),
    (
        "te.reduce_axis((0,))",
        ExpressionError,
        "reduce_axis 'rv': the domain is two whole numbers, as in (0, n), got (0,)",
    ),
    ("te.reduce_axis((0,-1))", ExpressionError, "reduce_axis 'rv': the domain [0, -1) is empty"),
    (
        "te.reduce_axis((0,8.5))",
        ExpressionError,
        "reduce_axis 'rv': the domain is two whole numbers, as in (0, n), got (0, 8.5)",
    ),
    (
        "te.reduce_axis('k')",
        ExpressionError,
        "reduce_axis 'rv': the domain is two whole numbers, as in (0, n), got 'k'",
    ),
    ("te.sum(A)", TypeError, "sum() missing 1 required positional argument: 'axis'"),
    ("te.exp('x')", TypeError, "a te expression takes numbers, expressions and tensor elements, got str"),
    ("te.create_module([c])", ExpressionError, "placeholder 'a' is read, but is not in the list: list every input"),
    (
        "te.create_module([])",
        ExpressionError,
        "there is no computed tensor in the list, only placeholders: list the outputs too",
    ),
    (
        "te.create_module([a, a])",
        ExpressionError,
        "there is no computed tensor in the list, only placeholders: list the outputs too",
    ),
    ("te.nothing", AttributeError, "module 'loopwright.te' has no attribute 'nothing'"),
    ("topi.matmul(a)", TypeError, "matmul() missing 1 required positional argument: 'b'"),
    (
        "topi.matmul(a, x)",
        TypeError,
        "a te expression is no array, and no index of one: index te tensors, and use te.exp,",
    ),
    (
        "topi.matmul(a, te.placeholder((3,3)))",
        ShapeError,
        "matmul: a (8, 8) and b (3, 3) do not fit: 8 columns against 3 rows",
    ),
    ("topi.nothing", AttributeError, "module 'loopwright.topi' has no attribute 'nothing'"),
    (
        "topi.nn.relu(x)",
        TypeError,
        "a te expression is no array, and no index of one: index te tensors, and use te.exp,",
    ),
    ("topi.nn.softmax(a, axis=7)", ShapeError, "softmax: axis 7 is out of range for a tensor with 2 axes"),
    ("a + 'x'", TypeError, "a te expression takes numbers, expressions and tensor elements, got str"),
    ("a @ b", TypeError, "tensor 'a': a product is topi.matmul(a, b)"),
    ("bool(a)", TypeError, "tensor 'a' has no truth value"),
    ("list(a)", TypeError, "tensor 'a' cannot be iterated: index it inside te.compute"),
    (
        "lw.compile('missing.onnx', T)",
        OnnxImportError,
        "model 'missing.onnx' cannot be imported: No such file or directory",
    ),
    (
        "lw.compile('text.txt', T)",
        TypeError,
        "'text.txt' is no network: give the path of a model (.onnx), or what lw.from_onnx,",
    ),
    (
        "lw.compile('resnet-18x', T)",
        TypeError,
        "'resnet-18x' is no network: give the path of a model (.onnx), or what lw.from_onnx,",
    ),
    ("lw.compile(5, T)", TypeError, "5 is no network: give the path of a model (.onnx), or what lw.from_onnx,"),
    ("lw.compile(mm, T)", TypeError, " network: give the path of a model (.onnx), or"),
    (
        "lw.compile([a,b,c], T)",
        TypeError,
        "[Tensor('a', shape=(8, 8), dtype=float32), Tensor('b', shape... is no network: give",
    ),
    (
        "lw.compile(lw.from_onnx('relu.onnx'), 'tpu')",
        ValueError,
        "target 'tpu': kind must be llvm, cuda or opencl, got 'tpu'",
    ),
    (
        "lw.compile(lw.from_onnx('relu.onnx'), T, records='missing.jsonl')",
        RecordError,
        "cannot read record file 'missing.jsonl': No such file or directory",
    ),
    (
        "lw.compile(lw.from_onnx('relu.onnx'), T, records='text.txt')",
        RecordError,
        "text.txt holds no record: 1 line(s) skipped; line 1: not a JSON object: Expecting",
    ),
    (
        "lw.compile(lw.from_onnx('relu.onnx'), T, layout='NCWH')",
        ValueError,
        "layout is one of NCHW, NHWC, auto or None, got 'NCWH'",
    ),
    (
        "lw.compile(lw.from_onnx('relu.onnx'), T, precision='int4')",
        ValueError,
        "precision is float16 or bfloat16 or tf32 or tf32x3, or None for the types that the network has, got 'int4'",
    ),
    (
        "lw.extract_tasks(lw.from_onnx('relu.onnx'), T, precision='fp16')",
        ValueError,
        "precision is float16 or bfloat16 or tf32 or tf32x3, or None for the types that the network has, got 'fp16'",
    ),
    ("lw.extract_tasks(5, T)", TypeError, "5 is no network: give the path of a model (.onnx), or what lw.from_onnx,"),
    (
        "lw.extract_tasks(lw.from_onnx('relu.onnx'), 'tpu')",
        ValueError,
        "target 'tpu': kind must be llvm, cuda or opencl, got 'tpu'",
    ),
    (
        "lw.from_onnx('missing.onnx')",
        OnnxImportError,
        "model 'missing.onnx' cannot be imported: No such file or directory",
    ),
    (
        "lw.from_onnx('text.txt')",
        OnnxImportError,
        "model 'text.txt' cannot be imported: this is no ONNX model: Error parsing message",
    ),
    (
        "lw.from_onnx(5)",
        OnnxImportError,
        "model '5' cannot be imported: expected str, bytes or os.PathLike object, not int",
    ),
    (
        "lw.from_onnx('relu.onnx', shapes={'x': 5})",
        OnnxImportError,
        "model 'relu' cannot be imported: the extents of input 'x' must be a list or a",
    ),
    (
        "lw.from_onnx('relu.onnx', shapes=5)",
        TypeError,
        "shapes are given by the names of inputs, shapes={'x': ...}, got int",
    ),
    (
        "lw.from_onnx('relu.onnx', shapes={'zz': (1,4)})",
        OnnxImportError,
        "model 'relu' cannot be imported: there is no input 'zz'; there are x",
    ),
    (
        "lw.from_onnx('relu.onnx', constants={'x': 5})",
        OnnxImportError,
        "model 'relu' cannot be imported: input 'x' has the shape [1, 4], values of shape ()",
    ),
    ("lw.from_onnx('relu.onnx', layout='x')", ValueError, "layout is one of NCHW, NHWC, auto or None, got 'x'"),
    ("compiled()", TypeError, "network relu takes 1 arrays (x), got 0"),
    ("compiled(x)", ValueError, "input 'x' must have shape (1, 4), got (8, 8)"),
    ("compiled(1,2,3)", TypeError, "network relu takes 1 arrays (x), got 3"),
    ("compiled(y=x)", ValueError, "network relu has no input 'y'; it has x"),
    ("compiled.run(x)", AttributeError, "'CpuNetwork' object has no attribute 'run'"),
    (
        "compiled['default']",
        TypeError,
        "'CpuNetwork' object is not subscriptable; instead of TVM's 'lib[\"default\"]' use",
    ),
    ("compiled.nothing", AttributeError, "'CpuNetwork' object has no attribute 'nothing'"),
    ("compiled.executor().set_input(zz=x)", ValueError, "network relu has no input 'zz'; it has x"),
    ("compiled.executor().set_input('x', x)", ValueError, "input 'x' must have shape (1, 4), got (8, 8)"),
    ("compiled.executor().get_output(7)", ValueError, "network relu has no output 7; it has y"),
    ("compiled.executor('gpu')", ValueError, "there is no CPU gpu"),
    (
        "compiled.save('text.txt')",
        FileExistsError,
        "it is there already and is no compiled network, so it is left alone:",
    ),
    (
        "compiled.export_library('x.txt')",
        ValueError,
        "network relu: a library is an object file (.o) or a shared one (.so), not x.txt",
    ),
    ("lw.load_network('missing.lw')", FileNotFoundError, "No such file or directory: 'missing.lw'"),
    ("lw.load_network('text.txt')", PackageError, "text.txt is no compiled network: File is not a zip file"),
    ("lw.load_network(5)", TypeError, "a compiled network is given by the path of its file, got int"),
    ("lw.TaskScheduler([])", ValueError, "there is no task to tune"),
    ("lw.TaskScheduler(task)", TypeError, "tasks are a list of tasks, as lw.extract_tasks gives, got"),
    ("lw.TaskScheduler([task], [1,2])", ValueError, "weights must have one entry for each of the 1 tasks, got 2"),
    ("lw.TaskScheduler([5])", TypeError, "tasks are a list of tasks, as lw.extract_tasks gives, got [5]"),
    (
        "lw.TaskScheduler([task]).tune(-3)",
        ValueError,
        "num_measure_trials must be a whole number of at least 1, got -3",
    ),
    ("lw.resolve_target('')", ValueError, "target '': kind must be llvm, cuda or opencl, got ''"),
    ("lw.resolve_target(None)", TypeError, "a target is text, as 'llvm cores=2', or a Target, got NoneType"),
    ("lw.resolve_target('cuda:0')", ValueError, "target 'cuda:0': kind must be llvm, cuda or opencl, got 'cuda:0'"),
    (
        "lw.resolve_target('llvm cores=zero')",
        ValueError,
        "target 'llvm cores=zero': option 'cores' takes a positive integer, got 'zero'",
    ),
    (
        "lw.resolve_target('nvidia/h100')",
        ValueError,
        "target 'nvidia/h100': kind must be llvm, cuda or opencl, got 'nvidia/h100'",
    ),
    ("lw.Target(cores=0)", ValueError, "target: option 'cores' takes a positive integer, got 0"),
    ("lw.Target(kind='tpu')", ValueError, "target: kind must be llvm, cuda or opencl, got 'tpu'"),
    (
        "lw.load_best('missing.jsonl')",
        RecordError,
        "cannot read record file 'missing.jsonl': No such file or directory",
    ),
    (
        "lw.load_best('text.txt')",
        RecordError,
        "text.txt holds no record: 1 line(s) skipped; line 1: not a JSON object: Expecting",
    ),
    (
        "lw.pick_best('missing.jsonl')",
        RecordError,
        "cannot read record file 'missing.jsonl': No such file or directory",
    ),
    (
        "lw.pick_best('text.txt', 'out.jsonl')",
        RecordError,
        "text.txt holds no record: 1 line(s) skipped; line 1: not a JSON object: Expecting",
    ),
    (
        "lw.apply_history_best('missing.jsonl').__enter__()",
        RecordError,
        "cannot read record file 'missing.jsonl': No such file or directory",
    ),
    (
        "lw.write_report('missing.jsonl', 'r.html')",
        RecordError,
        "cannot read record file 'missing.jsonl': No such file or directory",
    ),
    (
        "lw.write_report('text.txt', 'r.html')",
        RecordError,
        "text.txt holds no record: 1 line(s) skipped; line 1: not a JSON object: Expecting",
    ),
    ("lw.write_report([], 'r.html')", RecordError, "there is no record to report on: tune first"),
    ("lw.write_report(5, 'r.html')", TypeError, "records are the path of a file, or a list of records, got int"),
    ("lw.load_cost_model('text.txt')", CostModelError, "text.txt is no cost model: it does not begin as one"),
    ("lw.load_cost_model('missing')", FileNotFoundError, "No such file or directory: 'missing'"),
    (
        "lw.train_cost_model('missing.jsonl')",
        TypeError,
        "train_cost_model() missing 1 required positional argument: 'tasks'",
    ),
    ("lw.train_cost_model([])", TypeError, "train_cost_model() missing 1 required positional argument: 'tasks'"),
    ("lw.register_workload(5)", TypeError, "a workload is a function that returns tensors, got int 5"),
    ("lw.register_workload('reg', mm)", ValueError, "workload 'reg' is registered already, of "),
    (
        "lw.register_workload(lambda: 1)",
        TypeError,
        "a lambda has no name to be registered by: register_workload('name', function)",
    ),
    ("lw.register_sketch_rule(5)", TypeError, "register_sketch_rule: a sketch rule must be a lw.SketchRule, got int"),
    ("lw.template(5)", TypeError, "a template is a function f(cfg, *args), got int"),
    (
        "lw.TemplateTask('nothing', (), T)",
        ConfigError,
        "there is no template 'nothing' for target 'llvm'; there are: batch_matmul_cpu,",
    ),
    ("lw.TemplateTask('dense', (1,2), T)", TypeError, "dense() missing 1 required positional argument: 'in_dim'"),
    ("lw.TemplateTask(5, (), T)", TypeError, "a template is a name or a function f(cfg, *args), got int"),
    ("lw.LocalBuilder(timeout=0)", ValueError, "timeout must be above 0 seconds, got 0"),
    ("lw.LocalRunner(repeat=0)", ValueError, "repeat must be a whole number of at least 1, got 0"),
    ("lw.LocalRunner(number='x')", ValueError, "number must be a whole number of at least 1, got 'x'"),
    ("lw.measure_option(5)", TypeError, "builder must be a LocalBuilder, got int"),
    ("lw.tuners.nothing", AttributeError, "module 'loopwright.tuners' has no attribute 'nothing'"),
    ("lw.BuildLimits(nothing=1)", TypeError, "BuildLimits.__init__() got an unexpected keyword argument 'nothing'"),
    (
        "lw.ComputeDAG([a,b,c]).flops",
        TypeError,
        "ComputeDAG is of a module: of tensors it is ComputeDAG.from_tensors(...), got list",
    ),
    ("net.input('x', (0,))", ValueError, "input 'x': extents are numbers of at least 1, got (0,)"),
    (
        "net.input('z', (1,4), 'float33')",
        ValueError,
        "element type 'float33' is not one of float16, bfloat16, float32, float64, int8,",
    ),
    ("net.nothing", AttributeError, "there is no operator 'nothing'; there are abs, acos, acosh, adaptive_avg_pool,"),
    ("net.conv2d(5)", ValueError, "network 'n', operator conv2d: operator 'conv2d' takes 2 tensor(s), got 1"),
    (
        "lw.testing.network('resnet18')",
        ValueError,
        "there is no network 'resnet18'; there are resnet-18, resnet-34, resnet-50,",
    ),
    ("lw.testing.nothing", AttributeError, "module 'loopwright.testing' has no attribute 'nothing'"),
    (
        "lw.from_mlir('garbage')",
        MlirImportError,
        "the program cannot be imported: line 1: garbage cannot be read: Operation garbage",
    ),
    ("lw.from_mlir(5)", TypeError, "from_mlir takes text, a path, bytes or a module, got int"),
    ("lw.from_mlir('missing.mlir')", FileNotFoundError, "No such file or directory: 'missing.mlir'"),
    (
        "lw.onnx.InferenceSession('missing.onnx')",
        OnnxImportError,
        "model 'missing.onnx' cannot be imported: No such file or directory",
    ),
    (
        "task.tune(lw.TuningOptions(records='relu.onnx', num_measure_trials=1))",
        RecordError,
        "cannot open record file 'relu.onnx': it is there already and is no record file, so",
    ),
    (
        "task.tune(lw.TuningOptions(records='', num_measure_trials=1))",
        RecordError,
        "cannot open record file '': No such file or directory",
    ),
    ("lw.Schedule([a, b, 5])", TypeError, "a program is a te tensor, or a list of its inputs and outputs, got int"),
    ("sch.get_loops(None)", TypeError, "a block is given by its name or its tensor, a loop by its name, got None"),
    (
        "te.compute((8,), lambda i: np.add.reduce(A[i]))",
        TypeError,
        "np.add.reduce is for arrays: reduce te expressions with te.sum, te.max and their",
    ),
    (
        "te.compute((8,), lambda i: np.cbrt(A[i]))",
        TypeError,
        "te has no np.cbrt: it has absolute, add, ceil, cos, divide, equal, exp, exp2,",
    ),
    ("np.asarray(a)", TypeError, "tensor 'a' is no array: it has no values until a kernel of it runs"),
    ("float(A[0])", TypeError, "a te expression has no value while the program is written: use te.exp, not math.exp"),
    ("sch.split(c, 'i', [2.5, None])", ScheduleError, "whole numbers"),
    ("lw.Network(5)", TypeError, "a network is named by a text, got int"),
    ("lw.tuners.XGBTuner(5)", TypeError, "a tuner searches a lw.TemplateTask, got int"),
]


def names() -> dict[str, Any]:
    """Names that a user has at hand who calls something wrongly."""

    def mm(m: int = 8, n: int = 8, k: int = 8) -> list[te.Tensor]:
        a, b = te.placeholder((m, k), name="a"), te.placeholder((k, n), name="b")
        return [a, b, topi.matmul(a, b)]

    def reg(m: int, n: int) -> list[te.Tensor]:
        return [a := te.placeholder((m, n), name="a"), topi.nn.relu(a)]

    lw.register_workload("reg", reg, override=True)
    a, b, c = mm()
    known: dict[str, Any] = {"lw": lw, "te": te, "topi": topi, "np": np, "T": T, "mm": mm, "a": a, "b": b, "c": c}
    known |= {"A": te.placeholder((8,), name="A"), "x": np.zeros((8, 8), np.float32), "net": lw.Network("n")}
    known |= {"task": lw.SearchTask(mm, target=T), "sch": lw.Schedule([a, b, c], target=T)}
    return known


@pytest.fixture(scope="module")
def built(folder: Path) -> dict[str, Any]:
    """A kernel and a network that are compiled once."""
    sch = names()["sch"]
    return {"k": lw.build(sch), "compiled": lw.compile(folder / "relu.onnx", T, processes=1)}


@pytest.mark.parametrize(("text", "error", "sentence"), CALLS, ids=[text for text, _, _ in CALLS])
@pytest.mark.usefixtures("untouched")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.few(143)
def test_a_wrong_call_is_a_sentence(text: str, error: type[Exception], sentence: str, built: dict[str, Any]) -> None:
    with pytest.raises(error, match=re.escape(sentence)) as refused:
        eval(text, {**names(), **built})
    assert "Traceback" not in str(refused.value)


def test_first_guesses_work(folder: Path, monkeypatch: pytest.MonkeyPatch, built: dict[str, Any]) -> None:
    """Calls that somebody tries who has read nothing."""
    monkeypatch.chdir(folder)
    known = {**names(), **built}
    a, b, c, x = (known[name] for name in "abcx")
    tasks = [lw.SearchTask(given, target=T) for given in ([a, b, c], c)]
    assert [task.name for task in tasks] == ["T_matmul"] * 2 and tasks[0].workload_key == tasks[1].workload_key
    assert lw.SearchTask("reg", (4, 4), T).name == "reg" and lw.SearchTask("matmul", target=T).flops == 2 * 512**3
    assert lw.Schedule(c).blocks == ["T_matmul"]
    for kernel in (lw.build(c, T), lw.build([a, b, c], T)):
        np.testing.assert_allclose(kernel(x + 1, x + 1), 8.0)
    assert lw.extract_tasks("relu.onnx", T) == ([], [])
    ones = -np.ones((1, 4), np.float32)
    for out in (built["compiled"](ones), built["compiled"](x=ones)):
        np.testing.assert_array_equal(out, 0.0)
    given = te.placeholder((8,), np.float32, "given")
    assert te.placeholder(iter([4, 4]), np.dtype("int8")).dtype == "int8"
    assert (
        given[0].astype(np.float64).dtype == "float64"
        and lw.Network("n").input("i", (1,), np.float16).dtype == "float16"
    )
    made = te.compute(
        (8,),
        lambda i: np.exp(given[i]) + np.maximum(abs(given[i]), np.float32(2)) * np.float32(3),  # type: ignore[arg-type, return-value]
    )
    values = np.linspace(-4, 4, 8, dtype=np.float32)
    expected = np.exp(values) + np.maximum(abs(values), 2) * 3
    np.testing.assert_allclose(lw.build(made, T)(values), expected, rtol=1e-5)
    np.testing.assert_allclose(lw.build(np.float32(2) * np.tanh(given), T)(values), 2 * np.tanh(values), rtol=1e-5)


def test_a_number_of_trials_is_enough(quick_measuring: None) -> None:
    task = lw.SearchTask("matmul", (8, 8, 8), T)
    assert task.tune(2).state.done == lw.TaskScheduler([task]).tune(2).state.done == 2
