"""Wrong calls of targets, records, reports, cost models and templates, with the error and its sentence."""

from loopwright.search.cost_model import CostModelError
from loopwright.search.records.file import RecordError
from loopwright.search.template.knobs.knob import ConfigError

CALLS: list[tuple[str, type[Exception], str]] = [
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
    ("lw.tuners.XGBTuner(5)", TypeError, "a tuner searches a lw.TemplateTask, got int"),
]
