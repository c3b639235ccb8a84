"""Tensor expressions become the te dialect: axes, guards, reductions, and refusals in one clear sentence."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from loopwright import te
from loopwright.dialects.bounds import outside
from loopwright.dialects.index import IndexExpr, axis, constant
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.target import Target, target_of
from loopwright.dialects.te import ComputeOp, ReadOp

Array = np.ndarray[Any, Any]


def module_of(*tensors: te.Tensor, **options: Any) -> ModuleOp:
    module = te.create_module(tensors, **options)
    module.verify()
    return module


def computes(module: ModuleOp) -> list[ComputeOp]:
    return [op for op in module.walk() if isinstance(op, ComputeOp)]


def body_text(tensor: te.Tensor, *inputs: te.Tensor) -> str:
    """The last compute's body, one operation a line."""
    ops = computes(module_of(*inputs, tensor))[-1].body.block.ops
    return "\n".join(re.sub(r"^%\w+ = ", "", str(op)) for op in ops)


def run(tensor: te.Tensor, *inputs: tuple[te.Tensor, Array]) -> Array:
    (result,) = run_te(module_of(*(t for t, _ in inputs), tensor), [a for _, a in inputs])
    return result


X = te.placeholder((5, 7), name="x")
XS = np.random.default_rng(3).standard_normal((5, 7)).astype(np.float32)


# -- functions, arguments and names -----------------------------------------------------------------------------------


def test_arguments_follow_the_list_and_outputs_are_the_rest() -> None:
    a, b = te.placeholder((3,), name="a"), te.placeholder((3,), "int32", name="b")
    out = te.compute((3,), lambda i: a[i] + b[i], name="c")
    text = str(module_of(b, out, a, name="f"))
    assert '@f(%b: tensor<3xi32> {lw.name = "b"}, %a: tensor<3xf32> {lw.name = "a"}) -> tensor<3xf32>' in text


def test_several_outputs_are_returned_in_order() -> None:
    first = te.compute((5, 7), lambda i, j: X[i, j] * 2.0, name="first")
    second = te.compute((5, 7), lambda i, j: first[i, j] + 1.0, name="second")
    results = run_te(module_of(X, second, first), [XS])
    np.testing.assert_array_equal(results[0], XS * 2 + 1)
    np.testing.assert_array_equal(results[1], XS * 2)


def test_a_shared_stage_is_built_once() -> None:
    shared = te.compute((5, 7), lambda i, j: te.exp(X[i, j]), name="shared")
    out = te.compute((5, 7), lambda i, j: shared[i, j] * shared[4 - i, j], name="out")
    assert [op.label.data for op in computes(module_of(X, out))] == ["shared", "out"]


def test_equal_names_are_made_unique() -> None:
    one = te.compute((5, 7), lambda i, j: X[i, j] + 1.0)
    two = te.compute((5, 7), lambda i, j: one[i, j] * 2.0)
    other = te.placeholder((5, 7), name="x")
    three = te.compute((5, 7), lambda i, j: two[i, j] + other[i, j], name="a-b c")
    module = module_of(X, other, three)
    assert [op.label.data for op in computes(module)] == ["compute", "compute1", "a_b_c"]
    assert 'lw.name = "x1"' in str(module)


def test_axis_names() -> None:
    k = te.reduce_axis((0, 7), "i")
    out = te.compute((5, 3), lambda i, *rest: te.sum(X[i, k], axis=k))
    assert [a.name for a in computes(module_of(X, out))[0].axes.data] == ["i", "i1", "i2"]
    assert [a.name for a in out.op.axis] == ["i", "i1"]
    named = te.compute((5,), lambda mod: X[mod, 0], axes=None)
    assert [a.name for a in computes(module_of(X, named))[0].axes.data] == ["mod1"]
    given_names = te.compute((5, 7), lambda *i: X[i], axes=("row", "column"))
    assert [a.name for a in computes(module_of(X, given_names))[0].axes.data] == ["row", "column"]


def test_target_goes_on_the_module() -> None:
    out = te.compute((5, 7), lambda i, j: X[i, j])
    assert target_of(module_of(X, out, target="llvm cores=3")) == Target(cores=3)
    assert "lw.target" not in module_of(X, out).attributes
    assert target_of(module_of(X, out, target=Target(cores=2))).cores == 2


