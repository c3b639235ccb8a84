"""Reductions across memory or over windows, such as column sums and pooling: results in lanes and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy.typing as npt

from ...dialects.attributes import Axis
from ...dialects.loop import BlockOp, ForOp
from ...dialects.target import Target
from ...passes.analysis.nest import loops_reduced
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..sketch import arrays as np
from ..sketch.draft import Draft
from ..sketch.hole import Columns, Derived, Hole, Kind, Limit, Number
from ..structure.chains import along_reduce
from ..structure.strides import lanes_of_block, nearly_in_rows
from ._choices import up_to
from ._lanes import TASKS_A_CORE, deal, lane_choices, loops_together, not_idle, parallel_elements

SHORT = 8
"""A reduce axis up to this extent, such as a window's, is written out whole or not at all. With 4 and 16 none of 58
default schedules changes (Zen 3): filters are shorter, other axes longer."""
MOST_COPIES = 256
"""Updates of vectors that are written out at most: see `passes.build_limits`, of which they are a sixteenth."""
USUAL_COPIES = 64
"""Updates of vectors that are written out without a search. With 16 one of 58 default schedules changes, and takes 1.20
of the time (means over rows); with 256 none (Zen 3)."""
USUAL_WINDOW = 32
"""Terms of a window that are written out without a search. With 8 one of 58 default schedules changes, in 1.01 of the
time; with 128 none (Zen 3)."""
PAIRED_ROW = 4
"""Vectors of a row from which on its partial pairs are worth joining one by one. With 2 and 16 none of 58 default
schedules changes (Zen 3): rows of networks are longer. A choice between."""
VECTORS = (1, 2, 4, 8, 16)
"""Vectors of results side by side."""
USUAL_VECTORS = 8
"""Vectors side by side without a search, at most, where rows of steps are read: sums that wait for no other. With 16
one of 58 default schedules changes, in 1.04 of the time; with 4 none (Zen 3)."""
USUAL_VECTORS_OF_WINDOW = 4
"""The same for windows, whose terms are written out too, and for pairs, which take two registers and a comparison. With
2 and 8 none of 58 default schedules changes: pools of networks have fewer columns."""
STRIPS = (1, 2, 4, 8, 16, 32)
"""Number of such vectors in a strip."""
STEPS = (1, 2, 4, 8)
"""Iterations of a long reduce axis that are written out."""


def in_columns(block: BlockOp, target: Target) -> bool:
    """True for a reduction whose neighbouring results come from neighbouring elements, or elements a few apart.

    False where what it reduces over is contiguous itself and fills vectors. Pairs, such as value and position, take so
    long to join that lanes of results pay even where each gathers its elements from a short row of its own.
    """
    axis = _column(block)
    reduce = [a for a in block.axes if a.reduce and a.extent > 1]
    if axis is None or not reduce:
        return False
    lanes = lanes_of_block(block, target)
    paired = block.combiner.data == "custom"
    if along_reduce(block) and reduce[-1].extent >= (PAIRED_ROW if paired else 2) * lanes:
        return False
    return nearly_in_rows(block, axis.name) or (axis.extent >= lanes // 2 and (paired or not along_reduce(block)))


def _column(block: BlockOp) -> Axis | None:
    """The last axis of the results, where it is a loop of its own."""
    if len({write[-1:] for write in block.write_indices}) != 1 or not block.write_indices[0]:
        return None
    axes = {a.name: a for a in block.axes if not a.reduce and a.extent > 1}
    names = [e.as_axis() for e in block.write_indices[0]]
    found = next((axes[n] for n in reversed(names) if n in axes), None)
    loops = [loop.loop_name for loop in block.enclosing_loops]
    return found if found is not None and found.name in loops else None


@dataclass(frozen=True)
class ColumnPlan:
    """`for rows { for columns { for steps { S } } }` -> strips of columns, in them a few steps at a time, vectors.

    `columns` become one loop, in strips of `strip` times `vectors` side by side of so many `lanes`, whose sums stay in
    registers. Of the reduce loops `long` are around that, `short` inside of it; `copies` are how many iterations of
    which are written out. `strip` is None where no long loop is worth a strip. `dealt` are the rows that alone feed the
    threads, or where they do not also the strips; None where threads would not pay.
    """

    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    long: tuple[str, ...]
    lanes: Number
    vectors: Number
    strip: Number | None
    copies: dict[str, Hole | int]
    limits: tuple[Limit, ...]
    dealt: str | None

    def numbers(self) -> list[Hole]:
        """Return the holes in the order they have in a sketch."""
        numbers = (self.lanes, self.vectors, self.strip, *self.copies.values())
        return [number for number in numbers if isinstance(number, Hole)]


@dataclass(frozen=True)
class _Loops:
    """The loops of a reduction below the `outside` ones that it shares with other blocks."""

    block: BlockOp
    target: Target
    outside: int
    rows: tuple[ForOp, ...]
    columns: tuple[ForOp, ...]
    long: tuple[ForOp, ...]
    short: tuple[ForOp, ...]

    @property
    def row_count(self) -> int:
        return prod(x.size for x in self.rows)

    @property
    def extent(self) -> int:
        """Columns of a row."""
        return prod(x.size for x in self.columns)

    @property
    def is_large(self) -> bool:
        """True where there is enough to do for threads, and for a search."""
        return prod(x.size for x in self.block.enclosing_loops) >= parallel_elements(self.target)

    @property
    def stepped(self) -> ForOp | None:
        """The innermost loop of which a few iterations at a time are written out."""
        return next((x for x in reversed(self.long) if x.size > SHORT), None)

    @property
    def is_paired(self) -> bool:
        return self.block.combiner.data == "custom"

    def most(self, choices: Sequence[int], span: int, tasks: int) -> int:
        """The largest choice for which so many spans cover the columns, and leave threads their tasks."""
        wanted = tasks if self.target.cores > 1 and self.is_large and not self.outside else 1
        fits = [
            n
            for n in choices
            if span * (n - 1) < self.extent and self.row_count * -(-self.extent // (span * n)) >= wanted
        ]
        return max(fits, default=1)


@dataclass(frozen=True)
class _Usual:
    """Numbers of a plan without a search; `windows` are iterations of short loops that are written out."""

    vectors: int
    strip: int
    steps: int
    windows: dict[str, int]


def plan_columns(
    draft: Draft, name: str, target: Target, outside: int = 0, in_strip: tuple[Derived, Derived] | None = None
) -> ColumnPlan:
    """Plan a reduction in columns: holes where there is much to do, fixed numbers where there is little.

    `outside` of the outermost loops are shared with other blocks. `in_strip` are the vectors side by side, and how many
    times those, where who set the strip's width says how many.
    """
    block = draft.block(name)
    loops = _loops(draft, block, target, outside)
    usual = _usual(loops)
    full = lanes_of_block(block, target)
    choices, lanes = lane_choices(loops.extent, full)
    most = -(-loops.extent // lanes)
    searched = loops.is_large and not outside

    def number(label: str, choices: tuple[int, ...], usual: int, kind: Kind, axis: str = "") -> Hole | int:
        if not searched:
            return usual
        return Hole.near(f"{name}_{label}", choices, usual, kind, axis and f"{name}_{axis}")

    width: Number = number("lanes", choices, lanes, "vector")
    vectors: Number = number("vectors", up_to(VECTORS, most), usual.vectors, "unroll", "column")
    strip: Number | None = None
    copies: dict[str, Hole | int] = {}
    if loops.stepped is not None:
        strip = number("strip", up_to(STRIPS, most), usual.strip, "tile", "column")
        axis = loops.stepped.loop_name
        copies[axis] = number(f"{axis}_unroll", up_to(STEPS, loops.stepped.size), usual.steps, "unroll")
    for loop in loops.short:
        axis = loop.loop_name
        copies[axis] = number(f"{axis}_unroll", (1, loop.size), usual.windows[axis], "unroll")
    if in_strip is not None:
        width, vectors = full, in_strip[0]
        strip = in_strip[1] if strip is not None else None
    dealt = None
    if target.cores > 1 and loops.is_large:
        dealt = "rows" if loops.rows and loops.row_count >= TASKS_A_CORE * target.cores else "strips"
    return ColumnPlan(
        name,
        tuple(x.loop_name for x in loops.rows),
        tuple(x.loop_name for x in loops.columns),
        tuple(x.loop_name for x in loops.long),
        width,
        vectors,
        strip,
        copies,
        _limits(loops, full, (strip, vectors, width), tuple(copies.values())) if searched else (),
        dealt,
    )


def _loops(draft: Draft, block: BlockOp, target: Target, outside: int) -> _Loops:
    reduced = loops_reduced(block)
    own = block.enclosing_loops[outside:]
    results = [x for x in own if x.loop_name not in reduced]
    columns = loops_together(draft, block.block_name, results)
    short = [x for x in own if x.loop_name in reduced and 1 < x.size <= SHORT]
    long = [x for x in own if x.loop_name in reduced and x not in short]
    return _Loops(block, target, outside, tuple(results[: -len(columns)]), tuple(columns), tuple(long), tuple(short))


def _usual(loops: _Loops) -> _Usual:
    """Windows written out as far as they are small, then vectors side by side, strips, and steps."""
    windows: dict[str, int] = {}
    copies = 1
    for loop in reversed(loops.short):
        windows[loop.loop_name] = loop.size if copies * loop.size <= USUAL_WINDOW else 1
        copies *= windows[loop.loop_name]
    stepped, cores = loops.stepped is not None, loops.target.cores
    lanes = lane_choices(loops.extent, lanes_of_block(loops.block, loops.target))[1]
    most = USUAL_VECTORS if stepped and not loops.is_paired else USUAL_VECTORS_OF_WINDOW
    vectors = loops.most([n for n in VECTORS if n <= most and n * copies <= USUAL_COPIES], lanes, cores)
    copies *= vectors
    strip = loops.most(STRIPS, lanes * vectors, 2 * cores) if stepped else 1
    return _Usual(vectors, strip, max(n for n in STEPS if n == 1 or n * copies <= USUAL_COPIES), windows)


def _limits(
    loops: _Loops, full: int, factors: tuple[Number | None, ...], copies: tuple[Hole | int, ...]
) -> tuple[Limit, ...]:
    """Sums fit the registers, copies a few hundred instructions, and no factor is idle."""
    registers = loops.target.vector_registers // (4 if loops.is_paired else 2)
    names = [n.name for n in factors if isinstance(n, Hole)]
    vectors, lanes = names[-2:]
    copied = [n.name for n in copies if isinstance(n, Hole)]

    def fits(c: Columns) -> npt.NDArray[np.bool_]:
        held = c[vectors] * -(-c[lanes] // full)
        return np.asarray((held <= max(1, registers)) & (prod((c[n] for n in copied), start=held) <= MOST_COPIES))

    return fits, not_idle(names, loops.extent)


def write_columns(draft: Draft, plan: ColumnPlan) -> None:
    """Apply all steps, but for what `deal_columns` does."""
    name = plan.name
    column = draft.fuse(name, plan.columns)
    draft.add(*plan.numbers())
    draft.limits += plan.limits
    strip = () if plan.strip is None else (plan.strip,)
    columns = draft.split(name, column, (0, *strip, plan.vectors, plan.lanes))
    steps, whole, copied = [*plan.long], [], []
    for axis, count in plan.copies.items():
        around, inside = draft.split(name, axis, (0, count))
        copied.append(inside)
        if axis in steps:
            steps[steps.index(axis)] = around
        else:
            whole.append(around)
    draft.order(name, [*plan.rows, columns[0], *steps, *columns[1:-2], *whole, *copied, *columns[-2:]])
    draft.do(Vectorize, block=name, loop=columns[-1])
    for loop in (*copied, columns[-2]):
        draft.do(Unroll, block=name, loop=loop)


def deal_columns(draft: Draft, plan: ColumnPlan) -> None:
    """Give rows, and strips where rows are few, to threads: what is outermost once the steps are applied."""
    if plan.dealt is not None:
        outermost = draft.loops(plan.name)
        deal(draft, plan.name, outermost[: len(plan.rows) + (plan.dealt == "strips")])
