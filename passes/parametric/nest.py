"""A scheduled program as stages in loops, with extents, accesses and arithmetic, of one candidate or of many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ...dialects.strides import row_major
from ...dialects.target import Target
from .index import Cap, Index
from .sizes import Size, is_one, total

KINDS = ("add", "multiply", "divide", "compare", "special", "integer", "convert")
"""Kinds of arithmetic. Selections and predicates are not counted: masks come and go with tile sizes."""


@dataclass(eq=False)
class Buffer:
    """A buffer: its extents, its scope, and the padding of `storage_align` as (dimension, factor, offset)."""

    name: str
    shape: list[Size]
    element_bytes: int
    scope: str
    is_argument: bool
    align: tuple[Size, Size, Size] | None = None
    kept: list[Size] | None = None
    """The extents that the lowering allocates, where it has been asked."""

    @property
    def strides(self) -> list[Size]:
        """Elements from one index to the next, dimension by dimension."""
        return row_major(self.shape, self.align)

    @property
    def elements(self) -> Size:
        """Number of elements from the first to the last, padding between them included."""
        return 1 + total([(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)])


@dataclass(eq=False)
class Access:
    """One read or write: indices over the iterators of its stage."""

    buffer: Buffer
    indices: list[Index]

    def substituted(self, values: Mapping[str, Index]) -> Access:
        """The same access with names of iterators replaced by expressions."""
        return Access(self.buffer, [e.substitute(values) for e in self.indices])


@dataclass(eq=False)
class Loop:
    """A loop and what is in it; the loop without a parent stands for the function."""

    name: str
    extent: Size
    kind: str = "serial"
    notes: dict[str, Size] = field(default_factory=dict)
    parent: Loop | None = None
    body: list[Loop | Stage] = field(default_factory=list)

    @property
    def shares_a_block(self) -> bool:
        """True for threads and virtual threads of a block of a GPU."""
        return self.kind.startswith(("threadIdx", "vthread"))

    def add(self, child: Loop | Stage, position: int | None = None) -> None:
        """Put a child in, at the end unless a position is given."""
        child.parent = self
        self.body.insert(len(self.body) if position is None else position, child)

    def stages(self) -> Iterator[Stage]:
        """Yield all stages below, in program order."""
        waiting = self.body[::-1]
        while waiting:
            child = waiting.pop()
            if isinstance(child, Stage):
                yield child
            else:
                waiting.extend(reversed(child.body))

    def loops_below(self) -> Iterator[Loop]:
        """Yield all loops below, outer before inner."""
        for child in self.body:
            if isinstance(child, Loop):
                yield child
                yield from child.loops_below()

    @property
    def path(self) -> list[Loop]:
        """The loops around and itself, outermost first, without the function."""
        path: list[Loop] = []
        loop: Loop | None = self
        while loop is not None and loop.parent is not None:
            path.append(loop)
            loop = loop.parent
        return path[::-1]

    @property
    def names_around(self) -> set[str]:
        """The names that a new loop in its place must not take."""
        return {loop.name for loop in (*self.path, *self.loops_below())}

    def child_holding(self, stage: Stage) -> Loop | Stage:
        """Return the loop's direct child that is or holds `stage`."""
        child: Loop | Stage = stage
        while child.parent is not self:
            assert child.parent is not None
            child = child.parent
        return child

    def replace(self, new: Loop | Stage) -> None:
        """Put `new` in the place of the loop, whose body has been moved away."""
        parent = self.parent
        assert parent is not None
        position = parent.body.index(self)
        parent.body.pop(position)
        self.parent = None
        parent.add(new, position)


@dataclass
class SizedAxis:
    """An iterator of a stage, its extent, and what it is over the loops around."""

    name: str
    extent: Size
    is_reduce: bool
    bound: Index