def test_module_refusals() -> None:
    out = te.compute((5, 7), lambda i, j: X[i, j])
    with pytest.raises(te.ExpressionError, match="placeholder 'x' is read, but is not in the list: list every input"):
        te.create_module([out])
    with pytest.raises(
        te.ExpressionError, match="no computed tensor in the list, only placeholders: list the outputs too"
    ):
        te.create_module([X])


# -- expressions ------------------------------------------------------------------------------------------------------


def test_numbers_take_the_type_of_the_other_operand() -> None:
    half = te.placeholder((3,), "float16", name="h")
    assert te.compute((3,), lambda i: half[i] * 0.5 + 1).dtype == "float16"
    whole = te.placeholder((3,), "int8", name="w")
    assert te.compute((3,), lambda i: whole[i] + 1).dtype == "int8"
    assert te.compute((3,), lambda i: whole[i] + 1.5).dtype == "float32"
    assert te.compute((3,), lambda i: whole[i] + i).dtype == "int32"
    assert te.compute((3,), lambda i: half[i] + X[i, 0]).dtype == "float32"
    assert te.compute((3,), lambda i: 1).dtype == "int32"


def test_numpy_numbers_are_numbers() -> None:
    out = te.compute((5, 7), lambda i, j: np.float32(2) * X[i, j] + np.int64(1))  # type: ignore[operator]
    np.testing.assert_array_equal(run(out, (X, XS)), XS * 2 + 1)  # type: ignore[arg-type]  # as NumPy says of the product
    np.testing.assert_array_equal(run(np.float32(2) * X, (X, XS)), XS * 2)


