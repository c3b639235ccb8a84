"""Operators on complex numbers as operators on pairs of real ones, (..., 2): real and imaginary parts last."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from inspect import isfunction
from typing import Any, Protocol

from .errors import UnsupportedNode
from .fx import FxNode
from .node import aten

Arguments = Mapping[str, Any]
Convert = Callable[["Pairs", FxNode, Arguments], FxNode]
"""From a graph, an operator's node and its arguments by name to its result: pairs, or real numbers."""


class Pairs(Protocol):
    """A graph to which operators on pairs are added."""

    @property
    def aten(self) -> Any:
        """PyTorch's operators."""

    def of(self, node: FxNode) -> FxNode:
        """Return the pairs of a tensor."""

    def call(self, operator: Any, *arguments: Any, **options: Any) -> FxNode:
        """Add a node."""

    def constant(self, values: Any, like: Any) -> FxNode:
        """Add a tensor of known values, of the type and on the device of another."""


# -- parts ------------------------------------------------------------------------------------------------------------


def _parts(pairs: Pairs, node: FxNode) -> tuple[FxNode, FxNode]:
    """The real and the imaginary parts of pairs."""
    select = pairs.aten.select.int
    return pairs.call(select, node, -1, 0), pairs.call(select, node, -1, 1)


def joined(pairs: Pairs, real: FxNode, imaginary: FxNode, shape: Any) -> FxNode:
    """Return pairs of two parts, which are brought to a shape."""
    wide = [pairs.call(pairs.aten.expand.default, part, [*shape]) for part in (real, imaginary)]
    return pairs.call(pairs.aten.cat.default, [pairs.call(pairs.aten.unsqueeze.default, p, -1) for p in wide], -1)


def _axis(node: FxNode, axis: int, more: int = 0) -> int:
    """An axis of a complex tensor, counted from the first."""
    return int(axis % max(node.meta["val"].ndim + more, 1))


def _is_complex(given: Any) -> bool:
    return isinstance(given, complex) or (hasattr(given, "meta") and bool(given.meta["val"].is_complex()))


