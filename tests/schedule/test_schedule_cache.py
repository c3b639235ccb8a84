"""cache_read and cache_write: alone, with layouts, and together with the steps that move their copies."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.universe import Universe

from loopwright.dialects.index import axis
from loopwright.dialects.interpret.loop import run_loops
from loopwright.dialects.loop import BlockOp, buffer_shape, scope_of
from loopwright.passes.analysis.nest import buffer_name, find_block
from loopwright.passes.lower.lower_te_to_loop import lower_te_to_loop
from loopwright.passes.primitive import Primitive, ScheduleError
from loopwright.passes.schedule.cache_read import CacheRead
from loopwright.passes.schedule.cache_write import CacheWrite
from loopwright.passes.schedule.compute_at import ComputeAt
from loopwright.passes.schedule.decompose_reduction import DecomposeReduction
from loopwright.passes.schedule.fuse import Fuse
from loopwright.passes.schedule.reorder import Reorder
from loopwright.passes.schedule.reverse_compute_at import ReverseComputeAt
from loopwright.passes.schedule.split import Split
from loopwright.passes.schedule.transform_layout import TransformLayout

Array = npt.NDArray[Any]

CONV = """
func.func @conv(
    %data : tensor<{c}x{h}x{h}xf32> {{lw.name = "data"}},
    %kernel : tensor<{o}x{c}x3x3xf32> {{lw.name = "kernel"}}
) -> tensor<{o}x{y}x{y}xf32> {{
  %conv = lw_te.compute "conv" [ff = {o}, yy = {y}, xx = {y}, reduce rc = {c}, reduce ry = 3, reduce rx = 3] add
      -> tensor<{o}x{y}x{y}xf32> {{
    %a = lw_te.read %data[rc, yy * {t} + ry - 1, xx * {t} + rx - 1] where (yy * {t} + ry - 1 >= 0,
      {h} - yy * {t} - ry >= 0, xx * {t} + rx - 1 >= 0, {h} - xx * {t} - rx >= 0) : tensor<{c}x{h}x{h}xf32>
    %b = lw_te.read %kernel[ff, rc, ry, rx] : tensor<{o}x{c}x3x3xf32>
    %m = arith.mulf %a, %b : f32
    lw_te.yield %m : f32
  }}
  %relu = lw_te.compute "relu" [f = {o}, y = {y}, x = {y}] -> tensor<{o}x{y}x{y}xf32> {{
    %a = lw_te.read %conv[f, y, x] : tensor<{o}x{y}x{y}xf32>
    %z = arith.constant 0.0 : f32
    %m = arith.maximumf %a, %z : f32
    lw_te.yield %m : f32
  }}
  func.return %relu : tensor<{o}x{y}x{y}xf32>
}}
"""

ARGMAX = """
func.func @argmax(%x : tensor<5x7xf32> {lw.name = "x"}) -> (tensor<5xi32>, tensor<5xf32>) {
  %i, %v = lw_te.compute "am" [r = 5, reduce k = 7] custom [-1 : i32, -1.0e30 : f32] -> tensor<5xi32>, tensor<5xf32> {
    %p = lw_te.index k : i32
    %a = lw_te.read %x[r, k] : tensor<5x7xf32>
    lw_te.yield %p, %a : i32, f32
  } combine {
  ^bb0(%i0: i32, %v0: f32, %i1: i32, %v1: f32):
    %first = arith.cmpf oge, %v0, %v1 : f32
    %si = arith.select %first, %i0, %i1 : i32
    %sv = arith.select %first, %v0, %v1 : f32
    lw_te.yield %si, %sv : i32, f32
  }
  func.return %i, %v : tensor<5xi32>, tensor<5xf32>
}
"""


def parse(text: str) -> ModuleOp:
    ctx = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        ctx.register_dialect(name, factory)
    return Parser(ctx, text).parse_module()


def conv(c: int = 3, h: int = 7, o: int = 5, stride: int = 1) -> tuple[ModuleOp, tuple[Array, Array], Array]:
    """The module on loops, its inputs, and the result that NumPy computes."""
    y = (h - 1) // stride + 1
    module = parse(CONV.format(c=c, h=h, o=o, y=y, t=stride))
    lower_te_to_loop(module)
    rng = np.random.default_rng(c + h + o)
    data, kernel = rng.standard_normal((c, h, h)), rng.standard_normal((o, c, 3, 3))
    padded = np.pad(data, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::stride, ::stride]
    return module, (data, kernel), np.maximum(np.einsum("cyxrs,ocrs->oyx", windows, kernel), 0)


def apply(module: ModuleOp, steps: Sequence[Primitive[Any]]) -> None:
    for step in steps:
        step.run(module)
        module.verify()
    text = str(module)
    assert str(parse(text)) == text


def check(module: ModuleOp, inputs: Sequence[Array], expected: Array) -> None:
    np.testing.assert_allclose(run_loops(module, inputs)[0], expected, rtol=1e-5, atol=1e-5)


SHAPES = [(3, 7, 5, 1), (2, 8, 3, 2), (1, 5, 1, 3)]

CACHED: dict[str, list[Primitive[Any]]] = {
    "whole": [CacheRead("conv", "data")],
    "chain": [CacheRead("conv", "data", "shared"), CacheRead("conv", "data_shared"), CacheRead("conv", "kernel")],
    "panel": [CacheRead("conv", "data", layout=("rc", "ry", "rx", "yy*xx"))],
    "tiles": [CacheRead("conv", "data", layout=("yy*xx/16", "rc*ry", "rx", "yy*xx%16"))],
    "panel of a panel": [
        CacheRead("conv", "data", "shared", ("rc", "ry", "rx", "yy*xx/4", "yy*xx%4")),
        CacheRead("conv", "data_packed", layout=("yy/3", "xx/2", "rc*ry*rx", "yy%3", "xx%2")),
    ],
    "kernel": [CacheRead("conv", "kernel", layout=("ff/4", "rc", "ry", "rx", "ff%4"))],
    "intermediate": [CacheRead("relu", "conv", layout=("f*y*x",)), CacheRead("relu", "conv_packed")],
    "write": [CacheWrite("conv"), CacheWrite("relu", scope="shared")],
    "write twice": [CacheWrite("conv"), CacheWrite("conv", "conv_local", "shared"), CacheWrite("conv_local")],
    "write tiles": [CacheWrite("conv", layout=("ff/4", "yy*xx/16", "ff%4", "yy*xx%16"))],
    "write tiles twice": [
        CacheWrite("conv", layout=("ff/4", "yy*xx", "ff%4")),
        CacheWrite("conv", layout=("ff", "yy*xx")),
    ],
    "all": [
        CacheWrite("conv", layout=("ff*yy", "xx")),
        CacheRead("conv", "data", layout=("yy", "xx", "rc", "ry*rx")),
        CacheRead("relu", "conv", "shared"),
        CacheRead("conv_local", "conv_local", layout=("xx", "ff/2", "yy", "ff%2")),
    ],
}


@pytest.mark.parametrize("steps", CACHED.values(), ids=CACHED.keys())
@pytest.mark.parametrize(("c", "h", "o", "stride"), SHAPES)
@pytest.mark.few(9)
def test_a_cache_changes_no_value(steps: list[Primitive[Any]], c: int, h: int, o: int, stride: int) -> None:
    module, inputs, expected = conv(c, h, o, stride)
    apply(module, steps)
    check(module, inputs, expected)


def test_names_scope_and_shape_of_what_is_made() -> None:
    module, _, _ = conv()
    apply(module, [CacheRead("conv", "data", "shared", ("rc", "ry*rx", "yy*xx/16", "yy*xx%16"), "panel")])
    copy = find_block(None, module, "panel")
    assert [a.name for a in copy.axes] == ["rc", "ry_rx", "yy_xx_o", "yy_xx_i"]
    assert buffer_shape(copy.outputs[0]) == (3, 9, 4, 16) and scope_of(copy.outputs[0]) == "shared"
    apply(module, [CacheRead("conv", "kernel", label="relu_global"), CacheWrite("relu", scope="global")])
    kernel, relu = (find_block(None, module, name) for name in ("relu_global", "relu_global2"))
    assert [a.name for a in kernel.axes] == ["ax0", "ax1", "ax2", "ax3"] and [a.name for a in relu.axes] == [
        "f",
        "y",
        "x",
    ]
    assert scope_of(relu.loads[0].buffer) == "global"


def test_a_masked_read_is_masked_in_the_copy_only() -> None:
    module, _, _ = conv()
    apply(module, [CacheRead("conv", "data", layout=("rc", "ry", "rx", "yy", "xx"))])
    copied, read = (find_block(None, module, name).loads[0] for name in ("data_packed", "conv"))
    assert len(copied.conditions) == 4 and read.conditions == ()


def test_the_padding_of_a_panel_is_zero() -> None:
    """A panel of 25 pixels in tiles of 16, made the output: the last 7 places of the second tile."""
    text = """
    func.func @f(%x : tensor<5x5xf32> {lw.name = "x"}) -> tensor<32xf32> {
      %y = lw_te.compute "y" [i = 5, j = 5] -> tensor<5x5xf32> {
        %a = lw_te.read %x[i, j] : tensor<5x5xf32>
        lw_te.yield %a : f32
      }
      %z = lw_te.compute "z" [p = 32] -> tensor<32xf32> {
        %a = lw_te.read %y[p mod 5, p mod 5] : tensor<5x5xf32>
        lw_te.yield %a : f32
      }
      func.return %z : tensor<32xf32>
    }"""
    module = parse(text)
    lower_te_to_loop(module)
    apply(module, [CacheRead("y", "x", layout=("i*j/16", "i*j%16"))])
    panel = find_block(None, module, "x_packed").outputs[0]
    reader = find_block(None, module, "z")
    reader.loads[0].operands[0] = panel
    reader.loads[0].indices = type(reader.loads[0].indices)((axis("p") // 16, axis("p") % 16))
    module.verify()
    x = np.random.default_rng(0).standard_normal((5, 5)).astype(np.float32)
    np.testing.assert_array_equal(run_loops(module, [x])[0], np.pad(x.ravel(), (0, 7)))


IM2COL: list[Primitive[Any]] = [
    Fuse("conv", ("yy", "xx")),
    Split("conv", "yy_xx", (0, 16)),
    Split("conv", "rc", (0, 2)),
    Split("conv", "ff", (0, 4)),
    Reorder("conv", ("yy_xx0", "rc0", "ff0", "rc1", "ry", "rx", "ff1", "yy_xx1")),
]


@pytest.mark.parametrize("pixels", [("yy*xx",), ("yy*xx/16", "yy*xx%16")])
@pytest.mark.parametrize(("c", "h", "o", "stride"), SHAPES)
def test_panels_computed_where_they_are_used(pixels: tuple[str, ...], c: int, h: int, o: int, stride: int) -> None:
    module, inputs, expected = conv(c, h, o, stride)
    steps: list[Primitive[Any]] = [
        CacheRead("conv", "data", layout=(pixels[0], "rc", "ry", "rx", *pixels[1:])),
        CacheRead("conv", "kernel", layout=("ff/4", "rc", "ry", "rx", "ff%4")),
        CacheWrite("conv"),
        *IM2COL,
        ComputeAt("data_packed", "rc0"),
        ComputeAt("kernel_packed", "ff0"),
        ReverseComputeAt("conv_local", "yy_xx0"),
        TransformLayout("conv", "conv_local", ("ff/4", "yy*xx", "ff%4")),
    ]
    apply(module, steps)
    check(module, inputs, expected)


def test_a_panel_of_fused_and_split_pixels_holds_a_tile_and_is_read_in_order() -> None:
    """49 pixels in tiles of 16: the copy of a tile has 16 places, and the reader's place is the pixel itself."""
    module, _, _ = conv()
    apply(module, [CacheRead("conv", "data", layout=("rc", "ry", "rx", "yy*xx")), *IM2COL])
    apply(module, [ComputeAt("data_packed", "rc0")])
    reader, copy = (find_block(None, module, name) for name in ("conv", "data_packed"))
    place = reader.loads[0].indices.data[3].substitute(reader.bound)
    assert place == axis("yy_xx0") * 16 + axis("yy_xx1")
    own = copy.enclosing_loops[2:]
    assert [loop.size for loop in own] == [2, 3, 3, 16]


