"""Random small programs that try what lowerings get wrong: guards, siblings with the same names, gathers, odd extents.

Every choice is drawn from a `random.Random`: one made from a seed for long runs, or Hypothesis's own, which shrinks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from random import Random

from program_tree import (
    FLOATS,
    INTEGERS,
    SIGNED,
    Input,
    Node,
    Program,
    Source,
    Stage,
    axis,
    cast,
    number,
    op,
    read,
    reads,
    test,
)

EXTENTS = (1, 1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17)
LARGER = (*EXTENTS, 24, 31, 32, 33, 48, 64)
AXES = ("i", "j", "k", "ax0", "x", "y", "i0", "x1")
"""Few names, so that stages share them; some are what a tile of another is called."""
STAGES = ("q", "out", "t", "T_add", "pad")
MOST_ELEMENTS = 800
MOST_POINTS = 12_000
_LARGER_SHARE, _LARGER_TIMES = 0.35, 5
"""Programs with more of each, where schedules have tiles to choose."""
_TYPES = (*("float32",) * 8, "float64", "float16", "bfloat16", *("int32",) * 2, *INTEGERS, "bool")
Axes = dict[str, tuple[int, int]]
"""Axis -> (first, extent)."""


def random_program(r: Random) -> Program:
    """A program of one to four stages, which may read all that came before; its outputs are the last, and others."""
    maker = _Maker(r)
    for _ in range(r.choice((1, 2, 2, 3, 3, 4))):
        for stage in r.choice(_STAGES)(maker):
            maker.stages.append(stage)
    while not maker.stages:
        maker.stages += _map(maker)
    return maker.program()


@dataclass
class _Maker:
    r: Random
    inputs: list[Input] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.base = self.r.choice(_TYPES)
        self.larger = self.chance(_LARGER_SHARE)
        times = _LARGER_TIMES if self.larger else 1
        self.most_elements, self.most_points = MOST_ELEMENTS * times, MOST_POINTS * times

    def program(self) -> Program:
        last = self.stages[-1]
        outputs = [Source(last, k) for k in range(len(last.bodies))]
        for stage in self.stages[:-1]:
            if self.r.random() < 0.15:
                outputs += [Source(stage, k) for k in range(len(stage.bodies))]
        used: set[Source] = set()
        kept: list[Stage] = []
        wanted = set(outputs)
        for stage in reversed(self.stages):
            if any(Source(stage, k) in wanted for k in range(len(stage.bodies))):
                kept.insert(0, stage)
                for body in stage.bodies:
                    wanted |= reads(body)
                    used |= reads(body)
        inputs = tuple(i for i in self.inputs if Source(i) in used)
        return Program(inputs, tuple(kept), tuple(outputs))

    # -- tensors ------------------------------------------------------------------------------------------------------

    def chance(self, share: float) -> bool:
        return self.r.random() < share

    def extent(self) -> int:
        return self.r.choice(LARGER if self.larger else EXTENTS)

    def shape(self, rank: int) -> tuple[int, ...]:
        shape = tuple(self.extent() for _ in range(rank))
        while prod(shape) > self.most_elements:
            shape = tuple(max(1, n // 2) for n in shape)
        return shape

    def dtype(self) -> str:
        return self.base if self.chance(0.8) else self.r.choice(_TYPES)

    def arithmetic(self) -> str:
        """A type that is no truth value."""
        found = self.dtype()
        return found if found != "bool" else "int32"

    def input(self, shape: tuple[int, ...], dtype: str = "") -> Source:
        item = Input(f"p{len(self.inputs)}", shape, dtype or self.dtype(), self.chance(0.12), self.chance(0.4))
        self.inputs.append(item)
        return Source(item)

    def source(self, rank: int = 0) -> Source:
        """A tensor to start from: mostly what the last stage computed."""
        made = [Source(s, k) for s in self.stages for k in range(len(s.bodies))]
        if made and self.chance(0.8):
            found = made[-1] if self.chance(0.75) else self.r.choice(made)
            if not rank or len(found.shape) == rank:
                return found
        return self.input(self.shape(rank or self.r.choice((1, 2, 2, 3, 4))))

    def name(self) -> str:
        """Draw the name of a stage: names come again, numbers tell the tensors apart for readers of a failure."""
        return self.r.choice(STAGES) + (str(len(self.stages)) if self.chance(0.5) else "")

    def axes(self, count: int) -> list[str]:
        return self.r.sample(AXES, count) if self.chance(0.5) else list(AXES[:count])

    def stage(
        self,
        axes: Sequence[tuple[str, int]],
        bodies: Sequence[Node],
        reduced: Sequence[tuple[str, int, int]] = (),
        combiner: str = "",
    ) -> list[Stage]:
        """The stage, or none where it is too large."""
        made = Stage(self.name(), tuple(axes), tuple(bodies), tuple(reduced), combiner)
        return [made] if prod(made.shape) <= self.most_elements and made.points <= self.most_points else []

    # -- reads --------------------------------------------------------------------------------------------------------

    def index(self, extent: int, axes: Axes, wanted: str = "") -> tuple[Node, list[Node]]:
        """An index into `extent` elements, and the conditions under which it is inside; `wanted` is the axis to use."""
        r = self.r
        fitting = [n for n, (low, count) in axes.items() if low + count <= extent]
        if wanted in fitting and self.chance(0.7):
            return axis(wanted), []
        if not axes or self.chance(0.05):
            return number(r.randrange(extent), "int32"), []
        name = wanted if wanted and self.chance(0.7) else r.choice([*axes])
        low, count = axes[name]
        last = low + count - 1
        value = axis(name)
        choice = r.randrange(7)
        if choice == 0 and last < extent:
            return op("sub", number(extent - 1, "int32"), value), []
        if choice == 1:
            return op("mod", op("add", value, number(r.randrange(5), "int32")), number(extent, "int32")), []
        if choice == 2:
            divisor = max(r.randint(2, 4), last // extent + 1)
            return op("floordiv", value, number(divisor, "int32")), []
        if choice == 3 and len(axes) > 1:
            other = r.choice([n for n in axes if n != name])
            inner_low, inner = axes[other]
            fused = op("add", op("mul", value, number(inner_low + inner, "int32")), axis(other))
            return op("mod", fused, number(extent, "int32")), []
        if choice == 4 and last and last < extent:
            scaled = op("mul", value, number((extent - 1) // last, "int32"))
            return scaled, []
        shifted = op("add", value, number(r.randint(-2, 2), "int32"))
        if choice == 5:
            shifted = op("sub", op("mul", value, number(2, "int32")), number(r.randint(0, 3), "int32"))
        return shifted, self.inside(shifted, extent)

    def inside(self, index: Node, extent: int) -> list[Node]:
        """The conditions for an index, in one of the ways to write them."""
        zero, end = number(0, "int32"), number(extent, "int32")
        choice = self.r.randrange(4)
        if choice == 0:
            outside = op("any", test("lt", index, zero), test("ge", index, end), dtype="bool")
            return [op("not", outside, dtype="bool")]
        low = test("ge", index, zero) if choice < 3 else test("le", zero, index)
        high = test("lt", index, end) if choice == 1 else test("le", index, number(extent - 1, "int32"))
        return [high, low] if self.chance(0.3) else [low, high]

    def element(self, tensor: Source, axes: Axes, order: Sequence[str] = ()) -> Node:
        """A read of a tensor at some place, behind its conditions where it needs any."""
        names = [*order, *axes][: len(tensor.shape)] if order else list(axes)[: len(tensor.shape)]
        if self.chance(0.15):
            self.r.shuffle(names)
        names += [""] * (len(tensor.shape) - len(names))
        found = [
            (number(0, "int32"), []) if n == 1 and self.chance(0.6) else self.index(n, axes, name)
            for n, name in zip(tensor.shape, names, strict=True)
        ]
        return self.guarded(read(tensor, [i for i, _ in found]), [c for _, conditions in found for c in conditions])

    def guarded(self, value: Node, conditions: list[Node]) -> Node:
        if not conditions:
            return value
        condition = op("all", *conditions, dtype="bool") if len(conditions) > 1 else conditions[0]
        if self.chance(0.1):
            return op("select", op("not", condition, dtype="bool"), self.constant(value.dtype), value)
        other = number(0, value.dtype) if self.chance(0.6) else self.constant(value.dtype)
        return op("select", condition, value, other)

    def constant(self, dtype: str) -> Node:
        if dtype == "bool":
            return number(self.r.randrange(2), dtype)
        if dtype in FLOATS:
            return number(self.r.choice((0.0, 1.0, -0.5, 2.0, 0.25, float("-inf"), 1.5)), dtype)
        return number(self.r.choice((0, 1, 2, 3, 5, 77, 127)), dtype)

    # -- expressions --------------------------------------------------------------------------------------------------

    def leaf(self, dtype: str, axes: Axes, order: Sequence[str] = ()) -> Node:
        choice = self.r.random()
        if choice < 0.1:
            return self.finite(dtype)
        if choice < 0.2 and axes:
            return self.cast(axis(self.r.choice([*axes])), dtype)
        known = [Source(s, k) for s in self.stages for k in range(len(s.bodies))] + [Source(i) for i in self.inputs]
        if known and self.chance(0.6):
            tensor = self.r.choice(known[-4:])
        else:
            shape = tuple(1 if self.chance(0.2) else count for _, count in list(axes.values())[: self.r.randint(1, 3)])
            tensor = self.input(
                shape if prod(shape) <= self.most_elements else shape[:1], dtype if self.chance(0.7) else ""
            )
        return self.cast(self.element(tensor, axes, order), dtype)

    def finite(self, dtype: str) -> Node:
        found = self.constant(dtype)
        return number(1.0, dtype) if found.number == float("-inf") else found

    def cast(self, value: Node, dtype: str) -> Node:
        """A conversion that has one meaning everywhere: floats that become integers fit them."""
        if value.dtype in FLOATS and dtype in INTEGERS:
            low = number(-100.0 if dtype in SIGNED else 0.0, value.dtype)
            value = op("max", op("min", value, number(100.0, value.dtype)), low)
        return cast(value, dtype)

    def expression(self, dtype: str, axes: Axes, depth: int, order: Sequence[str] = ()) -> Node:
        """A value of a type over some axes."""
        r = self.r
        if depth <= 0 or self.chance(0.15):
            return self.leaf(dtype, axes, order)

        def inner(kind: str = dtype) -> Node:
            return self.expression(kind, axes, depth - 1, order)

        if self.chance(0.2):
            return op("select", self.condition(axes, depth - 1, order), inner(), inner())
        if dtype == "bool":
            return self.condition(axes, depth - 1, order)
        if self.chance(0.12):
            return self.cast(inner(r.choice(_TYPES)), dtype)
        if dtype in FLOATS:
            choice = r.random()
            if choice < 0.2:
                return self.function(inner())
            if choice < 0.25:
                return op("div", inner(), op("add", op("abs", inner()), number(1.0, dtype)))
            return op(r.choice(("add", "sub", "mul", "max", "min", "add", "mul")), inner(), inner())
        choice = r.randrange(10)
        if choice == 0:
            return op(r.choice(("shl", "shr")), inner(), number(r.randint(0, 9), dtype))
        if choice == 1:
            divisor = number(r.choice((1, 2, 3, 5, 7, 16, -3) if dtype in SIGNED else (1, 2, 3, 5, 7, 16)), dtype)
            return op(r.choice(("floordiv", "mod")), inner(), divisor)
        if choice == 2:
            return op(r.choice(("neg", "abs")) if dtype in SIGNED else "abs", inner())
        names = ("add", "sub", "mul", "add", "mul", "max", "min", "and", "or", "xor")
        return op(r.choice(names), inner(), inner())

    def function(self, value: Node) -> Node:
        name = self.r.choice(
            ("exp", "tanh", "sqrt", "log", "sin", "erf", "floor", "ceil", "round", "trunc", "abs", "neg")
        )
        one = number(1.0, value.dtype)
        if name == "exp":
            value = op("min", value, one)
        elif name in ("sqrt", "log"):
            value = op("add", op("abs", value), one)
        return op(name, value)

    def condition(self, axes: Axes, depth: int, order: Sequence[str] = ()) -> Node:
        r = self.r
        choice = r.random()
        if depth > 0 and choice < 0.25:
            parts = [self.condition(axes, depth - 1, order) for _ in range(2)]
            return op(r.choice(("all", "all", "any")), *parts, dtype="bool")
        if depth > 0 and choice < 0.32:
            return op("not", self.condition(axes, depth - 1, order), dtype="bool")
        if choice < 0.75 and axes:
            name = r.choice([*axes])
            low, count = axes[name]
            limit = number(r.randint(low, low + count), "int32")
            value = axis(name)
            if self.chance(0.3):
                value = op("mod", value, number(r.randint(2, 4), "int32"))
            elif self.chance(0.3):
                value = op("add", value, op("mul", axis(r.choice([*axes])), number(r.choice((1, 2, -1)), "int32")))
            return test(r.choice(("lt", "le", "gt", "ge", "eq")), value, limit)
        kind = self.arithmetic()
        values = [self.expression(kind, axes, min(depth, 1), order) for _ in range(2)]
        return test(r.choice(("lt", "le", "gt", "ge", "eq", "ne")), *values)


def _axes_of(axes: Sequence[tuple[str, int]], reduced: Sequence[tuple[str, int, int]] = ()) -> Axes:
    return {**{name: (0, extent) for name, extent in axes}, **{name: (low, extent) for name, low, extent in reduced}}


# -- kinds of stages --------------------------------------------------------------------------------------------------


def _map(m: _Maker) -> list[Stage]:
    """Element by element, of the shape of a tensor or nearly so; perhaps several values at once."""
    source = m.source()
    shape = [max(1, n + m.r.choice((0, 0, 0, 0, 1, -1, 3))) for n in source.shape]
    axes = list(zip(m.axes(len(shape)), shape, strict=True))
    kinds = [m.dtype() for _ in range(m.r.choice((1, 1, 1, 1, 2)))]
    names = [name for name, _ in axes]
    bodies = []
    for kind in kinds:
        first = m.element(source, _axes_of(axes), names)
        other = m.expression(kind, _axes_of(axes), m.r.randint(0, 3), names)
        first = m.cast(first, kind)
        bodies.append(
            test("ne", first, other) if kind == "bool" else op(m.r.choice(("add", "mul", "max")), first, other)
        )
    return m.stage(axes, bodies)


def _pad(m: _Maker) -> list[Stage]:
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


def _combiner(m: _Maker, dtype: str) -> str:
    return m.r.choice(("add", "add", "max", "min", *(("mul",) if dtype in INTEGERS else ())))


def _reduced(m: _Maker, extents: Sequence[int], taken: Sequence[str]) -> list[tuple[str, int, int]]:
    names = [n for n in (*AXES, "r", "s", "rv") if n not in taken]
    return [(name, 0, n) for name, n in zip(m.r.sample(names, len(extents)), extents, strict=True)]


def _window(m: _Maker) -> list[Stage]:
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


def _contraction(m: _Maker) -> list[Stage]:
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


def _reduction(m: _Maker) -> list[Stage]:
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
        value = op("mul", value, m.expression(kind, _axes_of(axes, reduced), 1, names))
    return m.stage(axes, [value], reduced, _combiner(m, kind))


def _best(m: _Maker) -> list[Stage]:
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


def _rows(m: _Maker) -> list[Stage]:
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


def _move(m: _Maker) -> list[Stage]:
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


def _stencil(m: _Maker) -> list[Stage]:
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


_STAGES: tuple[Callable[[_Maker], list[Stage]], ...] = (
    *(_map, _map, _map, _pad, _pad, _window, _window, _window, _contraction, _contraction, _contraction),
    *(_reduction, _reduction, _best, _rows, _move, _stencil),
)