@aten("view_as_complex.default")
def _seen_as_complex(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    return given["self"]


@aten("complex.default")
def _of_parts(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    return joined(pairs, given["real"], given["imag"], node.meta["val"].shape)


@aten("polar.default")
def _polar(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    turned = [pairs.call(way, given["angle"]) for way in (pairs.aten.cos.default, pairs.aten.sin.default)]
    parts = [pairs.call(pairs.aten.mul.Tensor, given["abs"], each) for each in turned]
    return joined(pairs, parts[0], parts[1], node.meta["val"].shape)


@aten("_to_copy.default")
def _cast(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    return pairs.call(pairs.aten._to_copy.default, pairs.of(given["self"]), dtype=node.meta["val"].dtype.to_real())


@aten("view_as_real.default")
def _seen_as_real(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    return pairs.of(given["self"])


@aten("abs.default")
def _size(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    squares = pairs.call(pairs.aten.square.default, pairs.of(given["self"]))
    return pairs.call(pairs.aten.sqrt.default, pairs.call(pairs.aten.sum.dim_IntList, squares, [-1]))


@aten("angle.default")
def _angle(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    real, imaginary = _parts(pairs, pairs.of(given["self"]))
    return pairs.call(pairs.aten.atan2.default, imaginary, real)


# -- arithmetic -------------------------------------------------------------------------------------------------------


@aten("_conj.default", "_conj_physical.default", "conj_physical.default")
def _conjugate(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    real, imaginary = _parts(pairs, pairs.of(given["self"]))
    return joined(pairs, real, pairs.call(pairs.aten.neg.default, imaginary), node.meta["val"].shape)


@aten("mul.Tensor", "mul.Scalar")
def _multiplied(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    a, b = given["self"], given["other"]
    if not _is_complex(a):
        a, b = b, a
    if isinstance(a, complex) and not _is_complex(b):
        parts = [pairs.call(pairs.aten.mul.Tensor, b, part) for part in (a.real, a.imag)]
        return joined(pairs, parts[0], parts[1], node.meta["val"].shape)
    if not _is_complex(b):
        return pairs.call(pairs.aten.mul.Tensor, pairs.of(a), _beside_pairs(pairs, b))
    if isinstance(b, complex):
        return _product(pairs, node, _parts(pairs, pairs.of(a)), (b.real, b.imag))
    return _product(pairs, node, _parts(pairs, pairs.of(a)), _parts(pairs, pairs.of(b)))


def _beside_pairs(pairs: Pairs, given: Any) -> Any:
    """A real tensor, or number, that both parts are multiplied with."""
    return pairs.call(pairs.aten.unsqueeze.default, given, -1) if hasattr(given, "meta") else given


def _product(pairs: Pairs, node: FxNode, a: tuple[Any, Any], b: tuple[Any, Any]) -> FxNode:
    multiply = pairs.aten.mul.Tensor
    real = pairs.call(pairs.aten.sub.Tensor, pairs.call(multiply, a[0], b[0]), pairs.call(multiply, a[1], b[1]))
    imaginary = pairs.call(pairs.aten.add.Tensor, pairs.call(multiply, a[0], b[1]), pairs.call(multiply, a[1], b[0]))
    return joined(pairs, real, imaginary, node.meta["val"].shape)


@aten("div.Tensor", "div.Scalar")
def _divided(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    x, by = given["self"], given["other"]
    if isinstance(by, complex):
        return _product(pairs, node, _parts(pairs, pairs.of(x)), ((1 / by).real, (1 / by).imag))
    if _is_complex(by):
        return _product(pairs, node, _parts(pairs, pairs.of(x)), _inverse(pairs, by))
    return pairs.call(pairs.aten.div.Tensor, pairs.of(x), _beside_pairs(pairs, by))


@aten("reciprocal.default")
def _inverted(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    return joined(pairs, *_inverse(pairs, given["self"]), node.meta["val"].shape)


def _inverse(pairs: Pairs, x: FxNode) -> tuple[FxNode, FxNode]:
    """The parts of 1 / x, by the larger part, as its square may have no place in the type (Smith, 1962)."""
    aten_, (real, imaginary) = pairs.aten, _parts(pairs, pairs.of(x))
    ge, select = aten_.ge.Tensor, aten_.where.self
    is_real = pairs.call(ge, *(pairs.call(aten_.abs.default, part) for part in (real, imaginary)))
    large, small = (pairs.call(select, is_real, *both) for both in ((real, imaginary), (imaginary, real)))
    ratio = pairs.call(aten_.div.Tensor, small, large)
    size = pairs.call(aten_.add.Tensor, large, pairs.call(aten_.mul.Tensor, small, ratio))
    one, other = pairs.call(aten_.reciprocal.default, size), pairs.call(aten_.div.Tensor, ratio, size)
    parts = pairs.call(select, is_real, one, other), pairs.call(select, is_real, other, one)
    return parts[0], pairs.call(aten_.neg.default, parts[1])


@aten("pow.Tensor_Scalar")
def _power(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    if given["exponent"] != 2:
        raise UnsupportedNode("powers of complex numbers but the second stay PyTorch's")
    parts = _parts(pairs, pairs.of(given["self"]))
    return _product(pairs, node, parts, parts)


@aten("add.Tensor", "sub.Tensor", "add.Scalar", "sub.Scalar")
def _added(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    x, other = given["self"], given["other"]
    if hasattr(x, "meta") and hasattr(other, "meta"):
        return pairs.call(node.target, pairs.of(x), pairs.of(other), alpha=given["alpha"])
    if not hasattr(x, "meta"):
        raise UnsupportedNode("sums of numbers and complex tensors stay PyTorch's")
    numbers = complex(other * given["alpha"])
    both = zip(_parts(pairs, pairs.of(x)), (numbers.real, numbers.imag), strict=True)
    real, imaginary = (pairs.call(node.target, part, number) for part, number in both)
    return joined(pairs, real, imaginary, node.meta["val"].shape)


@aten("neg.default", "clone.default", "alias.default", "detach.default", "lift_fresh_copy.default")
def _as_both(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    """Operators that do with each part as with the whole."""
    return pairs.call(node.target, pairs.of(given["self"]))


@aten("exp.default")
def _exponential(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    real, imaginary = _parts(pairs, pairs.of(given["self"]))
    size = pairs.call(pairs.aten.exp.default, real)
    turned = [pairs.call(way, imaginary) for way in (pairs.aten.cos.default, pairs.aten.sin.default)]
    parts = [pairs.call(pairs.aten.mul.Tensor, size, each) for each in turned]
    return joined(pairs, parts[0], parts[1], node.meta["val"].shape)


@aten("sum.dim_IntList", "mean.dim")
def _reduced(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    x = given["self"]
    axes = [_axis(x, axis) for axis in given["dim"] or range(x.meta["val"].ndim)]
    return pairs.call(node.target, pairs.of(x), axes, given["keepdim"])


@aten("mm.default", "bmm.default")
def _matrix_product(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    """One product of twice the width: rows of pairs, with each pair of a column beside itself turned by 90 degrees."""
    aten_, a, b = pairs.aten, given["self"], given["mat2"]
    *batch, m, n = node.meta["val"].shape
    depth = a.meta["val"].shape[-1]
    real, imaginary = _parts(pairs, pairs.of(b))
    shape = b.meta["val"].shape
    turned = joined(pairs, pairs.call(aten_.neg.default, imaginary), real, shape)
    rows = [pairs.call(aten_.unsqueeze.default, each, -3) for each in (joined(pairs, real, imaginary, shape), turned)]
    wide = pairs.call(aten_.reshape.default, pairs.call(aten_.cat.default, rows, -3), [*batch, 2 * depth, 2 * n])
    flat = pairs.call(aten_.reshape.default, pairs.of(a), [*batch, m, 2 * depth])
    return pairs.call(aten_.reshape.default, pairs.call(node.target, flat, wide), [*batch, m, n, 2])


# -- movement ---------------------------------------------------------------------------------------------------------


@aten("permute.default")
def _permuted(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    x, rank = given["self"], node.meta["val"].ndim
    return pairs.call(node.target, pairs.of(x), [*(_axis(x, axis) for axis in given["dims"]), rank])


@aten("view.default", "_unsafe_view.default", "reshape.default")
def _reshaped(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    return pairs.call(pairs.aten.reshape.default, pairs.of(given["self"]), [*node.meta["val"].shape, 2])


@aten("expand.default")
def _stretched(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    return pairs.call(node.target, pairs.of(given["self"]), [*node.meta["val"].shape, 2])


@aten("unsqueeze.default")
def _with_axis(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    return pairs.call(node.target, pairs.of(given["self"]), _axis(given["self"], given["dim"], 1))


@aten("squeeze.dim", "squeeze.dims", "squeeze.default")
def _without_axes(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    return pairs.call(pairs.aten.reshape.default, pairs.of(given["self"]), [*node.meta["val"].shape, 2])


@aten("slice.Tensor", "select.int")
def _cut(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    x = given["self"]
    rest = [value for name, value in given.items() if name not in ("self", "dim")]
    return pairs.call(node.target, pairs.of(x), _axis(x, given["dim"]), *rest)


@aten("slice_scatter.default", "select_scatter.default")
def _put(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    x = given["self"]
    rest = [value for name, value in given.items() if name not in ("self", "src", "dim")]
    return pairs.call(node.target, pairs.of(x), pairs.of(given["src"]), _axis(x, given["dim"]), *rest)


@aten("copy.default")
def _copied(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    source = pairs.call(pairs.aten._to_copy.default, pairs.of(given["src"]), dtype=node.meta["val"].dtype.to_real())
    return pairs.call(pairs.aten.expand.default, source, [*node.meta["val"].shape, 2])


@aten("cat.default")
def _side_by_side(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    return pairs.call(node.target, [pairs.of(each) for each in given["tensors"]], _axis(node, given["dim"]))


@aten("constant_pad_nd.default")
def _padded(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    if given["value"]:
        raise UnsupportedNode("complex tensors padded with numbers stay PyTorch's")
    return pairs.call(node.target, pairs.of(given["self"]), [0, 0, *given["pad"]])


@aten("flip.default")
def _flipped(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    x = given["self"]
    return pairs.call(node.target, pairs.of(x), [_axis(x, axis) for axis in given["dims"]])


@aten("where.self")
def _chosen(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    condition = _beside_pairs(pairs, given["condition"])
    return pairs.call(node.target, condition, pairs.of(given["self"]), pairs.of(given["other"]))


@aten("index.Tensor")
def _indexed(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    return pairs.call(node.target, pairs.of(given["self"]), given["indices"])


@aten("full.default", "full_like.default", "zeros_like.default")
def _filled(pairs: Pairs, node: FxNode, given: Arguments) -> FxNode:
    if given.get("fill_value"):
        raise UnsupportedNode("complex tensors of one number stay PyTorch's")
    kind = node.meta["val"]
    return pairs.call(pairs.aten.full.default, [*kind.shape, 2], 0.0, dtype=kind.dtype.to_real(), device=kind.device)


_READERS = (_seen_as_real, _size, _angle)


@cache
def converters_to_pairs() -> Mapping[str, Convert]:
    """Return the converters of operators with complex results, by name and overload."""
    return _named(lambda convert: convert not in _READERS)


@cache
def converters_from_pairs() -> Mapping[str, Convert]:
    """Return the converters of operators that give real numbers for complex ones, by name and overload."""
    return _named(lambda convert: convert in _READERS)


def _named(chosen: Callable[[Any], bool]) -> dict[str, Convert]:
    return {name: f for f in globals().values() if isfunction(f) and chosen(f) for name in getattr(f, "aten", ())}