def test_a_decomposed_reduction_writes_to_one_cache() -> None:
    module, inputs, expected = conv()
    apply(module, [Reorder("conv", ("rc", "xx")), Reorder("conv", ("xx", "rc"))])
    apply(module, [DecomposeReduction("conv", "rc")])
    names = {block.block_name for block in _writers(module, "conv")}
    apply(module, [CacheWrite("conv", layout=("ff/2", "yy*xx/4", "ff%2", "yy*xx%4"))])
    assert len(names) == 2 and {b.block_name for b in _writers(module, "conv_local")} == names
    check(module, inputs, expected)


def test_the_block_that_initialises_may_be_the_one_named() -> None:
    module, inputs, expected = conv()
    apply(module, [DecomposeReduction("conv", "rc")])
    (init,) = (b.block_name for b in _writers(module, "conv") if not b.is_reduction)
    apply(module, [CacheWrite(init)])
    check(module, inputs, expected)


def test_outputs_of_a_pair_are_cached_one_by_one() -> None:
    module = parse(ARGMAX)
    lower_te_to_loop(module)
    x = np.random.default_rng(1).standard_normal((5, 7)).astype(np.float32)
    first, second = _outputs(module)
    with pytest.raises(ScheduleError, match="buffer must be one that block 'am' writes"):
        CacheWrite("am").run(module)
    apply(module, [CacheWrite("am", second, layout=("r/2", "r%2")), CacheWrite("am", first, "shared")])
    index, value = run_loops(module, [x])
    np.testing.assert_array_equal(index, x.argmax(1))
    np.testing.assert_array_equal(value, x.max(1))


