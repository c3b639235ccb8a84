"""Layouts there and back, packing, and the primitives that change where and how a buffer lies."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from effort import usual
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.passes import PassPipeline
from xdsl.universe import Universe

from loopwright.dialects.index import axis
from loopwright.dialects.interpret.loop import run_loops
from loopwright.dialects.loop import AllocOp, buffer_shape
from loopwright.passes.analysis.argument_marks import packing_of
from loopwright.passes.analysis.layout import LayoutError, parse_layout
from loopwright.passes.analysis.nest import find_block, functions
from loopwright.passes.analysis.packing import pack
from loopwright.passes.lower.lower_te_to_loop import lower_te_to_loop
from loopwright.passes.primitive import Primitive, ScheduleError
from loopwright.passes.schedule.cache_read import CacheRead
from loopwright.passes.schedule.cache_write import CacheWrite
from loopwright.passes.schedule.fuse import Fuse
from loopwright.passes.schedule.set_scope import SetScope
from loopwright.passes.schedule.split import Split
from loopwright.passes.schedule.storage_align import StorageAlign
from loopwright.passes.schedule.transform_layout import TransformLayout

Array = npt.NDArray[Any]

# A padded window that slides by `t`, then the sum of its result and the same from the other end.
WINDOW = """
func.func @window(
    %data : tensor<{c}x{h}xf32> {{lw.name = "data"}},
    %w : tensor<{o}x{c}x3xf32> {{lw.name = "w", lw.constant}}
) -> tensor<{o}x{y}xf32> {{
  %pad = lw_te.compute "pad" [ci = {c}, hi = {p}] -> tensor<{c}x{p}xf32> {{
    %a = lw_te.read %data[ci, hi - 1] where (hi - 1 >= 0, {h} - hi >= 0) : tensor<{c}x{h}xf32>
    lw_te.yield %a : f32
  }}
  %conv = lw_te.compute "conv" [co = {o}, yy = {y}, reduce rc = {c}, reduce ry = 3] add -> tensor<{o}x{y}xf32> {{
    %a = lw_te.read %pad[rc, yy * {t} + ry] : tensor<{c}x{p}xf32>
    %b = lw_te.read %w[co, rc, ry] : tensor<{o}x{c}x3xf32>
    %m = arith.mulf %a, %b : f32
    lw_te.yield %m : f32
  }}
  %out = lw_te.compute "out" [f = {o}, y = {y}] -> tensor<{o}x{y}xf32> {{
    %a = lw_te.read %conv[f, y] : tensor<{o}x{y}xf32>
    %b = lw_te.read %conv[f, {last} - y] : tensor<{o}x{y}xf32>
    %m = arith.addf %a, %b : f32
    lw_te.yield %m : f32
  }}
  func.return %out : tensor<{o}x{y}xf32>
}}
"""


def context() -> Context:
    ctx = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        ctx.register_dialect(name, factory)
    return ctx


def window(c: int = 3, h: int = 11, o: int = 5, stride: int = 2) -> tuple[ModuleOp, tuple[Array, Array], Array]:
    """The module on loops, its inputs and the result that NumPy computes."""
    y = (h - 1) // stride + 1
    text = WINDOW.format(c=c, h=h, p=h + 2, o=o, y=y, t=stride, last=y - 1)
    module = Parser(context(), text).parse_module()
    lower_te_to_loop(module)
    rng = np.random.default_rng(c * h + o)
    data, w = rng.standard_normal((c, h)), rng.standard_normal((o, c, 3))
    padded = np.pad(data, ((0, 0), (1, 1)))
    columns = np.stack([padded[:, i * stride : i * stride + 3] for i in range(y)])
    conv = np.einsum("ycr,ocr->oy", columns, w)
    return module, (data, w), conv + conv[:, ::-1]


def run(module: ModuleOp, inputs: Sequence[Array]) -> Array:
    """Return the result of the module, with packed what it wants packed; its text must parse back."""
    module.verify()
    text = str(module)
    assert str(Parser(context(), text).parse_module()) == text
    (func,) = functions(module)
    packed = [p.pack(a) if (p := packing_of(func, k)) else a for k, a in enumerate(inputs)]
    return run_loops(module, packed)[0]


@st.composite
def layouts(draw: st.DrawFn, extents: Mapping[str, int]) -> tuple[str, ...]:
    """A random valid layout of the names: products, tiles that divide or not, or more of them, in any order."""
    names = draw(st.permutations([n for n, e in extents.items() if e > 1 or draw(st.booleans())]))
    items = []
    while names:
        count = draw(st.integers(1, min(3, len(names))))
        group, names = names[:count], names[count:]
        text, size = "*".join(group), math.prod(extents[n] for n in group)
        tile = draw(st.sampled_from([0, 0, 1, 2, 3, 4, 5, 16]))
        if not tile:
            items.append(text)
        elif tile >= size and draw(st.booleans()):
            items.append(f"{text}%{tile}")
        else:
            multiple = draw(st.sampled_from(["", "", ":1", ":3"]))
            items += [f"{text}/{tile}{multiple}", f"{text} % {tile}"]
    return tuple(draw(st.permutations(items))) or (next(iter(extents)),)


@given(st.data())
@settings(max_examples=150)
def test_forward_and_inverse_undo_each_other(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    extents = {f"n{k}x": size for k, size in enumerate(sizes)}
    layout = parse_layout(data.draw(layouts(extents)), extents)
    forward = layout.forward()
    dims = [f"d{k}" for k in range(len(layout.shape))]
    inverse, inside = layout.inverse(dims), layout.padding(dims)
    places = {}
    for point in itertools.product(*map(range, sizes)):
        values = dict(zip(extents, point, strict=True))
        place = tuple(e.evaluate(values) for e in forward)
        assert all(0 <= i < n for i, n in zip(place, layout.shape, strict=True))
        assert place not in places
        places[place] = point
    for place in itertools.product(*map(range, layout.shape)):
        values = dict(zip(dims, place, strict=True))
        assert all(e.evaluate(values) >= 0 for e in inside) == (place in places)
        if place in places:
            assert tuple(inverse[n].evaluate(values) for n in extents) == places[place]
    assert layout.is_padded == (len(places) < math.prod(layout.shape))


@given(st.data())
@settings(max_examples=100)
def test_packing_is_the_forward_map(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    extents = {f"n{k}x": size for k, size in enumerate(sizes)}
    texts = data.draw(layouts(extents))
    layout = parse_layout(texts, extents)
    array = np.arange(1, math.prod(sizes) + 1).reshape(sizes)
    expected = np.zeros(layout.shape, array.dtype)
    for point in itertools.product(*map(range, sizes)):
        values = dict(zip(extents, point, strict=True))
        expected[tuple(e.evaluate(values) for e in layout.forward())] = array[point]
    packed = pack(array, texts, extents)
    assert packed.flags.c_contiguous
    np.testing.assert_array_equal(packed, expected)


def test_packing_refuses_another_shape() -> None:
    with pytest.raises(ValueError, match=r"shape \(4, 2\) is to be packed, got \(2, 4\)"):
        pack(np.zeros((2, 4)), ["a", "b"], {"a": 4, "b": 2})


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ((), "at least one item"),
        (("i+j",), "'i\\+j' is no layout item"),
        (("i/",), "no layout item"),
        (("k",), "'k' is none of i, j, one"),
        (("i*i", "j"), "'i' twice"),
        (("i/0", "i%0", "j"), "at least 1 is needed"),
        (("i/2:0", "i%2", "j"), "'i/2:0' has a multiple, which tiles have, as in i/16:4, of at least 1"),
        (("i:2", "j"), "'i:2' has a multiple, which tiles have"),
        (("i",), "'j' has extent 7 and is not covered"),
        (("i", "j", "i*j"), "covered twice, by 'i' and by 'i\\*j'"),
        (("i", "i", "j"), "'i' is covered more than once"),
        (("i", "j/2"), "'j/2' needs 'j%2' beside it"),
        (("i", "j%2"), "'j%2' needs 'j/2' beside it"),
        (("i", "j/2", "j%3"), "same tile"),
        (("i", "j/2", "j/2", "j%2"), "covered more than once"),
    ],
)
def test_what_is_no_layout_is_refused(texts: tuple[str, ...], message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        parse_layout(texts, {"i": 4, "j": 7, "one": 1})


def test_names_of_extent_one_may_be_left_out() -> None:
    layout = parse_layout(("j%8",), {"i": 1, "j": 7})
    assert layout.shape == (8,)
    assert layout.inverse(["d"])["i"].is_constant and layout.inverse(["d"])["j"] == axis("d")


STEPS = [
    TransformLayout("conv", "pad", ("d1", "rc")),
    TransformLayout("pad", "pad", ("ci/2", "hi/4", "hi%4", "ci%2")),
    TransformLayout("conv", "conv", ("co*yy/8", "co*yy%8")),
    TransformLayout("out", "conv", ("f/4", "y", "f%4")),
    TransformLayout("conv", "w", ("co/4", "rc*ry", "co%4")),
]


@pytest.mark.parametrize("steps", [*([s] for s in STEPS), [STEPS[1], STEPS[3], STEPS[4]]], ids=str)
@pytest.mark.parametrize(("c", "h", "o", "stride"), [(3, 11, 5, 2), (1, 7, 1, 1), (2, 13, 8, 3)])
@pytest.mark.few(9)
def test_a_new_layout_computes_the_same(steps: list[TransformLayout], c: int, h: int, o: int, stride: int) -> None:
    module, inputs, expected = window(c, h, o, stride)
    for step in steps:
        step.run(module)
    np.testing.assert_allclose(run(module, inputs), expected, rtol=1e-5, atol=1e-6)


def test_where_a_reader_has_no_name_for_a_dimension_its_number_is() -> None:
    module, inputs, expected = window()
    TransformLayout("conv", "pad", ("d1", "rc")).run(module)
    pad = find_block(None, module, "pad")
    assert buffer_shape(pad.outputs[0]) == (13, 3)
    assert [str(e) for e in pad.write_indices[0]] == ["hi", "ci"]
    np.testing.assert_allclose(run(module, inputs), expected, rtol=1e-5, atol=1e-6)


@given(st.data())
@settings(max_examples=20 * usual(2))
@pytest.mark.slow(1.2)
def test_random_layouts_of_everything(data: st.DataObject) -> None:
    c, h, o = (data.draw(st.integers(1, 4)), data.draw(st.integers(2, 9)), data.draw(st.integers(1, 5)))
    stride = data.draw(st.integers(1, 2))
    module, inputs, expected = window(c, h, o, stride)
    y = (h - 1) // stride + 1
    pixels = {"rc": c, "yy": y, "ry": 3}
    steps: list[Primitive[Any]] = [
        TransformLayout("conv", "conv", data.draw(layouts({"co": o, "yy": y}))),
        TransformLayout("pad", "pad", data.draw(layouts({"ci": c, "hi": h + 2}))),
        TransformLayout("conv", "w", data.draw(layouts({"co": o, "rc": c, "ry": 3}))),
        CacheRead("conv", "pad", layout=data.draw(layouts(pixels))),
        CacheRead("conv", "w_packed" if data.draw(st.booleans()) else "w", layout=("co", "rc", "ry")),
        CacheWrite("conv", layout=data.draw(layouts({"co": o, "yy": y})), scope="shared"),
        CacheWrite("out"),
    ]
    for step in data.draw(st.permutations(steps)):
        try:
            step.run(module)
        except ScheduleError as error:
            # Only what another step before it rules out may be refused.
            allowed = ("must read buffer", "must write or read buffer", "the layout must hold")
            assert any(rule in error.rule for rule in allowed), str(error)
    np.testing.assert_allclose(run(module, inputs), expected, rtol=1e-5, atol=1e-6)


def test_a_packed_constant_says_how() -> None:
    module, (_, w), _ = window()
    TransformLayout("conv", "w", ("co/4", "rc", "ry", "co%4")).run(module)
    (func,) = functions(module)
    packing = packing_of(func, 1)
    assert packing is not None
    assert packing.original_shape == (5, 3, 3) and packing.layout == ("co/4", "rc", "ry", "co%4")
    assert packing.pack(w).shape == (2, 3, 3, 4) == buffer_shape(func.body.block.args[1])
    assert func.function_type.inputs.data[1] == func.body.block.args[1].type
    assert packing_of(func, 0) is None
    with pytest.raises(ScheduleError, match="packed already, as co/4, rc, ry, co%4"):
        TransformLayout("conv", "w", ("d0", "d3", "rc", "ry")).run(module)


def test_a_layout_of_an_argument_that_changes_is_refused_with_the_step_to_take() -> None:
    module, inputs, expected = window()
    with pytest.raises(ScheduleError, match="not constant") as refused:
        TransformLayout("out", "out", ("y", "f")).run(module)
    assert refused.value.fix == CacheWrite("out", "out", layout=("y", "f"))
    refused.value.fix.run(module)
    np.testing.assert_allclose(run(module, inputs), expected, rtol=1e-5, atol=1e-6)


def test_scope_and_alignment_are_kept_by_each_other_and_printed() -> None:
    module, inputs, expected = window()
    StorageAlign("pad", 0, 8, 1).run(module)
    SetScope("pad", "shared").run(module)
    alloc = find_block(None, module, "pad").outputs[0].owner
    assert isinstance(alloc, AllocOp) and alloc.scope == "shared" and alloc.alignment == (0, 8, 1)
    np.testing.assert_allclose(run(module, inputs), expected, rtol=1e-5, atol=1e-6)


def test_steps_parse_back_from_their_text() -> None:
    steps = (
        TransformLayout("conv", "w", ("co/4", "rc*ry", "co%4")),
        TransformLayout("conv", "w", ("co*rc*ry",)),
        CacheRead("conv", "data"),
        CacheRead("conv", "data", "shared", ("yy*xx/16", "rc", "yy*xx%16"), "panel"),
        CacheRead("conv", "data", layout=("yy",)),
        CacheWrite("conv"),
        CacheWrite("conv", "conv", "global", ("co/4", "yy", "co%4"), "acc"),
        SetScope("pad", "local"),
        SetScope("pad", "local", "pad"),
        StorageAlign("pad", 0, 32, 8),
    )
    text = ",".join(map(str, steps))
    assert PassPipeline.parse_spec(Universe.get_multiverse().all_passes, text).passes == steps


@pytest.mark.slow(1.2)
def test_every_offered_step_applies() -> None:
    ctx = context()
    offered: list[Primitive[Any]] = []
    for primitive in (TransformLayout, SetScope, StorageAlign, CacheRead, CacheWrite):
        steps = primitive.schedule_space(ctx, window()[0])
        assert steps
        offered += steps
    for step in offered:
        module, inputs, expected = window()
        step.run(module)
        np.testing.assert_allclose(run(module, inputs), expected, rtol=1e-5, atol=1e-6)


def test_panels_of_loops_fused_and_split_are_read_in_order() -> None:
    """7 x 7 pixels, fused and split by 16: the place in the panel is the pixel, without division."""
    module, _, _ = window(h=7, o=7, stride=1)
    CacheWrite("conv", layout=("co*yy",)).run(module)
    Fuse("conv", ("co", "yy")).run(module)
    Split("conv", "co_yy", (0, 16)).run(module)
    block = find_block(None, module, "conv")
    (index,) = block.write_indices[0]
    assert index.substitute(block.bound) == axis("co_yy0") * 16 + axis("co_yy1")
