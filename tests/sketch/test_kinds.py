"""The kinds of computations and the roles of their axes, of operators in both layouts and of what looks like others."""

from collections.abc import Callable

import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.search.sketch.draft import Draft
from loopwright.search.structure.anchor import Anchor, anchors_in
from loopwright.search.structure.kinds import Contraction, Kind, contraction_of, kind_of_program

Tensors = list[te.Tensor]


def in_(name: str, *shape: int) -> te.Tensor:
    return te.placeholder(shape, name=name)


def of(make: Callable[..., te.Tensor], *inputs: te.Tensor) -> Tensors:
    return [*inputs, make(*inputs)]


def drafted(tensors: Tensors) -> Draft:
    return Draft.of(lw.SearchTask(tensors, target="llvm").module)


def conv(
    n: int,
    c: int,
    size: int,
    out: int,
    taps: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
) -> Tensors:
    data, kernel = in_("x", n, c, size, size), in_("w", out, c // groups, taps, taps)
    return of(lambda x, w: topi.nn.conv2d_nchw(x, w, stride, padding, dilation, groups), data, kernel)


def last(n: int, c: int, size: int, out: int, taps: int, stride: int = 1, padding: int = 0) -> Tensors:
    data, kernel = in_("x", n, size, size, c), in_("w", taps, taps, c, out)
    return of(lambda x, w: topi.nn.conv2d_nhwc(x, w, stride, padding), data, kernel)


def transposed(taps: int, stride: int, padding: int) -> Tensors:
    data, kernel = in_("x", 1, 8, 9, 9), in_("w", 8, 5, taps, taps)
    return of(lambda x, w: topi.nn.conv2d_transpose_nchw(x, w, stride, padding), data, kernel)


def several() -> Tensors:
    """Rows times three matrices, as queries, keys and values are computed."""
    rows, three, k = in_("rows", 12, 16), in_("three", 16, 3, 20), te.reduce_axis((0, 16), "k")
    return of(lambda a, b: te.compute((3, 12, 20), lambda h, i, j: te.sum(a[i, k] * b[k, h, j], k)), rows, three)


def of_differences() -> Tensors:
    """A kernel that is read backwards, as a mathematical convolution does, and has no phases."""
    x, w, k = in_("x", 40), in_("w", 5), te.reduce_axis((0, 5), "k")
    return of(lambda x, w: te.compute((36,), lambda i: te.sum(x[i - k + 4] * w[k], k)), x, w)


KINDS: dict[str, tuple[Kind, Callable[[], Tensors]]] = {
    "product": (Kind.PRODUCT, lambda: of(topi.matmul, in_("a", 12, 16), in_("b", 16, 20))),
    "products in batches": (Kind.PRODUCT, lambda: of(topi.batch_matmul, in_("a", 3, 12, 16), in_("b", 3, 16, 20))),
    "products of several matrices": (Kind.PRODUCT, several),
    "dense": (Kind.PRODUCT, lambda: of(topi.nn.dense, in_("a", 1, 16), in_("b", 20, 16))),
    "one tap": (Kind.PRODUCT, lambda: conv(1, 8, 7, 12, 1)),
    "one tap, strided": (Kind.PRODUCT, lambda: conv(1, 8, 7, 12, 1, 2)),
    "one tap, channels last": (Kind.PRODUCT, lambda: last(2, 8, 7, 12, 1, 2)),
    "one tap in groups": (Kind.PRODUCT, lambda: conv(1, 8, 7, 12, 1, 1, 0, 1, 4)),
    "convolution": (Kind.CONVOLUTION, lambda: conv(1, 8, 7, 12, 3, 1, 1)),
    "convolution, channels last": (Kind.CONVOLUTION, lambda: last(1, 8, 9, 12, 3, 2, 1)),
    "dilated convolution": (Kind.CONVOLUTION, lambda: conv(1, 8, 9, 12, 3, 1, 2, 2)),
    "grouped convolution": (Kind.CONVOLUTION, lambda: conv(1, 8, 7, 12, 3, 1, 1, 1, 4)),
    "depthwise convolution": (Kind.CONVOLUTION, lambda: conv(1, 8, 7, 8, 3, 1, 1, 1, 8)),
    "1-D convolution": (Kind.CONVOLUTION, lambda: of(topi.nn.conv1d_ncw, in_("x", 1, 8, 30), in_("w", 12, 8, 3))),
    "a kernel read backwards": (Kind.CONVOLUTION, of_differences),
    "transposed without a stride": (Kind.CONVOLUTION, lambda: transposed(3, 1, 1)),
    "transposed convolution": (Kind.TRANSPOSED, lambda: transposed(4, 2, 1)),
    "transposed, uneven phases": (Kind.TRANSPOSED, lambda: transposed(3, 2, 1)),
    "transposed, a tap a phase": (Kind.TRANSPOSED, lambda: transposed(2, 2, 0)),
    "pool": (Kind.POOL, lambda: of(lambda x: topi.nn.max_pool(x, 3, 2, 1), in_("x", 1, 8, 9, 9))),
    "sums of rows": (Kind.REDUCTION, lambda: of(lambda x: topi.sum(x, 1), in_("x", 12, 16))),
    "lookup": (Kind.GATHER, lambda: of(topi.take, in_("x", 12, 16), te.placeholder((5,), "int32", "rows"))),
    "transpose": (Kind.PERMUTATION, lambda: of(topi.transpose, in_("x", 12, 16))),
    "map": (Kind.MAP, lambda: of(topi.nn.relu, in_("x", 12, 16))),
}


@pytest.mark.parametrize("name", KINDS)
def test_each_operator_is_of_its_kind(name: str) -> None:
    kind, make = KINDS[name]
    assert kind_of_program(drafted(make()).module) is kind


def roles(make: Callable[[], Tensors]) -> tuple[Contraction, Anchor]:
    (anchor,) = anchors_in(drafted(make()).module)
    found = contraction_of(anchor)
    assert found is not None
    return found, anchor


def extents(found: Contraction) -> tuple[list[int], ...]:
    return tuple([axis.extent for axis in side] for side in (found.batch, found.rows, found.columns, found.terms))


def test_axes_have_the_roles_of_a_product_whatever_its_layout() -> None:
    assert extents(roles(KINDS["products in batches"][1])[0]) == ([3], [12], [20], [16])
    assert extents(roles(KINDS["products of several matrices"][1])[0]) == ([], [12], [3, 20], [16])
    assert extents(roles(KINDS["one tap, strided"][1])[0]) == ([], [12], [4, 4], [8])
    assert extents(roles(KINDS["one tap, channels last"][1])[0]) == ([], [2, 4, 4], [12], [8])
    assert extents(roles(KINDS["one tap in groups"][1])[0]) == ([12], [], [7, 7], [2])
    assert extents(roles(KINDS["depthwise convolution"][1])[0]) == ([8], [], [7, 7], [3, 3])


def test_windows_say_how_they_slide() -> None:
    found, anchor = roles(KINDS["dilated convolution"][1])
    slid = [(s.dimension, s.stride, s.tap.extent, s.dilation) for s in found.slides]
    assert slid == [(2, 1, 3, 2), (3, 1, 3, 2)] and not found.reads_plain
    found, anchor = roles(KINDS["transposed, a tap a phase"][1])
    assert [(s.place.extent, s.dilation, s.is_of_phases) for s in found.slides] == [(2, -2, True)] * 2
    assert {found.side_of(axis) for axis in anchor.spatial} == {found.rows, found.columns}
    assert roles(KINDS["one tap, strided"][1])[0].slides == ()