def test_a_scalar_is_cached() -> None:
    module = parse("""
    func.func @sum(%x : tensor<7xf32> {lw.name = "x"}) -> tensor<f32> {
      %s = lw_te.compute "s" [reduce k = 7] add -> tensor<f32> {
        %a = lw_te.read %x[k] : tensor<7xf32>
        lw_te.yield %a : f32
      }
      %t = lw_te.compute "t" [] -> tensor<f32> {
        %a = lw_te.read %s[] : tensor<f32>
        %m = arith.addf %a, %a : f32
        lw_te.yield %m : f32
      }
      func.return %t : tensor<f32>
    }""")
    lower_te_to_loop(module)
    apply(module, [CacheWrite("s"), CacheRead("t", "s", "shared"), CacheWrite("t")])
    x = np.arange(7, dtype=np.float32)
    np.testing.assert_array_equal(run_loops(module, [x])[0], 42.0)


def test_padding_that_nobody_writes_is_not_copied() -> None:
    module, inputs, expected = conv()
    apply(module, [TransformLayout("conv", "conv", ("ff/4", "yy", "xx", "ff%4"))])
    with pytest.raises(ScheduleError, match="all of 'conv' must be written, its padding is not"):
        CacheRead("relu", "conv").run(module)
    apply(module, [CacheRead("relu", "conv", layout=("f", "y", "x")), CacheWrite("conv")])
    check(module, inputs, expected)


def test_what_is_written_in_the_same_nest_is_refused_with_the_order_to_take() -> None:
    module, inputs, expected = conv()
    apply(module, [ComputeAt("conv", "y")])
    before = str(module)
    with pytest.raises(ScheduleError, match="'conv' is in the same; do this step before moving it there"):
        CacheRead("relu", "conv").run(module)
    with pytest.raises(ScheduleError, match="no block in the same nest may read 'conv', 'relu' does"):
        CacheWrite("conv").run(module)
    assert str(module) == before
    apply(module, [CacheRead("conv", "data", layout=("yy", "rc", "ry", "rx", "xx"))])
    check(module, inputs, expected)


def _writers(module: ModuleOp, buffer: str) -> list[BlockOp]:
    return [b for b in module.walk() if isinstance(b, BlockOp) and buffer in map(buffer_name, b.outputs)]


def _outputs(module: ModuleOp) -> list[str]:
    return [buffer_name(output) for output in find_block(None, module, "am").outputs]
