"""Random small programs that try what lowerings get wrong: guards, siblings with the same names, gathers, odd extents.

Every choice is drawn from a `random.Random`: one made from a seed for long runs, or Hypothesis's own, which shrinks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from random import Random

from program_tree import (
    FLOATS,
    INTEGERS,
    Node,
    Program,
    Source,
    Stage,
    axis,
    number,
    op,
    read,
    test,
)
from random_expressions import AXES, Maker, axes_of


def random_program(r: Random) -> Program:
    """A program of one to four stages, which may read all that came before; its outputs are the last, and others."""
    maker = Maker(r)
    for _ in range(r.choice((1, 2, 2, 3, 3, 4))):
        for stage in r.choice(_STAGES)(maker):
            maker.stages.append(stage)
    while not maker.stages:
        maker.stages += _map(maker)
    return maker.program()


def _map(m: Maker) -> list[Stage]:
    """Element by element, of the shape of a tensor or nearly so; perhaps several values at once."""
    source = m.source()
    shape = [max(1, n + m.r.choice((0, 0, 0, 0, 1, -1, 3))) for n in source.shape]
    axes = list(zip(m.axes(len(shape)), shape, strict=True))
    kinds = [m.dtype() for _ in range(m.r.choice((1, 1, 1, 1, 2)))]
    names = [name for name, _ in axes]
    bodies = []
    for kind in kinds:
        first = m.element(source, axes_of(axes), names)
        other = m.expression(kind, axes_of(axes), m.r.randint(0, 3), names)
        first = m.cast(first, kind)
        bodies.append(
            test("ne", first, other) if kind == "bool" else op(m.r.choice(("add", "mul", "max")), first, other)
        )
    return m.stage(axes, bodies)


def _pad(m: Maker) -> list[Stage]:
    """A tensor with a border, on some sides."""
    source = m.source()
    before = [m.r.choice((0, 1, 2)) for _ in source.shape]
    after = [m.r.choice((0, 0, 1, 3, 7)) for _ in source.shape]
    shape = [n + b + a for n, b, a in zip(source.shape, before, after, strict=True)]
    axes = list(zip(m.axes(len(shape)), shape, strict=True))
    indices, conditions = [], []
    for (name, _), n, b, a in zip(axes, source.shape, before, after, strict=True):
        index = op("sub", axis(name), number(b, "int32")) if b else axis(name)
        indices.append(index)
        if b and a:
            conditions += m.inside(index, n)
        elif b:
            conditions.append(test("ge", axis(name), number(b, "int32")))
        elif a:
            conditions.append(test("lt", axis(name), number(n, "int32")))
    return m.stage(axes, [m.guarded(read(source, indices), conditions)])


def _combiner(m: Maker, dtype: str) -> str:
    return m.r.choice(("add", "add", "max", "min", *(("mul",) if dtype in INTEGERS else ())))


def _reduced(m: Maker, extents: Sequence[int], taken: Sequence[str]) -> list[tuple[str, int, int]]:
    names = [n for n in (*AXES, "r", "s", "rv") if n not in taken]
    return [(name, 0, n) for name, n in zip(m.r.sample(names, len(extents)), extents, strict=True)]


def _window(m: Maker) -> list[Stage]:
    """Windows of the last axes, perhaps strided, dilated, weighted, read through a guard."""
    source = m.source()
    rank = min(len(source.shape), m.r.randint(1, 2))
    sizes = [m.r.randint(1, min(3, n)) for n in source.shape[-rank:]]
    stride, pad = m.r.choice((1, 1, 2, 3)), m.r.choice((0, 0, 1))
    shape = [
        *source.shape[:-rank],
        *((n + 2 * pad - k) // stride + 1 for n, k in zip(source.shape[-rank:], sizes, strict=True)),
    ]
    axes = list(zip(m.axes(len(shape)), shape, strict=True))
    reduced = _reduced(m, sizes, [name for name, _ in axes])
    indices: list[Node] = [axis(name) for name, _ in axes[:-rank]]
    conditions = []
    for (name, _), (r, _, _), n in zip(axes[-rank:], reduced, source.shape[-rank:], strict=True):
        place = op("mul", axis(name), number(stride, "int32")) if stride > 1 else axis(name)
        place = op("add", place, axis(r))
        if pad:
            place = op("sub", place, number(pad, "int32"))
            conditions += m.inside(place, n)
        indices.append(place)
    value = m.guarded(read(source, indices), conditions)
    kind = m.arithmetic() if value.dtype == "bool" or m.chance(0.2) else value.dtype
    value = m.cast(value, kind)
    if m.chance(0.5):
        value = op("mul", value, read(m.input(tuple(sizes), kind), [axis(name) for name, *_ in reduced]))
    return m.stage(axes, [value], reduced, _combiner(m, kind))


def _contraction(m: Maker) -> list[Stage]:
    """Sums of products over some axes, with axes that both share and axes of their own."""
    source = m.source()
    rank = len(source.shape)
    summed = sorted(m.r.sample(range(rank), m.r.randint(1, min(2, rank))))
    kept = [d for d in range(rank) if d not in summed]
    fresh = [m.extent() for _ in range(m.r.randint(0, 2))]
    names = m.axes(min(len(AXES), len(kept) + len(fresh)))
    if len(names) < len(kept) + len(fresh) or not names:
        return []
    shape = [source.shape[d] for d in kept] + fresh
    reduced = _reduced(m, [source.shape[d] for d in summed], names)
    where = {**dict(zip(kept, names, strict=False)), **{d: r[0] for d, r in zip(summed, reduced, strict=True)}}
    extents = {**dict(zip(names, shape, strict=True)), **{r[0]: r[2] for r in reduced}}
    used = [r[0] for r in reduced] + names[len(kept) :] + [where[d] for d in kept if m.chance(0.3)]
    m.r.shuffle(used)
    kind = m.arithmetic() if source.dtype == "bool" or m.chance(0.2) else source.dtype
    other_shape = tuple(extents[name] for name in used)
    if prod(other_shape) > m.most_elements:
        return []
    left = m.cast(read(source, [axis(where[d]) for d in range(rank)]), kind)
    right = m.cast(read(m.input(other_shape, "" if m.chance(0.1) else source.dtype), [axis(n) for n in used]), kind)
    axes = list(zip(names, shape, strict=True))
    if m.chance(0.3):
        m.r.shuffle(axes)
    return m.stage(axes, [op("mul", left, right)], reduced, "add" if m.chance(0.9) else "max")


def _reduction(m: Maker) -> list[Stage]:
    """Any expression reduced over some axes, perhaps from a first value on."""
    source = m.source()
    rank = len(source.shape)
    summed = sorted(m.r.sample(range(rank), m.r.randint(1, rank)))
    names = m.axes(rank)
    axes = [(names[d], source.shape[d]) for d in range(rank) if d not in summed]
    reduced = [(names[d], 0, source.shape[d]) for d in summed]
    if m.chance(0.2):
        name, _, extent = reduced[-1]
        low = m.r.randint(0, extent - 1)
        reduced[-1] = (name, low, extent - low)
    if not axes or m.chance(0.1):
        axes.append(("one", 1))
    value = read(source, [axis(n) for n in names])
    kind = m.arithmetic() if value.dtype == "bool" or m.chance(0.2) else value.dtype
    value = m.cast(value, kind)
    if m.chance(0.4):
        value = op("mul", value, m.expression(kind, axes_of(axes, reduced), 1, names))
    return m.stage(axes, [value], reduced, _combiner(m, kind))


def _best(m: Maker) -> list[Stage]:
    """The largest or smallest value of each row, and where it is."""
    source = m.source()
    if source.dtype == "bool":
        return []
    rank = len(source.shape)
    summed = sorted(m.r.sample(range(rank), m.r.randint(1, min(2, rank))))
    names = m.axes(rank)
    axes = [(names[d], source.shape[d]) for d in range(rank) if d not in summed] or [("one", 1)]
    reduced = [(names[d], 0, source.shape[d]) for d in summed]
    place = axis(reduced[0][0])
    for name, _, extent in reduced[1:]:
        place = op("add", op("mul", place, number(extent, "int32")), axis(name))
    value = read(source, [axis(n) for n in names])
    return m.stage(
        axes, [value, m.cast(place, m.r.choice(("int32", "int64")))], reduced, m.r.choice(("argmax", "argmin"))
    )


def _rows(m: Maker) -> list[Stage]:
    """A softmax, or the like of it: a row's maximum, then what is over a row's sum."""
    kinds = [k for k in (m.base, "float32") if k in FLOATS]
    source = m.source()
    if source.dtype not in FLOATS:
        source = m.input(m.shape(m.r.randint(1, 2)), kinds[0])
    names = m.axes(len(source.shape))
    row = m.r.randrange(len(names))
    axes = [(n, e) for d, (n, e) in enumerate(zip(names, source.shape, strict=True)) if d != row] or [("one", 1)]
    reduced = [(names[row], 0, source.shape[row])]
    most = m.stage(axes, [read(source, [axis(n) for n in names])], reduced, "max")
    if not most:
        return []
    outer = [axis(n) for n, _ in axes] if axes[0][0] != "one" else [number(0, "int32")]
    at = [axis(n) for n in names]
    power = op("exp", op("sub", read(source, at), read(Source(most[0]), outer)))
    whole = list(zip(names, source.shape, strict=True))
    m.stages += most
    powers = m.stage(whole, [power])
    m.stages += powers
    sums = m.stage(axes, [read(Source(powers[0]), at)], reduced, "add")
    m.stages += sums
    return m.stage(whole, [op("div", read(Source(powers[0]), at), read(Source(sums[0]), outer))])


def _move(m: Maker) -> list[Stage]:
    """A transpose, a reshape or two tensors side by side."""
    source = m.source()
    rank, shape = len(source.shape), source.shape
    choice = m.r.randrange(3)
    if choice == 0:
        order = m.r.sample(range(rank), rank)
        axes = list(zip(m.axes(rank), [shape[d] for d in order], strict=True))
        return m.stage(axes, [read(source, [axis(axes[order.index(d)][0]) for d in range(rank)])])
    if choice == 1:
        total = prod(shape)
        width = m.r.choice([n for n in range(1, total + 1) if total % n == 0])
        axes = list(zip(m.axes(2), (total // width, width), strict=True))
        flat = op("add", op("mul", axis(axes[0][0]), number(width, "int32")), axis(axes[1][0]))
        indices, left = [], total
        for n in shape:
            left //= n
            place = op("floordiv", flat, number(left, "int32")) if left > 1 else flat
            indices.append(op("mod", place, number(n, "int32")))
        return m.stage(axes, [read(source, indices)])
    along = m.r.randrange(rank)
    other_shape = tuple(m.extent() if d == along else n for d, n in enumerate(shape))
    if prod(other_shape) > m.most_elements:
        return []
    other = m.input(other_shape, source.dtype)
    axes = [
        (n, e + (other_shape[d] if d == along else 0)) for d, (n, e) in enumerate(zip(m.axes(rank), shape, strict=True))
    ]
    at = [axis(n) for n, _ in axes]
    moved = [op("sub", a, number(shape[along], "int32")) if d == along else a for d, a in enumerate(at)]
    first = test("lt", at[along], number(shape[along], "int32"))
    return m.stage(axes, [op("select", first, read(source, at), read(other, moved))])


def _stencil(m: Maker) -> list[Stage]:
    """Neighbours along some axes, weighed and added; beyond the border they are 0, or there is none."""
    source = m.source()
    if source.dtype == "bool":
        return []
    rank = len(source.shape)
    along = [d for d in range(rank) if source.shape[d] >= 3 and m.chance(0.7)]
    whole = m.chance(0.4)
    shape = [n if whole or d not in along else n - 2 for d, n in enumerate(source.shape)]
    axes = list(zip(m.axes(rank), shape, strict=True))
    terms = []
    for step in m.r.sample(range(3), m.r.randint(2, 3)):
        moved = step - 1 if whole else step
        indices, conditions = [], []
        for d, (name, _) in enumerate(axes):
            index = op("add", axis(name), number(moved, "int32")) if d in along and moved else axis(name)
            indices.append(index)
            if whole and d in along and moved:
                conditions += m.inside(index, source.shape[d])
        value = m.guarded(read(source, indices), conditions)
        terms.append(op("mul", value, m.finite(source.dtype)) if m.chance(0.5) else value)
    total = terms[0]
    for term in terms[1:]:
        total = op(m.r.choice(("add", "sub", "max")), total, term)
    return m.stage(axes, [total])


def _repeated(m: Maker) -> list[Stage]:
    """A tensor whose first and last elements along an axis are repeated, and what neighbours there make."""
    source = m.source()
    rank, shape = len(source.shape), list(source.shape)
    along, before, after = m.r.randrange(rank), m.r.choice((0, 1, 2)), m.r.choice((0, 1, 3))
    extent = shape[along]
    shape[along] += before + after
    axes = list(zip(m.axes(rank), shape, strict=True))
    own = [axis(name) for name, _ in axes]

    def at(index: Node) -> Node:
        return read(source, [index if d == along else place for d, place in enumerate(own)])

    value = at(op("sub", own[along], number(before, "int32")) if before else own[along])
    if after:
        value = op(
            "select", test("lt", own[along], number(extent + before, "int32")), value, at(number(extent - 1, "int32"))
        )
    if before:
        value = op("select", test("lt", own[along], number(before, "int32")), at(number(0, "int32")), value)
    stages = m.stage(axes, [value])
    if not stages or shape[along] < 2 or source.dtype == "bool":
        return stages
    m.stages += stages
    axes = [(name, n - 1 if d == along else n) for d, (name, n) in enumerate(axes)]
    moved = [op("add", place, number(1, "int32")) if d == along else place for d, place in enumerate(own)]
    return m.stage(axes, [op("sub", read(Source(stages[0]), own), read(Source(stages[0]), moved))])


def _channels(m: Maker) -> list[Stage]:
    """A convolution: windows of the last axes, summed over the first one, for some channels."""
    source = m.source(m.r.randint(2, 3))
    if len(source.shape) < 2 or source.dtype == "bool":
        return []
    stride, sizes = m.r.choice((1, 2, 2, 3)), [m.r.randint(1, min(3, n)) for n in source.shape[1:]]
    shape = [m.extent(), *((n - k) // stride + 1 for n, k in zip(source.shape[1:], sizes, strict=True))]
    axes = list(zip(m.axes(len(shape)), shape, strict=True))
    if len(axes) < len(shape):
        return []
    reduced = _reduced(m, [source.shape[0], *sizes], [name for name, _ in axes])
    indices: list[Node] = [axis(reduced[0][0])]
    for (name, _), (r, _, _) in zip(axes[1:], reduced[1:], strict=True):
        place = op("mul", axis(name), number(stride, "int32")) if stride > 1 else axis(name)
        indices.append(op("add", place, axis(r)))
    weight = m.input((shape[0], *(n for *_, n in reduced)), source.dtype)
    taken = read(weight, [axis(axes[0][0]), *(axis(r) for r, *_ in reduced)])
    return m.stage(axes, [op("mul", read(source, indices), taken)], reduced, "add")


_STAGES: tuple[Callable[[Maker], list[Stage]], ...] = (
    *(_map, _map, _map, _pad, _pad, _window, _window, _window, _contraction, _contraction, _contraction),
    *(_reduction, _reduction, _best, _rows, _move, _stencil, _repeated, _channels, _channels),
)