def test_axes_are_values_too() -> None:
    out = te.compute((5, 7), lambda i, j: (i * 3 + j // 2 % 2).astype("float32") * 0.5)
    i, j = np.indices((5, 7))
    np.testing.assert_array_equal(run(out), ((i * 3 + j // 2 % 2) * 0.5).astype(np.float32))
    assert "lw_te.index" in body_text(out)


def test_equal_subexpressions_are_built_once() -> None:
    out = te.compute((5, 7), lambda i, j: te.exp(X[i, j]) * te.exp(X[i, j]))
    assert body_text(out, X).count("math.exp") == 1


def test_reductions_with_a_lower_bound_are_shifted() -> None:
    k = te.reduce_axis((2, 6), "k")
    out = te.compute((5,), lambda i: te.sum(X[i, k] * k, axis=k))
    assert "%x[i, k + 2]" in body_text(out, X)
    np.testing.assert_allclose(run(out, (X, XS)), (XS[:, 2:6] * np.arange(2, 6)).sum(1), rtol=1e-6)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_named_reductions(name: str) -> None:
    k, m = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 7), "m")
    out = te.compute((), lambda: getattr(te, name)(X[k, m], axis=[k, m]))
    np.testing.assert_allclose(run(out, (X, XS)), getattr(np, name)(XS.astype(np.float64)), rtol=1e-6)


def test_custom_combiner_of_one_value() -> None:
    longest = te.comm_reducer(
        lambda x, y: te.select(te.abs(x) >= te.abs(y), x, y), lambda dtype: te.const(0, dtype), "longest"
    )
    k = te.reduce_axis((0, 7), "k")
    out = te.compute((5,), lambda i: longest(X[i, k], axis=k))
    np.testing.assert_array_equal(run(out, (X, XS)), XS[np.arange(5), np.abs(XS).argmax(1)])


def test_custom_combiner_of_a_pair() -> None:
    argmax = te.comm_reducer(
        lambda x, y: (te.select(x[1] >= y[1], x[0], y[0]), te.select(x[1] >= y[1], x[1], y[1])),
        lambda index, value: (te.const(-1, index), te.min_value(value)),
        "argmax",
    )
    k = te.reduce_axis((0, 7), "k")
    index, value = te.compute((5,), lambda i: argmax((k, X[i, k]), axis=k), name="argmax")
    results = run_te(module_of(X, index, value), [XS])
    np.testing.assert_array_equal(results[0], XS.argmax(1))
    np.testing.assert_array_equal(results[1], XS.max(1))


def test_several_values_without_a_reduction() -> None:
    low, high = te.compute((5, 7), lambda i, j: (te.minimum(X[i, j], 0), te.maximum(X[i, j], 0)), name="halves")
    results = run_te(module_of(X, high, low), [XS])
    np.testing.assert_array_equal(results[0], np.maximum(XS, 0))
    np.testing.assert_array_equal(results[1], np.minimum(XS, 0))


def test_max_of_values_is_elementwise() -> None:
    out = te.compute((5, 7), lambda i, j: te.max(X[i, j], X[i, 6 - j], 0.5))
    np.testing.assert_array_equal(run(out, (X, XS)), np.maximum(np.maximum(XS, XS[:, ::-1]), np.float32(0.5)))
    assert "arith.maximumf" in body_text(out, X)


# -- guards -----------------------------------------------------------------------------------------------------------


def test_padding_is_a_masked_read() -> None:
    out = te.compute((7, 9), lambda i, j: te.select(te.all(i >= 1, i < 6, j >= 1, j < 8), X[i - 1, j - 1], 0.0))
    text = body_text(out, X)
    assert "where (i - 1 >= 0, 5 - i >= 0, j - 1 >= 0, 7 - j >= 0)" in text
    assert "select" not in text and "predicate" not in text
    np.testing.assert_array_equal(run(out, (X, XS)), np.pad(XS, 1))


def test_converted_padding_is_a_masked_read() -> None:
    out = te.compute((7, 7), lambda i, j: te.select(te.all(i >= 1, i < 6), X[i - 1, j].astype("float64"), 0))
    assert "select" not in body_text(out, X)
    np.testing.assert_array_equal(run(out, (X, XS)), np.pad(XS, [(1, 1), (0, 0)]).astype(np.float64))


def test_other_values_outside_are_a_predicate_and_a_selection() -> None:
    out = te.compute((7, 7), lambda i, j: te.select(te.all(i >= 1, i < 6), X[i - 1, j], -1.5))
    text = body_text(out, X)
    assert "lw_te.predicate (i - 1 >= 0, 5 - i >= 0)" in text and "arith.select" in text
    np.testing.assert_array_equal(run(out, (X, XS)), np.pad(XS, [(1, 1), (0, 0)], constant_values=-1.5))


def test_the_other_branch_of_one_comparison_is_guarded() -> None:
    y = te.placeholder((3, 7), name="y")
    ys = np.arange(21, dtype=np.float32).reshape(3, 7)
    out = te.compute((8, 7), lambda i, j: te.select(i < 5, X[i, j], y[i - 5, j]))
    text = body_text(out, X, y)
    assert "%x[i, j] where (4 - i >= 0)" in text and "%y[i - 5, j] where (i - 5 >= 0)" in text
    np.testing.assert_array_equal(run(out, (X, XS), (y, ys)), np.concatenate([XS, ys]))


def test_nested_guards_join() -> None:
    out = te.compute(
        (7, 9),
        lambda i, j: te.select(te.all(i >= 1, i < 6), te.select(te.all(j >= 1, j < 8), X[i - 1, j - 1], 2.0), 3.0),
    )
    inner = np.pad(XS, [(0, 0), (1, 1)], constant_values=2)
    np.testing.assert_array_equal(run(out, (X, XS)), np.pad(inner, [(1, 1), (0, 0)], constant_values=3))


def test_or_and_not_of_index_conditions_turn_the_branches() -> None:
    outer = te.compute((7, 7), lambda i, j: te.select(te.any(i < 1, i > 5), 0.0, X[i - 1, j]))
    assert "where (i - 1 >= 0, 5 - i >= 0)" in body_text(outer, X)
    turned = te.compute((7, 7), lambda i, j: te.select(~te.all(i >= 1, i <= 5), 0.0, X[i - 1, j]))
    assert body_text(turned, X) == body_text(outer, X)
    np.testing.assert_array_equal(run(turned, (X, XS)), np.pad(XS, [(1, 1), (0, 0)]))


def test_equality_is_two_inequalities() -> None:
    out = te.compute((5, 5), lambda i, j: te.select(i == j, X[i, j], 0.0))
    assert "where (i - j >= 0, j - i >= 0)" in body_text(out, X)
    other = te.compute((5, 5), lambda i, j: te.select(i != j, X[i, j], 1.0))
    np.testing.assert_array_equal(run(other, (X, XS)), np.where(np.eye(5), np.float32(1), XS[:, :5]))


def test_strides_by_mod() -> None:
    out = te.compute((9, 7), lambda i, j: te.select(i % 2 == 0, X[i // 2, j], 0.0))
    spread = np.zeros((9, 7), np.float32)
    spread[::2] = XS
    np.testing.assert_array_equal(run(out, (X, XS)), spread)
    assert "(0 - i mod 2 >= 0)" in body_text(out, X)


def test_value_conditions_compare_and_select() -> None:
    out = te.compute((5, 7), lambda i, j: te.select(te.all(X[i, j] > 0, i < 3), X[i, j], -X[i, j]))
    text = body_text(out, X)
    assert "arith.cmpf ogt" in text and "lw_te.predicate" in text and "arith.andi" in text
    rows = np.arange(5)[:, None]
    np.testing.assert_array_equal(run(out, (X, XS)), np.where((XS > 0) & (rows < 3), XS, -XS))


def test_not_of_floats_keeps_nan_apart() -> None:
    out = te.compute((5, 7), lambda i, j: te.select(~(X[i, j] < 0), 1.0, 0.0))
    data = XS.copy()
    data[0, 0] = np.nan
    np.testing.assert_array_equal(run(out, (X, data)), (~(data < 0)).astype(np.float32))


def test_a_guard_beside_a_value_condition_still_masks() -> None:
    out = te.compute((7, 7), lambda i, j: te.select(te.all(X[0, j] > 0, i < 5), X[i, j], 9.0))
    expected = np.full((7, 7), 9, np.float32)
    expected[:5] = np.where(XS[0] > 0, XS, 9)
    np.testing.assert_array_equal(run(out, (X, XS)), expected)


def test_conditions_that_always_or_never_hold_disappear() -> None:
    always = te.compute((5, 7), lambda i, j: te.select(te.all(i >= 0, j < 7), X[i, j], 0.0))
    assert "where" not in body_text(always, X)
    never = te.compute((5, 7), lambda i, j: te.select(i > 4, X[i + 9, j], 2.0))
    assert body_text(never, X) == "arith.constant 2.000000e+00 : f32\nlw_te.yield %0 : f32"


# -- refusals ---------------------------------------------------------------------------------------------------------

K = te.reduce_axis((0, 7), "k")
REFUSALS: list[tuple[str, Callable[[], Any]]] = [
    (
        r"compute 'c': tensor 'x' is read out of bounds on axis 1: index j \+ 1 ranges over \[1, 7\], "
        r"the shape is \(5, 7\)",
        lambda: te.compute((5, 7), lambda i, j: X[i, j + 1], "c"),
    ),
    (
        r"read out of bounds on axis 0: index i - 1 ranges over \[-1, 4\]",
        lambda: te.compute((7, 7), lambda i, j: te.select(i < 6, X[i - 1, j], 0.0)),
    ),
    (
        "the condition that guards the read of 'x' .* is no conjunction of affine comparisons",
        lambda: te.compute((6, 7), lambda i, j: te.select(X[0, j] > 0, X[i, j], 0.0)),
    ),
    (
        "the condition that guards the read of 'x' .* is no conjunction of affine comparisons",
        lambda: te.compute((6, 7), lambda i, j: te.select(i * j < 20, X[i, j], 1.0)),
    ),
    (
        "index 1 of tensor 'x' is not affine with floordiv and mod by constants",
        lambda: te.compute((5, 7), lambda i, j: X[i, i * j]),
    ),
    (
        "axis 'k' is not one of its axes, nor one that it reduces over",
        lambda: te.compute((5,), lambda i: X[i, K], "c"),
    ),
    ("a reduction must be the whole body", lambda: te.compute((5,), lambda i: te.sum(X[i, K], axis=K) + 1)),
    ("reduces over axes made by te.reduce_axis", lambda: te.compute((5,), lambda i: te.sum(X[i, 0], axis=i))),
    ("takes 2 indices, got 1", lambda: te.compute((5,), lambda i: X[i])),
    ("indexed by a value of type float32", lambda: te.compute((5,), lambda i: X[i, X[0, 0]])),
    ("the shape has 2 axes, the function takes 1 arguments", lambda: te.compute((5, 7), lambda i: X[i, 0])),
    ("'div' is defined on floats, got int32: write a // b", lambda: te.compute((5,), lambda i: i / 2)),
    ("'floordiv' is defined on integers", lambda: te.compute((5,), lambda i: X[i, 0] // 2)),
    ("'exp' is defined on floats, got int32", lambda: te.compute((5,), lambda i: te.exp(i))),
    ("the number 300 does not fit int8", lambda: te.compute((5,), lambda i: X[i, 0].astype("int8") + 300)),
    ("'lt' compares numbers", lambda: te.compute((5,), lambda i: (X[i, 0] > 0) < (X[i, 1] > 0))),
    ("'add' is arithmetic, got two conditions", lambda: te.compute((5,), lambda i: (X[i, 0] > 0) + (X[i, 1] > 0))),
    ("select takes a condition first", lambda: te.compute((5,), lambda i: te.select(i, 1, 2))),
    (r"extents are at least 1, got shape \(5, 0\)", lambda: te.placeholder((5, 0))),
    ("element type 'float8' is not one of", lambda: te.placeholder((5,), "float8")),
    (r"the domain \[3, 3\) is empty", lambda: te.reduce_axis((3, 3))),
    (
        "combiner 'bad' reduces 2 value",
        lambda: te.compute(
            (5,), lambda i: te.comm_reducer(lambda x, y: x[0], lambda a, b: (0, 0), "bad")((K, X[i, K]), axis=K)
        ),
    ),
]


@pytest.mark.parametrize("number", range(len(REFUSALS)))
def test_refusals(number: int) -> None:
    message, build = REFUSALS[number]
    with pytest.raises(te.ExpressionError, match=message) as caught:
        te.create_module([X, build()])
    assert "\n" not in str(caught.value)


def test_misuse_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=re.escape("use te.all(a, b), te.any(a, b) and te.select")):
        te.compute((5,), lambda i: 1.0 if 0 <= i < 3 else 2.0)
    with pytest.raises(TypeError, match="'x' of shape \\(5, 7\\) is used as a scalar"):
        te.compute((5,), lambda i: X[i, 0] + X)
    with pytest.raises(TypeError, match="cannot be iterated"):
        list(X)
    with pytest.raises(TypeError, match="got str"):
        te.compute((5,), lambda i: X[i, 0] + "1")  # type: ignore[operator, arg-type, return-value]


# -- bounds -----------------------------------------------------------------------------------------------------------

NAMES = ("i", "j", "k")


@st.composite
def index_expressions(draw: st.DrawFn) -> IndexExpr:
    expr = constant(draw(st.integers(-6, 6)))
    for name in NAMES:
        expr = expr + axis(name) * draw(st.integers(-3, 3))
    kind = draw(st.integers(0, 3))
    divisor = draw(st.integers(2, 5))
    if kind == 1:
        expr = expr // divisor
    if kind == 2:
        expr = expr % divisor + axis(draw(st.sampled_from(NAMES)))
    return expr


@given(
    index_expressions(),
    st.lists(index_expressions(), max_size=3),
    st.integers(1, 9),
    st.tuples(*(st.integers(1, 6) for _ in NAMES)),
)
def test_reads_shown_to_be_inside_are_inside(
    index: IndexExpr, conditions: list[IndexExpr], extent: int, extents: tuple[int, ...]
) -> None:
    ranges = {n: (0, e - 1) for n, e in zip(NAMES, extents, strict=True)}
    points = [dict(zip(NAMES, p, strict=True)) for p in np.ndindex(*extents)]
    reached = [index.evaluate(p) for p in points if all(c.evaluate(p) >= 0 for c in conditions)]
    inside = all(0 <= v < extent for v in reached)
    found = outside(index, extent, conditions, ranges)
    assert (found is None) == inside
    if found is not None:
        assert found == (min(reached), max(reached))


def test_unrelated_guards_do_not_hide_a_proof() -> None:
    """That 2 (i + j) <= 9 keeps i + j below 5 is only seen point by point; the guards of large axes must not count."""
    x = te.placeholder((5, 4000, 4000), name="x")
    out = te.compute(
        (7, 3, 4002, 4002),
        lambda i, j, y, z: te.select(
            te.all((i + j) * 2 <= 9, y >= 1, y <= 4000, z >= 1, z <= 4000), x[i + j, y - 1, z - 1], 0.0
        ),
    )
    module_of(x, out)


def test_large_domains_are_decided_by_intervals() -> None:
    big = te.placeholder((4096, 4096), name="big")
    pad = te.compute(
        (4098, 4098),
        lambda i, j: te.select(te.all(i >= 1, i <= 4096, j >= 1, j <= 4096), big[i - 1, j - 1], 0.0),
    )
    (read,) = [op for op in computes(module_of(big, pad))[0].body.block.ops if isinstance(op, ReadOp)]
    assert len(read.conditions) == 4
