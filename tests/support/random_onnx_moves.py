"""Random ONNX operators that move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from random_onnx import Graph, Tensor
from random_onnx_values import ALL, ANY_RANK, FLOATS, axes_of, axis, some_axes


def reshape(g: Graph) -> None:
    x = g.any(ALL, ANY_RANK)
    primes = [p for n in x.shape for p in _factors(n)]
    groups = (
        np.split(np.array(primes), sorted(g.rng.integers(0, len(primes) + 1, g.number(0, 3))))
        if primes
        else [np.ones(0)]
    )
    shape = [int(np.prod(part)) for part in groups]
    if g.chance(0.4):
        shape[g.number(0, len(shape) - 1)] = -1
    elif g.chance(0.3) and x.rank and shape[0] == x.shape[0]:
        shape[0] = 0
    attributes = {"allowzero": 1} if g.opset >= 14 and 0 not in shape and g.chance(0.2) else {}
    g.add("Reshape", [x, g.constant(np.array(shape, np.int64))], **attributes)


def _factors(n: int) -> list[int]:
    return next(([p, *_factors(n // p)] for p in range(2, n + 1) if n % p == 0), [])


def flatten(g: Graph) -> None:
    x = g.any(ALL, (1, 2, 3, 4))
    g.add("Flatten", [x], axis=g.number(-x.rank, x.rank))


def transpose(g: Graph) -> None:
    x = g.any(ALL, (2, 3, 4, 4, 5))
    g.add("Transpose", [x], **({"perm": g.rng.permutation(x.rank).tolist()} if g.chance(0.85) else {}))


def squeeze(g: Graph) -> None:
    x = g.pick(lambda t: 1 in t.shape) or g.input((1, 3, 1, 4), "float32")
    ones = [d - x.rank * g.number(0, 1) for d in range(x.rank) if x.shape[d] == 1]
    axes = None if g.chance(0.2) else ones[: g.number(1, len(ones))]
    given, attributes = axes_of(g, "Squeeze", axes, 13)
    g.add("Squeeze", [x, *given], **attributes)


def unsqueeze(g: Graph) -> None:
    x = g.any(ALL, (0, 1, 2, 3))
    count = g.number(1, 2)
    axes = [int(a) for a in g.rng.permutation(x.rank + count)[:count]]
    given, attributes = axes_of(g, "Unsqueeze", [a - (x.rank + count) * g.number(0, 1) for a in axes], 13)
    g.add("Unsqueeze", [x, *given], **attributes)


def concat(g: Graph) -> None:
    x = g.any(ALL, (1, 2, 3, 4, 4))
    place = g.number(0, x.rank - 1)

    def joins(t: Tensor) -> bool:
        return (
            t.dtype == x.dtype
            and t.rank == x.rank
            and all(a == b for d, (a, b) in enumerate(zip(t.shape, x.shape, strict=True)) if d != place)
        )

    others = [g.pick(joins) or x for _ in range(g.number(0, 2))]
    if g.chance(0.4):
        shape = list(x.shape)
        shape[place] = g.choose((1, 2, 3))
        others.append(g.weight(shape, x.dtype))
    parts = [x, *others]
    g.add("Concat", [parts[k] for k in g.rng.permutation(len(parts))], axis=place - x.rank * g.number(0, 1))


def split(g: Graph) -> None:
    x = g.any(ALL, (1, 2, 3, 4, 4))
    place = g.number(0, x.rank - 1)
    extent = x.shape[place]
    count = g.number(1, min(extent, 3))
    attributes: dict[str, Any] = {"axis": place - x.rank * g.number(0, 1)}
    if g.chance(0.5) and (extent % count == 0 or g.opset >= 18):
        if g.opset >= 18:
            attributes["num_outputs"] = count
        g.add("Split", [x], count, **attributes)
        return
    cuts = sorted(int(c) for c in g.rng.permutation(np.arange(1, extent))[: count - 1])
    sizes = np.diff([0, *cuts, extent]).tolist()
    if g.opset >= 13:
        g.add("Split", [x, g.constant(np.array(sizes, np.int64))], count, **attributes)
    else:
        g.add("Split", [x], count, split=sizes, **attributes)


def cut(g: Graph) -> None:
    x = g.any(ALL, (1, 2, 3, 4, 4))
    axes = some_axes(g, x.rank)
    begins, ends, steps = [], [], []
    for a in axes:
        extent, step = x.shape[a], g.choose((1, 1, 1, 2, 3, -1, -2))
        low, high = sorted((g.number(0, extent), g.number(0, extent)))
        begin, end = (low, high) if step > 0 else (high, low - 1)
        if g.chance(0.3):
            begin, end = (0, g.choose((2**63 - 1, 1000))) if step > 0 else (g.choose((2**63 - 1, 1000)), -(2**63 - 1))
        elif g.chance(0.3):
            begin -= extent
        begins.append(begin)
        ends.append(end if step > 0 or end >= 0 else -(2**63 - 1))
        steps.append(step)
    lists = [g.constant(np.array(v, np.int64)) for v in (begins, ends, axes, steps)]
    g.add("Slice", [x, *lists] if set(steps) != {1} or g.chance(0.5) else [x, *lists[:3]])


def pad(g: Graph) -> None:
    x = g.any(("float32", "float32", "float64", "int32", "int64", "uint8"), (1, 2, 3, 4, 4))
    modes = ["constant", "constant", "reflect", "edge", *(["wrap"] if g.opset >= 19 else [])]
    mode = g.choose(modes)
    axes = some_axes(g, x.rank) if g.opset >= 18 and g.chance(0.4) else None
    count = len(axes) if axes is not None else x.rank
    low = -1 if mode == "constant" and g.chance(0.2) else 0
    pads = [g.number(low, 2) if g.chance(0.7) else 0 for _ in range(2 * count)]
    inputs: list[Tensor | None] = [x, g.constant(np.array(pads, np.int64))]
    if axes is not None or (mode == "constant" and g.chance(0.5)):
        inputs.append(g.constant(np.array(g.choose((0, 1, 2))).astype(x.dtype)))
    if axes is not None:
        inputs.append(g.constant(np.array(axes, np.int64)))
    g.add("Pad", inputs, mode=mode)


def expand(g: Graph) -> None:
    x = g.any(ALL, (0, 1, 2, 3, 4))
    shape = [n if n != 1 else g.choose((1, 2, 3)) for n in x.shape]
    shape = [g.choose((1, 2)) for _ in range(g.number(0, 1))] + [n if g.chance(0.7) else 1 for n in shape]
    g.add("Expand", [x, g.constant(np.array(shape, np.int64))])


def tile(g: Graph) -> None:
    x = g.any(("float32", "float64", "int32", "int64", "bool", "uint8"), (1, 2, 3, 4))
    g.add("Tile", [x, g.constant(np.array([g.choose((1, 1, 2, 3)) for _ in x.shape], np.int64))])


def gather(g: Graph) -> None:
    x = g.any(ALL, (1, 2, 3, 4))
    place = axis(g, x.rank)
    indices = _places(g, g.choose(((), (1,), (3,), (2, 3), (7,))), x.shape[place])
    g.add("Gather", [x, indices], axis=place)


def _places(g: Graph, shape: Sequence[int], extent: int) -> Tensor:
    """Places along an axis, some from its end: constants, or an input."""
    value = np.asarray(g.rng.integers(-extent, extent, shape)).astype(g.choose(("int64", "int32")))
    if g.chance(0.6):
        return g.constant(value)
    made = g.input(shape, str(value.dtype))
    g.tensors[made.name] = Tensor(made.name, value, value)
    return g.tensors[made.name]


def gather_elements(g: Graph) -> None:
    x = g.any(ALL, (1, 2, 3))
    place = axis(g, x.rank)
    shape = list(x.shape)
    shape[place] = g.choose((1, 2, 4))
    g.add("GatherElements", [x, _places(g, shape, x.shape[place])], axis=place)


def gather_nd(g: Graph) -> None:
    x = g.any(FLOATS, (1, 2, 3, 4))
    width, lead = g.number(1, x.rank), g.choose(((), (2,), (3, 2)))
    batch = 1 if g.opset >= 12 and x.rank > 1 and g.chance(0.3) else 0
    width = min(width, x.rank - batch)
    places = [g.rng.integers(-n, n, (*x.shape[:batch], *lead)) for n in x.shape[batch : batch + width]]
    g.add("GatherND", [x, g.constant(np.stack(places, axis=-1))], **({"batch_dims": batch} if batch else {}))


def scatter(g: Graph) -> None:
    x = g.any(("float32", "float32", "float64", "int32", "int64"), (1, 2, 3))
    place = g.number(0, x.rank - 1)
    count = g.number(1, x.shape[place])
    shape = [g.number(1, n) if d != place else count for d, n in enumerate(x.shape)]
    order = g.rng.permuted(
        np.broadcast_to(np.arange(x.shape[place])[:, None], (x.shape[place], int(np.prod(shape)))), axis=0
    )
    rows = [n for d, n in enumerate(shape) if d != place]
    indices = np.moveaxis(order[:count, : int(np.prod(rows))].reshape(count, *rows), 0, place)
    attributes: dict[str, Any] = {"axis": place - x.rank * g.number(0, 1)}
    if g.opset >= 16 and g.chance(0.4):
        attributes["reduction"] = g.choose(("add", "mul", *(("max", "min") if g.opset >= 18 else ())))
        indices = g.rng.integers(-x.shape[place], x.shape[place], shape)
    g.add("ScatterElements", [x, g.constant(indices.astype(np.int64)), g.weight(shape, x.dtype)], **attributes)


def scatter_nd(g: Graph) -> None:
    x = g.any(("float32", "float32", "float64", "int32", "int64", "bool"), (1, 2, 3))
    width = g.number(1, x.rank)
    rows = int(np.prod(x.shape[:width]))
    count = g.number(1, min(rows, 4))
    places = np.stack(np.unravel_index(g.rng.permutation(rows)[:count], x.shape[:width]), axis=-1)
    attributes = (
        {"reduction": g.choose(("add", "mul"))} if g.opset >= 16 and x.dtype != "bool" and g.chance(0.3) else {}
    )
    g.add(
        "ScatterND",
        [x, g.constant(places.astype(np.int64)), g.weight((count, *x.shape[width:]), x.dtype)],
        **attributes,
    )


def one_hot(g: Graph) -> None:
    x = g.any(("int64", "int32"), (1, 2))
    kind = g.choose(("float32", "int64", "int32"))
    depth = g.constant(np.array(g.choose((3, 10)), np.int64))
    g.add("OneHot", [x, depth, g.constant(np.array([0, 1]).astype(kind))], axis=g.choose((-1, 0, 1)))


def trilu(g: Graph) -> None:
    x = g.any(("float32", "float64", "int64"), (2, 3, 4))
    given = [g.constant(np.array(g.number(-2, 2), np.int64))] if g.chance(0.6) else []
    g.add("Trilu", [x, *given], upper=g.number(0, 1))


def shape_of(g: Graph) -> None:
    x = g.any(ALL, (1, 2, 3, 4))
    attributes = {"start": g.number(-2, 1), "end": g.number(1, 4)} if g.opset >= 15 and g.chance(0.3) else {}
    if g.chance(0.7):
        g.add("Shape", [x], **attributes)
    else:
        g.add("Size", [x])


def made(g: Graph) -> None:
    """Tensors made of nothing but constants."""
    which = g.choose(("Range", "ConstantOfShape", "EyeLike"))
    if which == "Range":
        kind = g.choose(("float32", "int64", "int32", "float64"))
        start, limit, step = (np.array(v).astype(kind) for v in (g.number(-3, 3), g.number(5, 9), g.number(1, 3)))
        g.add(which, [g.constant(v) for v in (start, limit, step)])
    elif which == "ConstantOfShape":
        value = helper.make_tensor("value", TensorProto.FLOAT, [1], [1.5])
        g.add(which, [g.constant(np.array(g.shape(2), np.int64))], **({"value": value} if g.chance(0.7) else {}))
    else:
        g.add(which, [g.any(("float32", "int32"), (2,))], k=g.number(-2, 2), dtype=g.choose((1, 7)))


def other_moves(g: Graph) -> None:
    which = g.choose(("ReverseSequence", "Compress", "CenterCropPad", "Col2Im"))
    if which == "ReverseSequence":
        x = g.any(("float32",), (2, 3))
        time, batch = (0, 1) if g.chance(0.5) else (1, 0)
        lengths = g.constant(g.rng.integers(1, x.shape[time] + 1, x.shape[batch]).astype(np.int64))
        g.add(which, [x, lengths], time_axis=time, batch_axis=batch)
    elif which == "Compress":
        x = g.any(("float32", "int64", "bool"), (1, 2, 3))
        place = g.number(0, x.rank - 1) if g.chance(0.7) else None
        count = int(np.prod(x.shape)) if place is None else x.shape[place]
        kept = g.constant(g.rng.random(g.number(1, count)) < 0.7)
        g.add(which, [x, kept], **({} if place is None else {"axis": place}))
    elif which == "CenterCropPad":
        x = g.any(("float32",), (2, 3, 4))
        g.add(which, [x, g.constant(np.array([max(1, n + g.number(-2, 2)) for n in x.shape], np.int64))])
    else:
        x = g.input((1, 2 * 4, 9), "float32")
        g.add(which, [x, *(g.constant(np.array(v, np.int64)) for v in ((4, 4), (2, 2)))])
