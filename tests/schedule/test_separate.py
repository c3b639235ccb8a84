"""Windows reduced along one axis first: results beside those at once, all candidates' nest beside the IR's."""

import numpy as np
import pytest
from replayed_features import check_replayed_features
from xdsl.parser import Parser

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.context import create_context
from loopwright.dialects.interpret.loop import run_loops
from loopwright.passes.schedule.separate import Separate


def pooled(kind: str, layout: str, k: int, stride: int, dilation: int, dtype: str) -> list[te.Tensor]:
    """A maximum or a sum over windows of images or volumes."""
    shape = {"NCHW": (2, 3, 9, 8), "NHWC": (2, 9, 8, 3), "NCDHW": (1, 2, 6, 7, 8)}[layout]
    data = te.placeholder(shape, dtype, "data")
    if kind == "max":
        return [data, topi.nn.max_pool(data, k, stride, 1, dilation, layout=layout)]
    return [data, topi.nn.avg_pool(data, k, stride, 1, layout=layout)]


@pytest.mark.parametrize("kind", ["max", "mean"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "NCDHW"])
@pytest.mark.parametrize(("k", "stride", "dilation"), [(2, 1, 1), (3, 1, 1), (3, 2, 1), (2, 3, 2), (3, 1, 2)])
def test_results_are_those_of_windows_at_once(kind: str, layout: str, k: int, stride: int, dilation: int) -> None:
    tensors = pooled(kind, layout, k, stride, dilation, "float64")
    sch = lw.Schedule(tensors)
    data = np.random.default_rng(0).standard_normal(tensors[0].shape)
    data.flat[7] = np.nan if kind == "max" else 1.0
    (expected,) = run_loops(sch.module, [data])
    block = "pool_max" if kind == "max" else "pool_sum"
    for axis in {"NCHW": ("ry",), "NHWC": ("rx",), "NCDHW": ("rz", "ry")}[layout]:
        sch.separate(block, axis)
    (found,) = run_loops(sch.module, [data])
    np.testing.assert_allclose(found, expected, rtol=0 if kind == "max" else 1e-12)


@pytest.mark.parametrize(("kernel", "axis"), [((1, 3, 2), "ry"), ((3, 1, 2), "rz"), ((3, 2, 1), "rz")])
def test_windows_of_one_plane_row_or_column(kernel: tuple[int, ...], axis: str) -> None:
    """Axes of one term are read at, too: untuned pools of 1x3x3 were a KeyError."""
    data = te.placeholder((1, 2, 6, 7, 8), "float32", "data")
    tensors = [data, topi.nn.max_pool(data, kernel, 1, layout="NCDHW")]
    values = np.random.default_rng(2).standard_normal(data.shape, dtype=np.float32)
    expected = np.lib.stride_tricks.sliding_window_view(values, kernel, (2, 3, 4)).max((-1, -2, -3))
    sch = lw.Schedule(tensors)
    sch.separate("pool_max", axis)
    sch.module.verify()
    np.testing.assert_array_equal(run_loops(sch.module, [values])[0], expected)
    task = lw.SearchTask(lambda: tensors, target="llvm")
    np.testing.assert_array_equal(task.build(task.default_schedule)(values), expected)
    template = f'lw-lower-te-to-loop,lw-separate{{block="pool_max" axis="{axis}"}}'
    check_replayed_features(tensors, f'{template},lw-split{{block="pool_max" loop="w" factors=0,<n>}}', (1, 2, 3))


def test_integers_and_a_step_after_others() -> None:
    data = te.placeholder((2, 9, 8), "int8", "data")
    sch = lw.Schedule([data, topi.nn.max_pool(data, 3, 1, layout="NHW")])
    values = np.random.default_rng(1).integers(-128, 127, (2, 9, 8)).astype(np.int8)
    (expected,) = run_loops(sch.module, [values])
    sch.separate("pool_max", "ry")
    (found,) = run_loops(sch.module, [values])
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(lw.ScheduleError, match="must slide windows along 'rx' and along others"):
        sch.separate("pool_max", "rx")


TWICE = """
func.func @twice(%x: memref<9x8xf32>, %y: memref<7x6xf32> {lw.output}, %z: memref<7x6xf32> {lw.output}) {
  lw_loop.for h in 7 { lw_loop.for w in 6 { lw_loop.for a in 3 { lw_loop.for b in 3 {
    lw_loop.block y (h in 7 = h, w in 6 = w, reduce a in 3 = a, reduce b in 3 = b)
        writes %y[h, w] : memref<7x6xf32>, %z[h, w] : memref<7x6xf32> max {
      %0 = lw_loop.load %x[h + a, w + b] : memref<9x8xf32>
      lw_te.yield %0, %0 : f32, f32
    }
  } } } }
  func.return
}
"""


def test_a_block_with_two_results_is_refused() -> None:
    """The second result would be written by none."""
    module = Parser(create_context(), TWICE).parse_module()
    module.verify()
    with pytest.raises(lw.ScheduleError, match="block 'y' must reduce what it loads to one result, and no more"):
        Separate("y", "a").apply(create_context(), module)


@pytest.mark.parametrize("kind", ["max", "mean"])
@pytest.mark.parametrize("layout", ["NCHW", "NCDHW"])
@pytest.mark.parametrize("stride", [1, 2])
def test_all_candidates_have_the_nest_that_the_step_makes(kind: str, layout: str, stride: int) -> None:
    block, last = ("pool_max", "w") if kind == "max" else ("pool_sum", "w")
    axes = ("rz", "ry") if layout == "NCDHW" else ("ry",)
    steps = "".join(f',lw-separate{{block="{block}" axis="{axis}"}}' for axis in axes)
    template = f'lw-lower-te-to-loop{steps},lw-split{{block="{block}" loop="{last}" factors=0,<n>}}'
    check_replayed_features(pooled(kind, layout, 3, stride, 1, "float32"), template, (1, 2, 3), rtol=1e-6, atol=0.0)
