"""Random operations of StableHLO with all their options, and what they give, element by element as its standard says.

Elements are small whole numbers, so that sums of any order are exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
KINDS = {"f32": np.float32, "i32": np.int32, "f64": np.float64}
COMBINERS: dict[str, tuple[Callable[[Any, Any], Any], float]] = {
    "add": (lambda a, b: a + b, 0.0),
    "maximum": (max, -99.0),
    "minimum": (min, 99.0),
}


@dataclass(frozen=True)
class Program:
    """A function `main` of one operation, its inputs, and its result."""

    text: str
    inputs: tuple[Array, ...]
    wanted: Array


class Draw:
    """Random choices."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([seed, 23])
        self.kind = str(self.choose(("f32", "f32", "f32", "i32", "f64")))

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def choose(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def numbers(self, count: int, low: int, high: int) -> list[int]:
        return [self.number(low, high) for _ in range(count)]

    def values(self, shape: Sequence[int]) -> Array:
        return self.rng.integers(-9, 10, tuple(shape)).astype(KINDS[self.kind])

    def axes(self, rank: int, count: int) -> list[int]:
        """Distinct axes in ascending order."""
        return sorted(int(a) for a in self.rng.permutation(rank)[:count])


def program(seed: int) -> Program:
    draw = Draw(seed)
    return OPERATIONS[seed % len(OPERATIONS)](draw)


def _type(array: Array) -> str:
    names = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "bool": "i1"}
    return f"tensor<{''.join(f'{n}x' for n in array.shape)}{names[str(array.dtype)]}>"


def _ints(values: Sequence[int]) -> str:
    return f"array<i64{': ' if values else ''}{', '.join(map(str, values))}>"


def _pairs(pads: Sequence[tuple[int, int]]) -> str:
    return f"dense<{[list(p) for p in pads]}> : tensor<{len(pads)}x2xi64>"


def _region(combiner: str, kind: str) -> str:
    return (
        f"({{\n^bb0(%p: tensor<{kind}>, %q: tensor<{kind}>):\n  %s = stablehlo.{combiner} %p, %q : tensor<{kind}>\n"
        f'  "stablehlo.return"(%s) : (tensor<{kind}>) -> ()\n}})'
    )


def _made(operation: str, options: str, inputs: Sequence[Array], wanted: Array, region: str = "") -> Program:
    names = [f"%x{n}" for n in range(len(inputs))]
    types = [_type(x) for x in inputs]
    given = ", ".join(f"{name}: {kind}" for name, kind in zip(names, types, strict=True))
    result = _type(wanted)
    text = f"""func.func @main({given}) -> {result} {{
%r = "stablehlo.{operation}"({", ".join(names)}) <{{{options}}}> {region} : ({", ".join(types)}) -> {result}
return %r : {result}
}}"""
    return Program(text, tuple(inputs), wanted)


