"""The values of a program by NumPy alone, each with a bound on how far a right kernel may be from it.

Floats are evaluated in the widest type NumPy has, and the bound grows by what each operation of the program's own type
may lose; a value that the type holds exactly, made of such values, has the bound 0. Where a decision (a comparison, a
floor, the place of a maximum) could fall either way within the bounds, the bound becomes infinite: anything is right.
Integers wrap, and have the bound 0 unless such a decision is behind them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from program_tree import FLOATS, UNSIGNED, Input, Node, Program, Source, Stage

Array = np.ndarray[Any, Any]
WIDE = np.longdouble
_FUNCTION_ULPS = 16
"""Units of the last place that polynomials of exponentials and the like may lose."""
_QUANTA = [2.0**-k for k in range(13)]


def numpy_type(dtype: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)


@dataclass(frozen=True)
class Value:
    """Numbers of one type, floats among them in WIDE, and how far from each a right result may be."""

    v: Array
    e: Array
    dtype: str


def evaluate(program: Program, inputs: Sequence[Array]) -> list[Value]:
    """The outputs of a program."""
    known: dict[Source, Value] = {}
    with np.errstate(all="ignore"):
        for item, array in zip(program.inputs, inputs, strict=True):
            held = array.astype(WIDE) if item.dtype in FLOATS else array
            known[Source(item)] = Value(held, np.zeros(array.shape), item.dtype)
        for stage in program.stages:
            for k, value in enumerate(_stage(stage, known)):
                known[Source(stage, k)] = value
    return [known[output] for output in program.outputs]


def random_inputs(program: Program, seed: int) -> list[Array]:
    """Small multiples of 1/4, of which sums are mostly exact; integers small, or anything where an input is wide."""
    rng = np.random.default_rng(seed)
    return [_random(item, rng) for item in program.inputs]


def _random(item: Input, rng: np.random.Generator) -> Array:
    kind = numpy_type(item.dtype)
    if item.dtype == "bool":
        return rng.integers(0, 2, item.shape).astype(kind)
    if item.dtype in FLOATS:
        steps = 4 if kind.itemsize == 2 else 16
        return (rng.integers(-steps, steps + 1, item.shape) / 4).astype(kind)
    low, high = (0 if item.dtype in UNSIGNED else -8), 9
    if item.wide:
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        return rng.integers(low, high, item.shape, kind, endpoint=True)
    return rng.integers(low, high, item.shape).astype(kind)


def wrong(value: Value, got: Array) -> tuple[int, ...] | None:
    """The first place where a result is not within the bounds."""
    if got.dtype != numpy_type(value.dtype) or got.shape != value.v.shape:
        return ()
    with np.errstate(all="ignore"):
        if value.dtype in FLOATS:
            near = np.abs(got.astype(WIDE) - value.v) <= value.e
            right = near | (got.astype(WIDE) == value.v)
        else:
            right = got == value.v
    bad = ~(right | np.isinf(value.e))
    return tuple(int(i) for i in np.argwhere(bad)[0]) if bad.any() else None


# -- stages -----------------------------------------------------------------------------------------------------------


def _stage(stage: Stage, known: Mapping[Source, Value]) -> list[Value]:
    ranges = [(name, 0, extent) for name, extent in stage.axes] + list(stage.reduced)
    shape = tuple(extent for *_, extent in ranges)
    grid = {
        name: (low + np.arange(extent)).reshape([-1 if k == d else 1 for k in range(len(ranges))])
        for d, (name, low, extent) in enumerate(ranges)
    }
    bodies = [_whole(evaluate_node(node, grid, known), shape) for node in stage.bodies]
    if not stage.combiner:
        return bodies
    rank = len(stage.axes)
    flat = [Value(_last(b.v, rank), _last(b.e, rank), b.dtype) for b in bodies]
    return _place(stage.combiner, *flat) if len(flat) == 2 else [reduced(stage.combiner, flat[0])]


def _whole(value: Value, shape: tuple[int, ...]) -> Value:
    return Value(np.broadcast_to(value.v, shape), np.broadcast_to(value.e, shape), value.dtype)


def _last(array: Array, rank: int) -> Array:
    return array.reshape(*array.shape[:rank], -1)


def reduced(combiner: str, terms: Value) -> Value:
    """The terms along the last axis combined, in whichever order."""
    kind = numpy_type(terms.dtype)
    if combiner in ("max", "min"):
        best = np.max if combiner == "max" else np.min
        return Value(best(terms.v, axis=-1), np.max(terms.e, axis=-1), terms.dtype)
    if terms.dtype not in FLOATS:
        combine = np.add if combiner == "add" else np.multiply
        return Value(combine.reduce(terms.v, axis=-1, dtype=kind), np.max(terms.e, axis=-1), terms.dtype)
    count, eps = terms.v.shape[-1], _eps(terms.dtype)
    if combiner == "add":
        total, size = terms.v.sum(axis=-1), np.abs(terms.v).sum(axis=-1)
        bound = terms.e.sum(axis=-1) + 1.01 * count * eps * (size + terms.e.sum(axis=-1))
        exact = _exact_sums(terms, size) & (terms.e == 0).all(axis=-1)
        return _limited(total, np.where(exact, 0.0, bound + _least(terms.dtype) * count), terms.dtype, partial=size)
    total = terms.v.prod(axis=-1)
    size = np.abs(total)
    grown = (np.abs(terms.v) + terms.e).prod(axis=-1)
    lost = (grown - size) + 1.01 * count * eps * grown + _least(terms.dtype) * count
    powers = ((np.frexp(np.abs(terms.v))[0] == 0.5) & (terms.e == 0)).all(axis=-1)
    zero = ((terms.v == 0) & (terms.e == 0)).any(axis=-1) & np.isfinite(grown)
    largest = np.maximum(np.abs(terms.v), 1).prod(axis=-1)
    return _limited(total, np.where(powers | zero, 0.0, lost), terms.dtype, partial=largest)


def _exact_sums(terms: Value, size: Array) -> Array:
    """Return where all terms are multiples of a power of two that is small enough for every partial sum to be held."""
    held = 1 / _eps(terms.dtype)
    exact = np.zeros(size.shape, bool)
    for quantum in _QUANTA:
        scaled = terms.v / quantum
        exact |= (scaled == np.floor(scaled)).all(axis=-1) & (size / quantum <= held)
    return exact


def _place(combiner: str, value: Value, place: Value) -> list[Value]:
    """The best value and its place; the place is open where another value is as good within the bounds."""
    best = value.v.max(axis=-1) if combiner == "argmax" else value.v.min(axis=-1)
    at_best = value.v == best[..., None]
    worst = np.iinfo(numpy_type(place.dtype)).max
    chosen = np.where(at_best, place.v, worst).min(axis=-1).astype(numpy_type(place.dtype))
    error = np.max(value.e, axis=-1)
    margin = np.abs(value.v.astype(WIDE) - best.astype(WIDE)[..., None])
    rivals = (~at_best & (margin <= value.e + error[..., None])).any(axis=-1) | (
        (at_best.sum(axis=-1) > 1) & (error > 0)
    )
    open_place = np.where(rivals | np.isinf(error), np.inf, 0.0)
    return [Value(best, error, value.dtype), Value(chosen, np.maximum(open_place, place.e.max(axis=-1)), place.dtype)]


# -- scalars ----------------------------------------------------------------------------------------------------------


def evaluate_node(node: Node, grid: Mapping[str, Array], known: Mapping[Source, Value]) -> Value:
    """A tree at every point of a grid of axes."""
    if node.op == "number":
        kind = WIDE if node.dtype in FLOATS else numpy_type(node.dtype)
        held = np.asarray(node.number, numpy_type(node.dtype)).astype(kind)
        return Value(held, np.zeros(()), node.dtype)
    if node.op == "axis":
        return Value(grid[node.name].astype(np.int32), np.zeros(()), "int32")
    args = [evaluate_node(a, grid, known) for a in node.args]
    if node.op == "read":
        assert node.tensor is not None
        source = known[node.tensor]
        # A read outside stands behind a condition: what it gives is thrown away.
        place = tuple(np.clip(a.v, 0, n - 1) for a, n in zip(args, source.v.shape, strict=True))
        return Value(source.v[place], source.e[place], source.dtype) if place else source
    if node.op == "select":
        return _select(*args)
    if node.op == "cast":
        return _cast(args[0], node.dtype)
    if node.op == "bitcast":
        return _bitcast(args[0], node.dtype)
    if node.op in ("all", "any", "not"):
        return _logic(node.op, args)
    if node.dtype == "bool":
        return _compare(node.op, *args)
    return (_float if node.dtype in FLOATS else _integer)(node.op, node.dtype, args)


def _select(condition: Value, yes: Value, no: Value) -> Value:
    v, e = np.where(condition.v, yes.v, no.v), np.where(condition.v, yes.e, no.e)
    return Value(v, np.maximum(e, condition.e), yes.dtype)


def _logic(name: str, args: list[Value]) -> Value:
    """Conditions; an open one matters only where the others do not decide."""
    if name == "not":
        return Value(~args[0].v, args[0].e, "bool")
    result = args[0]
    for other in args[1:]:
        v = (result.v & other.v) if name == "all" else (result.v | other.v)
        deciding = name != "all"
        settled = ((result.v == deciding) & (result.e == 0)) | ((other.v == deciding) & (other.e == 0))
        result = Value(v, np.where(settled, 0.0, np.maximum(result.e, other.e)), "bool")
    return result


_TESTS = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}


def _compare(name: str, a: Value, b: Value) -> Value:
    slack = a.e + b.e
    near = (slack > 0) & ~(np.abs(a.v.astype(WIDE) - b.v.astype(WIDE)) > slack)
    return Value(_TESTS[name](a.v, b.v), np.where(near, np.inf, 0.0), "bool")


def _integer(name: str, dtype: str, args: list[Value]) -> Value:
    kind = numpy_type(dtype)
    width = kind.itemsize * 8
    a = args[0].v
    b = args[1].v if len(args) > 1 else a
    if name in ("floordiv", "mod"):
        b = np.where(b == 0, np.asarray(1, kind), b)
    if name in ("shl", "shr"):
        count = np.minimum(b, np.asarray(width - 1, kind))
        beyond = np.zeros((), kind) if name == "shl" or dtype in UNSIGNED else a >> np.asarray(width - 1, kind)
        shifted = a << count if name == "shl" else a >> count
        v = np.where(b >= width, beyond, shifted)
    else:
        v = _INTEGERS[name](a, b)
    return Value(np.asarray(v).astype(kind), np.maximum.reduce(np.broadcast_arrays(*(x.e for x in args))), dtype)


_INTEGERS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "neg": lambda a, _: np.negative(a),
    "abs": lambda a, _: np.abs(a),
}


def _eps(dtype: str) -> float:
    return float(ml_dtypes.finfo(numpy_type(dtype)).eps)


def _least(dtype: str) -> float:
    """Numbers below the least normal one may become 0."""
    return float(ml_dtypes.finfo(numpy_type(dtype)).tiny)


def _limited(v: Array, e: Array, dtype: str, partial: Array | float = 0.0) -> Value:
    """A float with its bound; open where it, or what is met on the way to it, may not fit its type, or is no number."""
    most = float(ml_dtypes.finfo(numpy_type(dtype)).max)
    fits = (np.maximum(np.abs(v), partial) + e <= most) | (np.isinf(v) & (e == 0))
    return Value(np.asarray(v, WIDE), np.where(fits, e, np.inf), dtype)


def _rounded(v: Array, e: Array, dtype: str) -> Value:
    """The result of one operation, whose operands' bounds made it `e`."""
    v = np.asarray(v, WIDE)
    held = v.astype(np.float64).astype(numpy_type(dtype)).astype(WIDE) == v
    grown = e + _eps(dtype) * (np.abs(v) + e) + _least(dtype)
    return _limited(v, np.where(held & (e == 0), 0.0, grown), dtype)


