"""The classic "Tuning High Performance Convolution on NVIDIA GPUs" (autotvm.template, XGBTuner), step by step.

Steps are quoted above what does them here. GPU: compiled for `cuda model=h200`; measured on the OpenCL
device of the tests.

Left out: nothing of this tutorial needs another machine.
"""

import logging
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from classic_tutorials import BUILDER, LAST_OF_RESNET, RUNNER, SMALL, layer_arrays
from outputs import one

import loopwright as lw
from loopwright import te, topi
from loopwright.search.template import registry
from loopwright.search.template.registry import Template
from loopwright.topi.testing import conv2d_nchw_python

pytestmark = pytest.mark.usefixtures("quick_measuring")

PUBLISHED_SPACE = """
ConfigSpace (len=10454400, space_map=
   0 tile_f: Split(policy=all, product=512, num_outputs=4) len=220
   1 tile_y: Split(policy=all, product=7, num_outputs=4) len=4
   2 tile_x: Split(policy=all, product=7, num_outputs=4) len=4
   3 tile_rc: Split(policy=all, product=512, num_outputs=3) len=55
   4 tile_ry: Split(policy=all, product=3, num_outputs=3) len=3
   5 tile_rx: Split(policy=all, product=3, num_outputs=3) len=3
   6 auto_unroll_max_step: OtherOption([0, 512, 1500]) len=3
   7 unroll_explicit: OtherOption([0, 1]) len=2
)
"""
PUBLISHED_BEST = (
    "[('tile_f', [8, 1, 64, 1]), ('tile_y', [1, 1, 1, 7]), ('tile_x', [1, 1, 7, 1]), ('tile_rc', [256, 2, 1]), "
    "('tile_ry', [1, 1, 3]), ('tile_rx', [3, 1, 1]), ('auto_unroll_max_step', 512), ('unroll_explicit', 0)]",
    2135585,
)
"""What "Best config:" prints, and the index behind it."""
CONFIG = (
    r"\[\('tile_f', \[\d+(?:, \d+){3}\]\), \('tile_y', \[\d+(?:, \d+){3}\]\), \('tile_x', \[\d+(?:, \d+){3}\]\), "
    r"\('tile_rc', \[\d+(?:, \d+){2}\]\), \('tile_ry', \[\d+(?:, \d+){2}\]\), \('tile_rx', \[\d+(?:, \d+){2}\]\), "
    r"\('auto_unroll_max_step', \d+\), \('unroll_explicit', [01]\)\],.*?(\d+)"
)
TRIALS = 3


