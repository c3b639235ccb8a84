"""Operators that read or write at places which a tensor gives."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ....dialects.graph import ApplyOp
from ....graph.network import Value
from ..errors import UnsupportedNode
from ..known_places import read_known
from ..node import Node, aten

_MOST_STEPS = 1 << 20
"""Writing at places which are not known looks at all of them for each element: of so many steps at most.

On one core of a Zen 4, 4 million steps (4 rows of 1000 x 1000 in int64) take 0.30 ms, a million a quarter of it, where
PyTorch takes 0.01 ms and a region more some 0.02. On two threads of a loaded Xeon, before values were read at the place
that was found, 4 million took 0.06 to 0.08 ms.
"""
_MODES = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min"}
_INTEGERS = ("int32", "int64")


def _places(node: Node, indices: Value) -> Value:
    if indices.dtype not in _INTEGERS:
        raise UnsupportedNode(f"indices of type {indices.dtype} stay PyTorch's")
    return indices


def _from_start(node: Node, places: Value, extent: int) -> Value:
    """Places of which negative ones count from the end, from the start."""
    from_end = node.net.less(places, np.asarray(0, places.dtype))
    found: Value = node.net.where(from_end, node.net.add(places, np.asarray(extent, places.dtype)), places)
    return found


def taken(node: Node, x: Value, places: Value, axis: int) -> Value:
    """Return the slices of an axis at places, without a search for those that are known."""
    if places.constant is not None:
        found = read_known(node, x, axis, [places.constant])
        if found is not None:
            return found
    made: Value = node.apply("take", x, places, axis=axis)
    return made


@aten("embedding.default")
def embedding(node: Node) -> Any:
    return taken(node, node.value("weight"), _places(node, node.value("indices")), 0)


@aten("index_select.default")
def index_select(node: Node) -> Any:
    x, places = node.value(), _places(node, node.value("index"))
    if not x.shape:
        raise UnsupportedNode("index_select of a number stays PyTorch's")
    return taken(node, x, node.reshaped(places, [prod(places.shape)]), node.axis())


def _moved_first(node: Node, x: Value, axes: Sequence[int]) -> tuple[Value, list[int]]:
    """Bring axes to the front; returns also the order that takes them back."""
    order = [*axes, *(d for d in range(len(x.shape)) if d not in axes)]
    if order == list(range(len(x.shape))):
        return x, order
    return node.net.transpose(x, axes=order), [order.index(d) for d in range(len(order))]


def _flat_places(node: Node, given: Sequence[Value], extents: Sequence[int]) -> Value:
    """Places along several axes as places along these axes joined."""
    flat: Value | None = None
    for places, extent in zip(given, extents, strict=True):
        start = _from_start(node, _places(node, places), extent)
        scaled = start if flat is None else node.net.multiply(flat, np.asarray(extent, flat.dtype))
        flat = scaled if flat is None else node.net.add(scaled, node.cast(start, flat.dtype))
    assert flat is not None
    return flat


@aten("index.Tensor")
def index(node: Node) -> Any:
    """Elements at places along some axes, whose results come where those axes are, or first where they are apart."""
    x, given = node.value(), node["indices"]
    axes = [d for d, found in enumerate(given) if found is not None]
    places = [_places(node, given[d]) for d in axes]
    first = axes[0]
    if axes != list(range(first, first + len(axes))):
        x, _ = _moved_first(node, x, axes)
        first = 0
    known = [p.constant for p in places]
    if all(k is not None for k in known):
        found = read_known(node, x, first, [k for k in known if k is not None])
        if found is not None:
            return found
    extents = x.shape[first : first + len(axes)]
    merged = node.reshaped(x, [*x.shape[:first], prod(extents), *x.shape[first + len(axes) :]])
    return taken(node, merged, _flat_places(node, places, extents), first)


@aten("gather.default")
def gather(node: Node) -> Any:
    x, indices, axis = node.value(), _places(node, node.value("index")), node.axis()
    if not x.shape:
        return node.apply("identity", x)
    for d, n in enumerate(indices.shape):
        if d != axis and n < x.shape[d]:
            x = node.apply("strided_slice", x, begin=[0], end=[n], axes=[d])
    return node.apply("take_along_axis", x, indices, axis=axis)


# -- writing ----------------------------------------------------------------------------------------------------------


def _written(node: Node, x: Value, places: Value, updates: Value, axis: int, mode: str = "none") -> Value:
    """The data with updates at places along an axis."""
    node.prefer_pytorch(prod(x.shape) * places.shape[axis], _MOST_STEPS)
    if x.dtype != "bool":
        made: Value = node.apply("scatter_elements", x, places, updates, axis=axis, reduction=mode)
        return made
    numbers = [node.net.cast(value, dtype="int8") for value in (x, updates)]
    return node.cast(node.apply("scatter_elements", numbers[0], places, numbers[1], axis=axis, reduction=mode), "bool")


def _slices_written(node: Node, x: Value, places: Value, slices: Value, axis: int) -> Value:
    """The data with whole slices at places (K,) along an axis."""
    node.prefer_pytorch(x.shape[axis] * places.shape[0], _MOST_STEPS)
    if x.dtype != "bool":
        made: Value = node.apply("scatter_slices", x, places, slices, axis=axis)
        return made
    numbers = [node.net.cast(value, dtype="int8") for value in (x, slices)]
    return node.cast(node.apply("scatter_slices", numbers[0], places, numbers[1], axis=axis), "bool")


def _same_for_all(indices: Value, axis: int, shape: Sequence[int]) -> Value | None:
    """The one place for each slice of an axis, of indices that were stretched along all others; None of others."""
    owner, count = indices.ssa.owner, indices.shape[axis]
    if not isinstance(owner, ApplyOp) or owner.operator.data != "broadcast_to":
        return None
    source, wide = Value(indices.net, owner.inputs[0]), (*shape[:axis], count, *shape[axis + 1 :])
    own = (*(1,) * (len(wide) - len(source.shape)), *source.shape)
    if indices.shape != wide or own[axis] != count or prod(own) != count:
        return None
    return indices.net.reshape(source, shape=(count,))


@aten("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce", "scatter_add.default")
def scatter(node: Node) -> Any:
    mode = "add" if node.operator.startswith("scatter_add") else _MODES.get(str(node.arguments.get("reduce")), "none")
    return _scattered(node, node.value(), mode)


@aten("scatter_reduce.two")
def scatter_reduce(node: Node) -> Any:
    return _joined(node, _places(node, node.value("index")), node.value("src"))


@aten("index_reduce.default")
def index_reduce(node: Node) -> Any:
    """As scatter_reduce does, with one place for each slice of an axis."""
    places, source, axis = _places(node, node.value("index")), node.value("source"), node.axis()
    shape = [1] * len(source.shape)
    shape[axis] = places.shape[0]
    return _joined(node, node.stretched(node.reshaped(places, shape), source.shape), source)


def _joined(node: Node, places: Value, source: Value) -> Any:
    """The data joined with all that goes to each place; without `include_self`, what goes there alone, if anything."""
    x, name, net = node.value(), str(node["reduce"]), node.net
    mode = "add" if name == "mean" else _MODES.get(name)
    is_float = "float" in x.dtype
    if mode is None or not x.shape or (not is_float and (name == "mean" or not node["include_self"])):
        raise UnsupportedNode(f"scatter_reduce of {x.dtype} by {name} stays PyTorch's")
    axis, source = node.axis(), _cut(node, source, places.shape)
    if name != "mean" and node["include_self"]:
        return _written(node, x, places, source, axis, mode)
    ones, zeros = (
        net.constant(np.full(shape, n, x.dtype), "counted") for n, shape in ((1, places.shape), (0, x.shape))
    )
    counts = _written(node, zeros, places, ones, axis, "add")
    if not node["include_self"]:
        neutral = np.asarray({"add": 0.0, "mul": 1.0, "max": -np.inf, "min": np.inf}[mode], x.dtype)
        x = net.where(net.greater(counts, np.asarray(0, x.dtype)), neutral, x)
    made = _written(node, x, places, source, axis, mode)
    if name != "mean":
        return made
    others = net.add(counts, np.asarray(1, x.dtype)) if node["include_self"] else counts
    return node.apply("divide", made, net.maximum(others, np.asarray(1, x.dtype)))


def _cut(node: Node, source: Value, shape: Sequence[int]) -> Value:
    """The first elements along each axis."""
    if source.shape == tuple(shape):
        return source
    axes = list(range(len(shape)))
    made: Value = node.apply("strided_slice", source, begin=[0] * len(axes), end=shape, axes=axes)
    return made


def _scattered(node: Node, x: Value, mode: str) -> Value:
    indices, axis = _places(node, node.value("index")), node.axis()
    if len(indices.shape) != len(x.shape) or not x.shape:
        raise UnsupportedNode("scatter into a number stays PyTorch's")
    if isinstance(node.arguments.get("src"), Value):
        source = _cut(node, node.cast(node.value("src"), x.dtype), indices.shape)
    else:
        source = node.stretched(node.net.constant(np.asarray(node["value"], x.dtype), "number"), indices.shape)
    places = _same_for_all(indices, axis, x.shape) if mode == "none" else None
    if places is not None:
        return _slices_written(node, x, places, source, axis)
    return _written(node, x, indices, source, axis, mode)


@aten("index_put.default", "_unsafe_index_put.default")
def index_put(node: Node) -> Any:
    x, given = node.value(), node["indices"]
    values = node.cast(node.value("values"), x.dtype)
    axes = [d for d, found in enumerate(given) if found is not None]
    if len(axes) == 1 and given[axes[0]].dtype == "bool":
        return _put_where(node, x, given[axes[0]], axes[0], values)
    places = _flat_places(node, [given[d] for d in axes], [x.shape[d] for d in axes])
    first, count = axes[0], prod(places.shape)
    together = axes == list(range(first, first + len(axes)))
    moved, back = (x, []) if together else _moved_first(node, x, axes)
    first = first if together else 0
    lead, behind = moved.shape[:first], moved.shape[first + len(axes) :]
    slices = node.reshaped(node.stretched(values, (*lead, *places.shape, *behind)), [*lead, count, *behind])
    rows = node.reshaped(moved, [*lead, prod(moved.shape[first : first + len(axes)]), *behind])
    places = node.reshaped(places, [count])
    if node["accumulate"]:
        shape = [1] * len(rows.shape)
        shape[first] = count
        made = _written(node, rows, node.stretched(node.reshaped(places, shape), slices.shape), slices, first, "add")
    else:
        made = _slices_written(node, rows, places, slices, first)
    made = node.reshaped(made, moved.shape)
    return made if together else node.net.transpose(made, axes=back)


def _put_where(node: Node, x: Value, mask: Value, axis: int, values: Value) -> Value:
    """One number where a mask holds; several would go to places that depend on how often it does."""
    if prod(values.shape) != 1 or node["accumulate"]:
        raise UnsupportedNode("several values where a mask holds stay PyTorch's")
    behind = len(x.shape) - axis - len(mask.shape)
    wide = node.reshaped(mask, [*[1] * axis, *mask.shape, *[1] * behind])
    made: Value = node.apply("where", wide, node.reshaped(values, [1] * len(x.shape)), x)
    return made


@aten("_embedding_bag.default", "_embedding_bag_forward_only.default")
def embedding_bag(node: Node) -> list[Any]:
    """Rows at places, joined over bags that begin at offsets: along an axis where all bags are known to be as long."""
    weight, indices, offsets = node.value("weight"), node.value("indices"), node.value("offsets")
    if node.used & {1, 2, 3}:
        raise UnsupportedNode("bags with gradients stay PyTorch's")
    bags, count = offsets.shape[0] - bool(node["include_last_offset"]), indices.shape[0]
    length = count // max(bags, 1)
    rows = taken(node, weight, _places(node, indices), 0)
    if offsets.constant is not None and bags * length == count:
        starts = np.arange(offsets.shape[0], dtype=offsets.dtype) * length
        if np.array_equal(offsets.constant, starts):
            return [_bags_of(node, node.reshaped(rows, [bags, length, rows.shape[1]]), None), None, None, None]
    node.prefer_pytorch(bags * prod(rows.shape), _MOST_BAG_STEPS)
    return [
        _bags_of(node, node.reshaped(rows, [1, *rows.shape]), _inside(node, offsets, bags, count)),
        None,
        None,
        None,
    ]


_MOST_BAG_STEPS = 1 << 20
"""Bags whose beginnings are inputs are sums over all rows: of so many steps at most, some 20 us of a core. A choice."""


def _inside(node: Node, offsets: Value, bags: int, count: int) -> Value:
    """Tell which row is in which bag: (bags, rows)."""
    net = node.net
    begin = net.strided_slice(offsets, begin=[0], end=[bags], axes=[0])
    last = np.full((1,), count, offsets.dtype)
    end = net.concatenate(net.strided_slice(offsets, begin=[1], end=[bags], axes=[0]), last) if bags > 1 else last
    every = np.arange(count, dtype=offsets.dtype)[None]
    sides = [
        net.reshape(side if isinstance(side, Value) else net.constant(side), shape=(bags, 1)) for side in (begin, end)
    ]
    found: Value = net.logical_and(net.less_equal(sides[0], every), net.less(every, sides[1]))
    return found


def _bags_of(node: Node, rows: Value, inside: Value | None) -> Any:
    """Join rows along their middle axis, (bags or 1, rows, elements), those that are inside and are no padding."""
    net, mode = node.net, int(node["mode"])
    kept = inside
    if int(node["padding_idx"]) >= 0:
        indices = node.value("indices")
        real = net.not_equal(indices, np.asarray(int(node["padding_idx"]), indices.dtype))
        real = net.reshape(real, shape=rows.shape[:2])
        kept = real if kept is None else net.logical_and(kept, real)
    if mode == _MAX:
        return _largest(node, rows, kept)
    factors = None if kept is None else net.cast(kept, dtype=rows.dtype)
    counted = factors
    if node["per_sample_weights"] is not None:
        weights = net.reshape(node.value("per_sample_weights"), shape=rows.shape[:2])
        factors = weights if factors is None else net.multiply(factors, weights)
    if factors is None:
        return node.apply("mean" if mode == _MEAN else "sum", rows, axis=1)
    if inside is not None:
        made = node.apply("matmul", factors, net.reshape(rows, shape=rows.shape[1:]))
    else:
        made = node.apply("sum", net.multiply(rows, net.reshape(factors, shape=(*factors.shape, 1))), axis=1)
    if mode != _MEAN or counted is None:
        return made
    sizes = net.maximum(net.sum(counted, axis=1, keepdims=True), np.asarray(1, rows.dtype))
    return node.apply("divide", made, sizes)


def _largest(node: Node, rows: Value, kept: Value | None) -> Any:
    """The largest elements of those rows that are kept, 0 where none is."""
    if kept is None:
        return node.apply("max", rows, axis=1)
    net = node.net
    wide = net.reshape(kept, shape=(*kept.shape, 1))
    best = net.max(net.where(wide, rows, np.asarray(-np.inf, rows.dtype)), axis=1)
    some = net.greater(net.sum(net.cast(kept, dtype=rows.dtype), axis=1, keepdims=True), np.asarray(0, rows.dtype))
    return node.apply("where", some, best, np.asarray(0, rows.dtype))


_MEAN, _MAX = 1, 2
"""The numbers by which ATen names ways to join a bag; 0 is the sum."""