def _float(name: str, dtype: str, args: list[Value]) -> Value:
    a = args[0]
    if len(args) == 1:
        return _function(name, dtype, a)
    b = args[1]
    if name in ("max", "min"):
        v = np.maximum(a.v, b.v) if name == "max" else np.minimum(a.v, b.v)
        return _limited(v, np.where(np.isnan(v), np.inf, np.maximum(a.e, b.e)), dtype)
    if name in ("add", "sub"):
        return _rounded(a.v + b.v if name == "add" else a.v - b.v, a.e + b.e, dtype)
    if name == "mul":
        return _rounded(a.v * b.v, _product(a.v, b.e) + _product(b.v, a.e) + _product(a.e, b.e), dtype)
    assert name == "div"
    v = a.v / b.v
    least = np.abs(b.v) - b.e
    e = np.where(least > 0, (a.e + np.abs(v) * b.e) / least, np.inf)
    power = np.frexp(np.abs(b.v))[0] == 0.5
    return _rounded(v, np.where(power | np.isinf(e), e, e + _eps(dtype) * np.abs(v)), dtype)


def _product(v: Array, e: Array) -> Array:
    """`abs(v) * e`: 0 for a bound of 0, open where that is no number."""
    grown = np.abs(v) * e
    return np.where(e == 0, 0.0, np.where(np.isnan(grown), np.inf, grown))


