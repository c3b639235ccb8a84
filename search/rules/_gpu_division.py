"""A reduction on a GPU divided into parts: partial results, which are tiled, and what adds them up."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.attributes import Axis
from ...passes.analysis.joined import MOST_IN_CLUSTER
from ...passes.primitive import ScheduleError
from ...passes.schedule.cache_write import CacheWrite
from ...passes.schedule.compute_at import ComputeAt
from ...passes.schedule.pragma import Pragma
from ...passes.schedule.set_scope import SetScope
from ...passes.schedule.split import Split
from ...passes.schedule.vectorize import Vectorize
from ..sketch.draft import Draft
from ..sketch.hole import Hole
from ..structure.anchor import Anchor, anchor_of, epilogue_of
from ..structure.products import WIDER
from ._gpu_factors import FEWEST_OF_PART, PARTS, parts_of

ENOUGH_PARTS = 3
"""Numbers of parts of whole steps that an axis is divided into as it is; one with fewer is padded before. A choice."""
FILLS = (4, 2)
"""Steps of an intrinsic that parts of a padded axis are multiples of: 128 and 64 bytes, the widest swizzles."""
LEAST_UNROLLED = 2 * max(PARTS)
"""Parts of a split reduction that are loaded one after the other without a loop, and where there may be more, all."""
USUAL_PARTS = 8
"""Parts on blocks of their own without a search. A choice: on an H200 a product of 16 tiles fills 128 of 132
multiprocessors so."""
USUAL_SLICES = 2
"""Parts on threads of one block without a search. A choice: the fewest, as each costs a copy of the sums in shared
memory."""


@dataclass(frozen=True)
class Division:
    """A reduction in parts: `final` adds them up, `divided` is the loop that is split.

    Blocks of threads take parts that are contiguous; `interleaved` ones take turns instead, so that what a block
    fetches for all of them at a time is contiguous. Parts that are `clustered` are added up by the blocks that computed
    them, which wait for each other.
    """

    final: str
    divided: Axis
    parts: Hole
    interleaved: bool
    clustered: bool = False

    @property
    def part(self) -> str:
        """The loop over parts."""
        return f"{self.divided.name}{1 if self.interleaved else 0}"

    @property
    def rest(self) -> Axis:
        """The reduce axis of a part, with the extent that it has for all of them together."""
        return Axis(f"{self.divided.name}{0 if self.interleaved else 1}", self.divided.extent, True)

    @property
    def factors(self) -> tuple[Hole | int, Hole | int]:
        return (0, self.parts) if self.interleaved else (self.parts, 0)


def plan_division(
    anchor: Anchor,
    sliced: bool,
    multiple: int = 1,
    more: tuple[int, ...] = (),
    clustered: bool = False,
    in_both: bool = False,
) -> Division:
    """Divide the longest reduce axis among blocks of threads, or (`sliced`) among the threads of a block.

    With a `multiple` above 1, parts are those of `parts_in_multiples`, of which there must be some. `more` are further
    numbers of parts. A reduction that is divided `in_both` ways has twice as many of each without a search, where it is
    long enough. ScheduleError where no number of parts divides what is left of an axis that is divided already.
    """
    longest = max(anchor.reduce, key=lambda a: a.extent)
    label, usual = ("slices", USUAL_SLICES) if sliced else ("parts", USUAL_PARTS)
    choices = parts_in_multiples(anchor, multiple) if multiple > 1 else parts_of(longest.extent, sliced)
    choices = choices + more
    if clustered:
        choices = tuple(n for n in choices if n <= MOST_IN_CLUSTER) or (MOST_IN_CLUSTER,)
    if not choices:
        raise ScheduleError(None, f"'{anchor.block}' has {longest.extent} terms, which no {label} divide")
    many = in_both and longest.extent >= 4 * FEWEST_OF_PART * USUAL_SLICES * (1 if sliced else USUAL_PARTS)
    parts = Hole.near(f"{anchor.block}_{label}", choices, 2 * usual if many else usual, "parts")
    return Division(anchor.block, longest, parts, sliced, clustered)


def parts_in_multiples(anchor: Anchor, multiple: int) -> tuple[int, ...]:
    """Numbers of equal parts of the longest reduce axis for blocks of threads, each a multiple of so many steps."""
    extent = max(a.extent for a in anchor.reduce)
    return tuple(n for n in parts_of(extent, False) if extent % (n * multiple) == 0)


@dataclass(frozen=True)
class WholeParts:
    """The extent that a reduce axis is padded to before it is divided, and the steps that parts are multiples of."""

    extent: int
    multiple: int


def whole_parts(anchor: Anchor, unit: int) -> WholeParts | None:
    """The fewest steps more that have several numbers of parts of whole fills; None where the axis itself has them.

    Fills are of four or two steps of `unit`, the wider ones where they do; the most numbers where none are enough.
    """
    (axis, *others), found = anchor.reduce, list[tuple[int, WholeParts]]()
    if others or len(parts_in_multiples(anchor, unit)) >= ENOUGH_PARTS:
        return None
    for step in (unit * n for n in FILLS):
        least = -(-axis.extent // step)
        for fills in range(least, int(WIDER * least) + 1):
            count = sum(fills % n == 0 for n in PARTS)
            if count >= ENOUGH_PARTS:
                return WholeParts(step * fills, step)
            found.append((count, WholeParts(step * fills, step)))
    count, best = max(found, key=lambda one: one[0], default=(0, None))
    return best if count else None


def write_division(draft: Draft, division: Division) -> Anchor:
    """Make partial results of a reduction; they are the anchor that is tiled from then on."""
    draft.add(division.parts)
    draft.do(Split, block=division.final, loop=division.divided.name, factors=division.factors)
    others = [n for n in draft.loops(division.final) if n != division.part]
    draft.order(division.final, (division.part, *others))
    return anchor_of(draft.module, draft.partial(division.final, division.part))


def blocks_of_sum(draft: Draft, division: Division) -> set[str]:
    """The block that adds up the parts, and the epilogue where there is one."""
    out = epilogue_of(draft.block(division.final))
    return {division.final} if out is None else {division.final, out}


def joining_block(draft: Draft, division: Division) -> str:
    """The block that writes what the parts add up to: the epilogue, or a copy."""
    out = epilogue_of(draft.block(division.final))
    if out is None:
        out = f"{division.final}_sum"
        draft.do(CacheWrite, block=division.final, scope="local", label=out)
    return out


def sum_up(draft: Draft, division: Division, out: str, thread: str) -> None:
    """Add up the parts where `out` needs the sum, in registers of each thread."""
    final = division.final
    draft.do(ComputeAt, block=final, loop=thread, unit_loops=True)
    draft.do(SetScope, block=final, scope="local")
    *spatial, part = draft.loops(final, thread)
    draft.order(final, (part, *spatial))
    draft.do(Pragma, block=final, loop=part, auto_unroll_max_step=max(LEAST_UNROLLED, *division.parts.choices))
    draft.do(Vectorize, block=final, loop=spatial[-1])
    draft.settled |= {final, out}