def _places(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return itertools.product(*(range(n) for n in shape))


def _padded(x: Array, low: Sequence[int], high: Sequence[int], interior: Sequence[int], value: Any) -> Array:
    """Zeros between elements, then padding, which may be negative."""
    for axis, (a, b, between) in enumerate(zip(low, high, interior, strict=True)):
        extent = max(0, a + b + (x.shape[axis] - 1) * (between + 1) + 1)
        made = np.full((*x.shape[:axis], extent, *x.shape[axis + 1 :]), value, x.dtype)
        for n in range(x.shape[axis]):
            place = a + n * (between + 1)
            if 0 <= place < extent:
                made[(slice(None),) * axis + (place,)] = x[(slice(None),) * axis + (n,)]
        x = made
    return x


def pad(d: Draw) -> Program:
    rank = d.number(1, 4)
    while True:
        x, value = d.values(d.numbers(rank, 1, 6)), d.values(())
        low, high, interior = d.numbers(rank, -2, 3), d.numbers(rank, -2, 3), d.numbers(rank, 0, 2)
        wanted = _padded(x, low, high, interior, value)
        if wanted.size:
            break
    options = (
        f"edge_padding_low = {_ints(low)}, edge_padding_high = {_ints(high)}, interior_padding = {_ints(interior)}"
    )
    return _made("pad", options, [x, value], wanted)


def reduce_window(d: Draw) -> Program:
    rank, combiner = d.number(1, 4), d.choose(tuple(COMBINERS))
    join, start = COMBINERS[combiner]
    init = np.array(start, KINDS[d.kind])  # how often another would count the standard leaves open
    while True:
        x = d.values(d.numbers(rank, 1, 7))
        window, strides = d.numbers(rank, 1, 3), d.numbers(rank, 1, 3)
        base = d.numbers(rank, 1, 2) if d.chance(0.4) else [1] * rank
        apart = d.numbers(rank, 1, 2) if d.chance(0.4) else [1] * rank
        pads = [(d.number(-1, 2), d.number(-1, 2)) if d.chance(0.6) else (0, 0) for _ in range(rank)]
        wide = _padded(x, [p[0] for p in pads], [p[1] for p in pads], [b - 1 for b in base], init)
        reach = [(w - 1) * a + 1 for w, a in zip(window, apart, strict=True)]
        shape = [(n - r) // s + 1 if n >= r else 0 for n, r, s in zip(wide.shape, reach, strides, strict=True)]
        if min(shape) > 0:
            break
    wanted = np.empty(shape, x.dtype)
    for place in _places(shape):
        total = init[()]
        for tap in _places(window):
            at = tuple(p * s + t * a for p, s, t, a in zip(place, strides, tap, apart, strict=True))
            total = join(total, wide[at])
        wanted[place] = total
    options = (
        f"window_dimensions = {_ints(window)}, window_strides = {_ints(strides)}, base_dilations = {_ints(base)}, "
        f"window_dilations = {_ints(apart)}, padding = {_pairs(pads)}"
    )
    return _made("reduce_window", options, [x, init], wanted, _region(combiner, d.kind))


def convolution(d: Draw) -> Program:
    """Any order of axes, groups of features or of the batch, all dilations, padding that may be negative, reversal."""
    count = d.choose((1, 2, 2, 2, 3))
    features, batches = d.choose(((1, 1), (1, 1), (2, 1), (3, 1), (1, 2)))
    per, made, batch = d.number(1, 3), d.number(1, 3) * features * batches, d.number(1, 2) * batches
    while True:
        x = d.values((batch, per * features, *d.numbers(count, 1, 7)))
        w = d.values((made, per, *d.numbers(count, 1, 3)))
        strides, base, apart = d.numbers(count, 1, 2), [1] * count, [1] * count
        if d.chance(0.4):
            base = d.numbers(count, 1, 3)
        if d.chance(0.4):
            apart = d.numbers(count, 1, 2)
        pads = [(d.number(-1, 2), d.number(-1, 2)) if d.chance(0.6) else (0, 0) for _ in range(count)]
        turned = [d.chance(0.2) for _ in range(count)]
        low, high = [0, 0, *(p[0] for p in pads)], [0, 0, *(p[1] for p in pads)]
        wide = _padded(x, low, high, [0, 0, *(b - 1 for b in base)], 0)
        reach = [(k - 1) * a + 1 for k, a in zip(w.shape[2:], apart, strict=True)]
        sides = [(n - r) // s + 1 if n >= r else 0 for n, r, s in zip(wide.shape[2:], reach, strides, strict=True)]
        if min(sides) > 0:
            break
    wanted = _convolved(wide, w, sides, strides, apart, turned, features, batches)
    orders = [d.rng.permutation(count + 2) if d.chance(0.4) else np.arange(count + 2) for _ in range(3)]
    letters = [("b", "f"), ("o", "i"), ("b", "f")]
    names = [
        ", ".join(np.array([*pair, *map(str, range(count))])[order])
        for pair, order in zip(letters, orders, strict=True)
    ]
    x, w, wanted = (np.ascontiguousarray(np.transpose(t, o)) for t, o in zip((x, w, wanted), orders, strict=True))
    options = (
        f"dimension_numbers = #stablehlo.conv<[{names[0]}]x[{names[1]}]->[{names[2]}]>, padding = {_pairs(pads)}, "
        f"feature_group_count = {features} : i64, batch_group_count = {batches} : i64, lhs_dilation = {_ints(base)}, "
        f"rhs_dilation = {_ints(apart)}, window_strides = {_ints(strides)}, "
        f"window_reversal = array<i1: {', '.join(str(t).lower() for t in turned)}>"
    )
    return _made("convolution", options, [x, w], wanted)


def _convolved(
    x: Array,
    w: Array,
    sides: Sequence[int],
    strides: Sequence[int],
    apart: Sequence[int],
    turned: Sequence[bool],
    features: int,
    batches: int,
) -> Array:
    per, batch, made = w.shape[1], x.shape[0] // batches, w.shape[0]
    flips = tuple(2 + n for n, t in enumerate(turned) if t)
    images, taps = (np.moveaxis(t, (0, 1), (-2, -1)) for t in (x, np.flip(w, flips) if flips else w))
    wanted = np.zeros((*sides, batch, made), x.dtype)
    for place in _places(sides):
        for tap in _places(w.shape[2:]):
            at = tuple(p * s + t * a for p, s, t, a in zip(place, strides, tap, apart, strict=True))
            seen = images[at]
            for f in range(made):
                group = f // (made // (features * batches))
                rows = seen[group * batch : (group + 1) * batch] if batches > 1 else seen
                own = rows[:, group * per : (group + 1) * per] if features > 1 else rows
                wanted[place][:, f] += own @ taps[tap][f]
    return np.moveaxis(wanted, (-2, -1), (0, 1))


def dot_general(d: Draw) -> Program:
    """Axes of products, batches and rows in any order."""
    shared, summed = d.numbers(d.number(0, 2), 1, 4), d.numbers(d.number(0, 2), 1, 5)
    rows, columns = d.numbers(d.number(0, 2), 1, 5), d.numbers(d.number(0, 2), 1, 5)
    sides = []
    for own in (rows, columns):
        labels = [("b", n) for n in range(len(shared))] + [("k", n) for n in range(len(summed))]
        labels += [("r", n) for n in range(len(own))]
        order = d.rng.permutation(len(labels))
        kept = [labels[int(n)] for n in order]
        extents = {"b": shared, "k": summed, "r": own}
        sides.append((kept, d.values([extents[name][n] for name, n in kept])))
    letters = {}
    for side, (kept, _) in enumerate(sides):
        for name, n in kept:
            letters[side, name, n] = "abcdefgh"[n if name == "b" else 2 + n if name == "k" else 4 + 2 * side + n]
    free = [[letters[s, name, n] for name, n in kept if name == "r"] for s, (kept, _) in enumerate(sides)]
    result = "".join("ab"[n] for n in range(len(shared))) + "".join(free[0]) + "".join(free[1])
    terms = ["".join(letters[s, name, n] for name, n in kept) for s, (kept, _) in enumerate(sides)]
    wanted = np.einsum(f"{terms[0]},{terms[1]}->{result}", sides[0][1], sides[1][1])
    places = [
        [str([kept.index((name, n)) for n in range(len(axes))]) for name, axes in (("b", shared), ("k", summed))]
        for kept, _ in sides
    ]
    options = (
        f"dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {places[0][0]}, "
        f"rhs_batching_dimensions = {places[1][0]}, lhs_contracting_dimensions = {places[0][1]}, "
        f"rhs_contracting_dimensions = {places[1][1]}>"
    )
    return _made("dot_general", options, [sides[0][1], sides[1][1]], np.asarray(wanted))


def gather(d: Draw) -> Program:
    """Slices at places that are clamped, of some axes, the places' axis anywhere."""
    rank = d.number(1, 4)
    x = d.values(d.numbers(rank, 1, 6))
    mapped = [int(a) for a in d.rng.permutation(rank)[: d.number(1, rank)]]
    sizes = [d.number(1, n) for n in x.shape]
    collapsed = [a for a in range(rank) if sizes[a] == 1 and d.chance(0.6)]
    lead = d.numbers(d.number(0, 2), 1, 4)
    at = d.number(0, len(lead))
    if len(mapped) == 1 and d.chance(0.3):
        at, indices = len(lead), d.rng.integers(-2, 8, lead)
        vectors = indices[..., None]
    else:
        vectors = d.rng.integers(-2, 8, (*lead, len(mapped)))
        indices = np.moveaxis(vectors, -1, at)
    kept = [a for a in range(rank) if a not in collapsed]
    offsets, batches, shape = _windows(d, lead, [sizes[a] for a in kept])
    wanted = np.empty(shape, x.dtype)
    for place in _places(shape):
        start = dict.fromkeys(range(rank), 0)
        for a, v in zip(mapped, vectors[tuple(place[n] for n in batches)], strict=True):
            start[a] = int(np.clip(v, 0, x.shape[a] - sizes[a]))
        for n, a in zip(offsets, kept, strict=True):
            start[a] += place[n]
        wanted[place] = x[tuple(start[a] for a in range(rank))]
    options = (
        f"dimension_numbers = #stablehlo.gather<offset_dims = {offsets}, collapsed_slice_dims = {collapsed}, "
        f"start_index_map = {mapped}, index_vector_dim = {at}>, slice_sizes = {_ints(sizes)}, "
        "indices_are_sorted = false"
    )
    return _made("gather", options, [x, np.asarray(indices).astype(d.choose((np.int32, np.int64)))], wanted)


def _windows(d: Draw, lead: list[int], sizes: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Axes of windows among those of their places, in any order: theirs, those of places, and the whole's shape."""
    rank = len(lead) + len(sizes)
    offsets = d.axes(rank, len(sizes))
    batches = [n for n in range(rank) if n not in offsets]
    extents = dict(zip([*batches, *offsets], [*lead, *sizes], strict=True))
    return offsets, batches, [extents[n] for n in range(rank)]


def scatter(d: Draw) -> Program:
    """Windows joined at places; one that is not wholly inside is left out, as XLA does."""
    rank = d.number(1, 3)
    x = d.values(d.numbers(rank, 1, 6))
    mapped = [int(a) for a in d.rng.permutation(rank)[: d.number(1, rank)]]
    inserted = [a for a in mapped if d.chance(0.5)]
    kept = [a for a in range(rank) if a not in inserted]
    sizes = [1 if a in inserted else d.number(1, x.shape[a]) for a in range(rank)]
    lead = d.numbers(d.number(0, 2), 1, 4)
    vectors = d.rng.integers(-1, 7, (*lead, len(mapped)))
    at = d.number(0, len(lead))
    offsets, batches, shape = _windows(d, lead, [sizes[a] for a in kept])
    updates, combiner = d.values(shape), d.choose(tuple(COMBINERS))
    join, _ = COMBINERS[combiner]
    wanted = x.copy()
    for place in _places(shape):
        target = dict.fromkeys(range(rank), 0)
        for a, v in zip(mapped, vectors[tuple(place[n] for n in batches)], strict=True):
            target[a] = int(v)
        inside = all(0 <= target[a] <= x.shape[a] - sizes[a] for a in range(rank))
        for n, a in zip(offsets, kept, strict=True):
            target[a] += place[n]
        if inside:
            where = tuple(target[a] for a in range(rank))
            wanted[where] = join(wanted[where], updates[place])
    options = (
        f"scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {offsets}, "
        f"inserted_window_dims = {inserted}, scatter_dims_to_operand_dims = {mapped}, index_vector_dim = {at}>, "
        "indices_are_sorted = false, unique_indices = false"
    )
    given = [x, np.moveaxis(vectors, -1, at).astype(d.choose((np.int32, np.int64))), updates]
    return _made("scatter", options, given, wanted, _region(combiner, d.kind))


def select_and_scatter(d: Draw) -> Program:
    """The way back of a pool: each source is added where its window has its largest element, the first of these."""
    rank, d.kind = d.choose((1, 2, 2, 3)), d.choose(("f32", "f64"))
    while True:
        x = d.values(d.numbers(rank, 1, 6))
        window, strides = d.numbers(rank, 1, 3), d.numbers(rank, 1, 3)
        pads = [(d.number(0, w - 1), d.number(0, w - 1)) if d.chance(0.4) else (0, 0) for w in window]
        wide = [n + a + b for n, (a, b) in zip(x.shape, pads, strict=True)]
        shape = [(n - w) // s + 1 if n >= w else 0 for n, w, s in zip(wide, window, strides, strict=True)]
        if min(shape) > 0:
            break
    source, init = d.values(shape), np.array(0, KINDS[d.kind])
    wanted = np.zeros_like(x)
    for place in _places(shape):
        best = None
        for tap in _places(window):
            at = tuple(p * s + t - low for p, s, t, (low, _) in zip(place, strides, tap, pads, strict=True))
            inside = all(0 <= a < n for a, n in zip(at, x.shape, strict=True))
            if inside and (best is None or x[at] > x[best]):
                best = at
        if best is not None:
            wanted[best] += source[place]
    kind = d.kind
    region = (
        f"({{\n^bb0(%p: tensor<{kind}>, %q: tensor<{kind}>):\n"
        f"  %s = stablehlo.compare GE, %p, %q, FLOAT : (tensor<{kind}>, tensor<{kind}>) -> tensor<i1>\n"
        f'  "stablehlo.return"(%s) : (tensor<i1>) -> ()\n}}, {_region("add", kind)[1:]}'
    )
    options = f"window_dimensions = {_ints(window)}, window_strides = {_ints(strides)}, padding = {_pairs(pads)}"
    return _made("select_and_scatter", options, [x, source, init], wanted, region)


def reduce(d: Draw) -> Program:
    rank, combiner = d.number(1, 4), d.choose(tuple(COMBINERS))
    join, start = COMBINERS[combiner]
    x, init = d.values(d.numbers(rank, 1, 5)), np.array(start if d.chance(0.7) else 3, KINDS[d.kind])
    axes = d.axes(rank, d.number(0, rank))
    wanted = np.full([n for a, n in enumerate(x.shape) if a not in axes], init, x.dtype)
    for place in _places(x.shape):
        at = tuple(p for a, p in enumerate(place) if a not in axes)
        wanted[at] = join(wanted[at], x[place])
    return _made("reduce", f"dimensions = {_ints(axes)}", [x, init], wanted, _region(combiner, d.kind))


def dynamic_slice(d: Draw) -> Program:
    """At places that are clamped; or an update of them."""
    rank = d.number(1, 4)
    x = d.values(d.numbers(rank, 1, 6))
    sizes = [d.number(1, n) for n in x.shape]
    kind = d.choose((np.int32, np.int64))
    starts = [np.array(d.number(-2, 7), kind) for _ in range(rank)]
    begin = [int(np.clip(s, 0, n - k)) for s, n, k in zip(starts, x.shape, sizes, strict=True)]
    where = tuple(slice(b, b + k) for b, k in zip(begin, sizes, strict=True))
    if d.chance(0.5):
        return _made("dynamic_slice", f"slice_sizes = {_ints(sizes)}", [x, *starts], x[where].copy())
    update, wanted = d.values(sizes), x.copy()
    wanted[where] = update
    return _made("dynamic_update_slice", "", [x, update, *starts], wanted)


OPERATIONS: tuple[Callable[[Draw], Program], ...] = (
    *(pad, reduce_window, convolution, convolution, dot_general, gather, scatter, select_and_scatter, reduce),
    dynamic_slice,
)