_erf = np.frompyfunc(math.erf, 1, 1)
_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "erf": lambda x: np.asarray(_erf(np.asarray(x, np.float64)), np.float64).astype(WIDE),
}
_STEPS = {"floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc}


def _function(name: str, dtype: str, a: Value) -> Value:
    if name in ("neg", "abs"):
        return Value(-a.v if name == "neg" else np.abs(a.v), a.e, dtype)
    if name in _STEPS:
        step = _STEPS[name]
        moved = (step(a.v - a.e) != step(a.v + a.e)) | np.isinf(a.e)
        return _limited(step(a.v), np.where(moved, np.inf, 0.0), dtype)
    function = _FUNCTIONS[name]
    v = function(a.v)
    if name in ("sin", "cos"):
        e = a.e + _FUNCTION_ULPS * _eps(dtype)
    else:
        e = np.maximum(np.abs(function(a.v + a.e) - v), np.abs(function(a.v - a.e) - v)) * 1.01
    e = np.where(np.isnan(e) | np.isinf(a.e), np.inf, e + _FUNCTION_ULPS * _eps(dtype) * np.abs(v) + _least(dtype))
    return _rounded(v, e, dtype)


def _cast(a: Value, dtype: str) -> Value:
    if dtype == "bool":
        zero = (np.abs(a.v) <= a.e) & (a.e > 0) if a.dtype in FLOATS else a.e > 0
        return Value(a.v != 0, np.where(zero, np.inf, 0.0), dtype)
    if dtype in FLOATS:
        return _rounded(a.v.astype(WIDE), a.e, dtype)
    kind = numpy_type(dtype)
    if a.dtype not in FLOATS:
        return Value(a.v.astype(kind), a.e, dtype)
    limits = np.iinfo(kind)
    moved = (
        (np.trunc(a.v - a.e) != np.trunc(a.v + a.e)) | ~((a.v > limits.min - 1) & (a.v < limits.max)) | np.isinf(a.e)
    )
    whole = np.where(moved, 0, np.trunc(a.v)).astype(np.uint64 if dtype == "uint64" else np.int64)
    return Value(whole.astype(kind), np.where(moved, np.inf, 0.0), dtype)


def _bitcast(a: Value, dtype: str) -> Value:
    """Bits taken for another type; those of zeros, of numbers that are no normal ones and of inexact ones are open."""
    source, kind = numpy_type(a.dtype), numpy_type(dtype)
    v = (
        np.asarray(a.v).astype(source).view(kind)
        if a.v.ndim
        else np.asarray(a.v).astype(source).reshape(1).view(kind)[0]
    )
    e = a.e
    if a.dtype in FLOATS:
        e = np.where((a.e == 0) & (np.abs(a.v) >= _least(a.dtype)) & np.isfinite(a.v), 0.0, np.inf)
    if dtype in FLOATS:
        wide = np.asarray(v).astype(WIDE)
        usual = np.isfinite(wide) & ((np.abs(wide) >= _least(dtype)) | (np.asarray(v).view(source) == 0))
        return Value(wide, np.where(usual, e, np.inf), dtype)
    return Value(np.asarray(v), e, dtype)