@dataclass(eq=False)
class Stage:
    """A block: iterators, reads, writes, and the arithmetic of one instance by kind."""

    name: str
    iterators: list[SizedAxis]
    writes: list[Access]
    loads: list[Access]
    arithmetic: dict[str, int] = field(default_factory=dict)
    combiner: str = "none"
    joining: dict[str, int] = field(default_factory=dict)
    """The arithmetic of the combiner alone, which `arithmetic` holds as well."""
    notes: dict[str, Size] = field(default_factory=dict)
    parent: Loop | None = None
    caps: list[Cap] = field(default_factory=list)
    """The predicates that leave out the last iterations of loops; the others are not kept."""

    @property
    def is_reduction(self) -> bool:
        return self.combiner != "none"

    @property
    def loops(self) -> list[Loop]:
        """The loops around, outermost first, without the function."""
        return self.parent.path if self.parent is not None else []

    @property
    def bound(self) -> dict[str, Index]:
        """Each iterator over the loops around."""
        return {i.name: i.bound for i in self.iterators}

    @property
    def accesses(self) -> list[Access]:
        return [*self.writes, *self.loads]

    def loop_names(self, reduce: bool) -> set[str]:
        """The loops that reduce, or the others, iterators are bound to."""
        return {n for i in self.iterators if i.is_reduce == reduce for n in i.bound.names}

    @property
    def dimension_of(self) -> dict[str, int]:
        """The dimension of its buffer that each spatial iterator writes."""
        names = [e.as_name for e in self.writes[0].indices]
        return {n: d for d, n in enumerate(names) if n is not None}

    def output(self, buffer: str) -> Access:
        """The write to the buffer called so, or the first one for no name."""
        return next(a for a in self.writes if not buffer or a.buffer.name == buffer)

    def take_out(self) -> None:
        """Detach the stage and the loops that hold nothing else."""
        child: Loop | Stage = self
        while (parent := child.parent) is not None and parent.parent is not None and len(parent.body) == 1:
            child = parent
        assert child.parent is not None
        child.parent.body.remove(child)
        child.parent = None
        self.parent = None

    def substitute_loops(self, values: Mapping[str, Index]) -> None:
        """Replace names of loops by expressions."""
        for iterator in self.iterators:
            iterator.bound = iterator.bound.substitute(values)
        self.caps = [cap.substitute(values) for cap in self.caps]


@dataclass(eq=False)
class Nest:
    """A function on loops, and its target."""

    root: Loop
    buffers: dict[str, Buffer]
    target: Target

    def stage(self, name: str) -> Stage:
        """The stage called `name`; KeyError where there is none."""
        for stage in self.root.stages():
            if stage.name == name:
                return stage
        raise KeyError(f"no stage is called '{name}'")

    def loop(self, stage: str, name: str) -> Loop:
        """The loop called `name` around a stage; KeyError where there is none."""
        for loop in self.stage(stage).loops:
            if loop.name == name:
                return loop
        raise KeyError(f"stage '{stage}' is in no loop '{name}'")

    @property
    def stage_names(self) -> set[str]:
        """The names that a new stage must not take; a new buffer must not take those of `buffers` either."""
        return {stage.name for stage in self.root.stages()}

    def readers(self, buffer: Buffer) -> list[Stage]:
        """The stages that read a buffer, in program order."""
        return [s for s in self.root.stages() if any(a.buffer is buffer for a in s.loads)]

    def writers(self, buffer: Buffer) -> list[Stage]:
        """The stages that write a buffer, in program order."""
        return [s for s in self.root.stages() if any(a.buffer is buffer for a in s.writes)]

    def owner_of(self, buffer: Buffer) -> Loop | None:
        """The innermost loop around all that uses a buffer, outside of what reduces into it; None for no such loop."""
        common: list[Loop] | None = None
        for stage in self.root.stages():
            if not any(a.buffer is buffer for a in stage.accesses):
                continue
            path = stage.loops
            if any(a.buffer is buffer for a in stage.writes) and stage.is_reduction:
                reducing = stage.loop_names(reduce=True)
                first = next((k for k, x in enumerate(path) if x.name in reducing and not is_one(x.extent)), len(path))
                path = path[:first]
            shared = 0
            if common is None:
                common = path
                continue
            while shared < min(len(common), len(path)) and common[shared] is path[shared]:
                shared += 1
            common = common[:shared]
        return common[-1] if common else None

    def add_copy(self, copy: Stage, position: int) -> None:
        """Put a copy into the function, in a loop for each of its iterators, and its new buffers into the nest."""
        self.root.add(nested(copy, [Loop(a.name, a.extent) for a in copy.iterators]), position)
        for access in copy.accesses:
            self.buffers.setdefault(access.buffer.name, access.buffer)

    def forget(self) -> None:
        """Take loops and stages apart, which refer to each other: they end with the nest, without a collector."""
        for loop in [self.root, *self.root.loops_below()]:
            for child in loop.body:
                child.parent = None
            loop.body.clear()

    def top_level(self, stage: Stage) -> Loop | Stage:
        """The outermost loop around a stage, or itself."""
        loops = stage.loops
        return loops[0] if loops else stage


def nested(inner: Loop | Stage, loops: Iterable[Loop]) -> Loop | Stage:
    """`inner` in loops that hold nothing yet, the first outermost."""
    for loop in reversed(list(loops)):
        loop.add(inner)
        inner = loop
    return inner