def conv2d_no_batching(
    cfg: lw.Config,
    N: int,
    H: int,
    W: int,
    CO: int,
    CI: int,
    KH: int,
    KW: int,
    stride: tuple[int, int],
    padding: tuple[int, int],
) -> lw.Schedule:
    assert N == 1, "Only consider batch_size = 1 in this template"

    data = te.placeholder((N, CI, H, W), name="data")
    kernel = te.placeholder((CO, CI, KH, KW), name="kernel")
    conv = topi.nn.conv2d_nchw(data, kernel, stride, padding, dilation=1, out_dtype="float32")
    s = lw.Schedule([data, kernel, conv], target=cfg.target)  # "s = tvm.create_schedule([conv.op])"

    # "space definition begin"; "cfg = autotvm.get_config()" is the first parameter
    n, f, y, x, rc, ry, rx = s.get_loops(conv)
    cfg.define_split("tile_f", f, num_outputs=4)
    cfg.define_split("tile_y", y, num_outputs=4)
    cfg.define_split("tile_x", x, num_outputs=4)
    cfg.define_split("tile_rc", rc, num_outputs=3)
    cfg.define_split("tile_ry", ry, num_outputs=3)
    cfg.define_split("tile_rx", rx, num_outputs=3)
    cfg.define_knob("auto_unroll_max_step", [0, 512, 1500])
    cfg.define_knob("unroll_explicit", [0, 1])

    # "create cache stage": the block that computes keeps its name, what holds the result is new
    output = s.cache_write(conv, conv.name, "local")
    AA, WW = (s.cache_read(conv, name, "shared") for name in ("pad_temp", "kernel"))
    AL, WL = (s.cache_read(conv, name, "local") for name in (AA, WW))
    # "inline padding"
    s.compute_inline("pad_temp")

    # "tile and bind spatial axes", "tile reduction axes"
    bf, vf, tf, fi = cfg["tile_f"].apply(s, conv, f)
    by, vy, ty, yi = cfg["tile_y"].apply(s, conv, y)
    bx, vx, tx, xi = cfg["tile_x"].apply(s, conv, x)
    rco, rcm, rci = cfg["tile_rc"].apply(s, conv, rc)
    ryo, rym, ryi = cfg["tile_ry"].apply(s, conv, ry)
    rxo, rxm, rxi = cfg["tile_rx"].apply(s, conv, rx)
    reductions = (rco, ryo, rxo, rcm, rym, rxm, rci, ryi, rxi)
    s.reorder(conv, n, bf, by, bx, vf, vy, vx, tf, ty, tx, *reductions, fi, yi, xi)
    for loop, thread in ((bf, "blockIdx.z"), (by, "blockIdx.y"), (bx, "blockIdx.x")):
        s.bind(conv, loop, thread)
    for loop in (vf, vy, vx):
        s.bind(conv, loop, "vthread")
    for loop, thread in ((tf, "threadIdx.z"), (ty, "threadIdx.y"), (tx, "threadIdx.x")):
        s.bind(conv, loop, thread)
    s.reverse_compute_at(output, tx)  # "s[OL].compute_at(s[output], tx)", from the other side
    s.compute_at(AL, rxm)
    s.compute_at(WL, rxm)

    # "cooperative fetching"
    for load in (AA, WW):
        s.compute_at(load, rxo, unit_loops=True)
        fused = s.fuse(load, *s.get_loops(load)[-4:])
        threads = [cfg[name].size[2] for name in ("tile_f", "tile_y", "tile_x")]
        _, tz, ty, tx = s.split(load, fused, [None, *threads])
        s.bind(load, tz, "threadIdx.z")
        s.bind(load, ty, "threadIdx.y")
        s.bind(load, tx, "threadIdx.x")

    # "tune unroll"
    step, explicit = cfg["auto_unroll_max_step"].val, cfg["unroll_explicit"].val
    s.pragma(conv, n, auto_unroll_max_step=step, unroll_explicit=explicit)
    return s


