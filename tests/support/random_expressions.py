"""Inputs, axes and expressions of random programs, drawn from a `random.Random`."""

from __future__ import annotations

from collections.abc import Sequence
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


@dataclass
class Maker:
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


def axes_of(axes: Sequence[tuple[str, int]], reduced: Sequence[tuple[str, int, int]] = ()) -> Axes:
    return {**{name: (0, extent) for name, extent in axes}, **{name: (low, extent) for name, low, extent in reduced}}