@pytest.fixture(scope="module", autouse=True)
def template() -> Iterator[Template]:
    """`@autotvm.template`, of this module alone: the package has one of this name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_TEMPLATES", dict(registry._TEMPLATES))
        yield lw.template(conv2d_no_batching)


@pytest.fixture(scope="module")
def log_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tutorial") / "conv2d.log"


@pytest.fixture(scope="module")
def task(template: Template) -> lw.TemplateTask:
    # "task = autotvm.task.create(conv2d_no_batching, args=(N, H, W, CO, CI, ...), target='cuda')"
    return lw.TemplateTask("conv2d_no_batching", args=SMALL, target="opencl")


@pytest.fixture(scope="module")
def log(task: lw.TemplateTask, log_file: Path) -> str:
    """Lines that tuning writes to the log."""
    # "logging.getLogger('autotvm').setLevel(logging.DEBUG)", "addHandler(logging.StreamHandler(sys.stdout))"
    logger, stream = logging.getLogger("loopwright.tuners"), StringIO()
    handler, level = logging.StreamHandler(stream), logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    # "builder=autotvm.LocalBuilder(), runner=autotvm.LocalRunner(repeat=3, min_repeat_ms=100, timeout=4)"
    measure_option = lw.measure_option(builder=BUILDER, runner=RUNNER)
    try:
        # "XGBoostTuner is most suitable for our case", "n_trial=20", "callbacks=[log_to_file('conv2d.log')]"
        tuner = lw.tuners.XGBTuner(task)
        tuner.tune(n_trial=TRIALS, measure_option=measure_option, callbacks=[lw.tuners.callbacks.log_to_file(log_file)])
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    return stream.getvalue()


def test_the_space_is_the_published_one(template: Template) -> None:
    # "It is worth noting that the search space for a conv2d operator can be very large", "print(task.config_space)"
    task = lw.TemplateTask(template, args=LAST_OF_RESNET, target="cuda model=h200")
    # The policy that the page calls "all" has been "factors" since.
    assert str(task.config_space) == PUBLISHED_SPACE.strip().replace("policy=all", "policy=factors")
    # "[('tile_f', [8, 1, 64, 1]), ...],,None,2135585"
    config, index = PUBLISHED_BEST
    assert str(task.config_space.get(index)).startswith(config) and task.config_space.get(index).index == index
    # "tvm.build(s, arg_bufs)": the best config of the page, compiled by NVRTC
    assert "blockIdx.z" in task.build(index).source


def test_the_template_takes_one_image(template: Template) -> None:
    with pytest.raises(AssertionError, match="Only consider batch_size = 1"):
        lw.TemplateTask(template, args=(2, *SMALL[1:]), target="cuda model=h200")


def test_every_trial_is_a_line_of_the_log(log: str) -> None:
    # "No: 2   GFLOPS: 2.71/2.71   result: MeasureResult(costs=(0.0854,), error_no=0, ...)   [('tile_f', ...), ...]"
    lines = log.splitlines()
    assert len(lines) == TRIALS
    best = 0.0
    for number, line in enumerate(lines, start=1):
        found = re.fullmatch(rf"No: {number}\tGFLOPS: ([\d.]+)/([\d.]+)\tresult: \(([\d.e-]+,)\)\t{CONFIG}", line)
        assert found is not None, line
        best = max(best, float(found[1]))
        assert float(found[2]) == best


def test_the_best_config_is_found_in_the_log_file(task: lw.TemplateTask, log_file: Path, log: str) -> None:
    # "dispatch_context = autotvm.apply_history_best("conv2d.log")"
    dispatch_context = lw.apply_history_best(log_file)
    # "best_config = dispatch_context.query(task.target, task.workload)"
    record = dispatch_context.query(task.target, task.workload)
    best_config = dispatch_context.config(task)
    assert record is not None and best_config is not None
    # "print("\nBest config:")", "print(best_config)"
    found = re.fullmatch(CONFIG, str(best_config))
    assert found is not None and int(found[1]) == record.template["index"]
    assert f"{best_config}" in log


def test_history_best_is_applied_checked_and_timed(
    task: lw.TemplateTask, template: Template, log_file: Path, log: str
) -> None:
    # "with autotvm.apply_history_best('conv2d.log'):", "with tvm.target.create("cuda"):"
    with lw.apply_history_best(log_file):
        s = template(*SMALL, target=task.target)
        func = lw.build(s)
    (a_np, w_np, _), _ = layer_arrays(SMALL)
    c_np = conv2d_nchw_python(a_np, w_np, *SMALL[-2:])
    # "tvm.testing.assert_allclose(c_np, c_tvm.asnumpy(), rtol=1e-2)"
    np.testing.assert_allclose(c_np, one(func(a_np, w_np)), rtol=1e-2)
    # "evaluator = func.time_evaluator(func.entry_name, ctx, number=400)", "evaluator(a_tvm, w_tvm, c_tvm).mean"
    line = f"Time cost of this operator: {func.benchmark(a_np, w_np, number=400, repeat=1).mean:f}"
    assert re.fullmatch(r"Time cost of this operator: \d\.\d{6}", line)
