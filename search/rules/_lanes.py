"""Vectors and threads on CPUs: lanes that fit a loop, loops that are fused, loops dealt to threads."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy.typing as npt

from ...dialects.element import element_bytes
from ...dialects.loop import BlockOp, ForOp
from ...dialects.target import Target
from ...passes.schedule.parallel import Parallel
from ..sketch import arrays as np
from ..sketch.draft import Draft
from ..sketch.hole import Columns, Limit
from ..structure.anchor import Anchor
from ..structure.strides import nearly_in_rows, run_together
from .always_inline import COSTLY

FORK_JOIN_CYCLES = 4096
"""Cycles to give a loop to threads that wait for it, and to wait for them: 1.3 us at an assumed clock of 3.2 GHz
(two cores of an AMD EPYC, Zen 3, other work beside: 64 elements take 0.05 us, and 1.33 us in threads). Threads that
sleep were not measured; waking them takes longer."""
VECTOR_CYCLES = 2
"""Cycles to load a vector, do little with it, and store it, where caches hold it (on the same CPU, 16384 elements take
1.34 us in vectors of 8, and 2.2 us in threads; 65536 take 6.7 us and 4.9 us)."""
TASKS_A_CORE = 4
"""Iterations of outer loops that are enough for each core; with fewer, threads share the loop inside of them too. A
choice: the last ones to end keep no core waiting for more than a quarter of the time."""


def parallel_elements(target: Target) -> int:
    """Return the elements from which on two threads save what it costs to start them, which is half of the work."""
    return 2 * FORK_JOIN_CYCLES // VECTOR_CYCLES * (target.vector_bytes // 4)


def lanes_of(anchor: Anchor, target: Target) -> int:
    """Results in a whole vector of the machine."""
    return target.vector_bytes // element_bytes(anchor.element)


def threads_pay(target: Target, multiply_adds: int, lanes: int) -> bool:
    """True where threads save what it costs to start them, at the least cycles that multiply-adds in lanes take."""
    return sharing_pays(target, multiply_adds / (lanes * target.fma_per_cycle))


def sharing_pays(target: Target, cycles: float) -> bool:
    """True where work of so many cycles on one core, shared by all, saves what it costs to start threads."""
    return cycles * (1 - 1 / target.cores) >= FORK_JOIN_CYCLES


def is_costly(block: BlockOp) -> bool:
    """True where an element takes many operations: its loads are not what it waits for."""
    return any(op.name in COSTLY for op in block.body.block.ops)


def vectors_pay(block: BlockOp, loop: str, extent: int, lanes: int) -> bool:
    """True where vectors along a loop are filled to a half, or come straight from memory even if they are not."""
    return extent > 2 and (extent >= lanes // 2 or nearly_in_rows(block, loop))


def lane_choices(extent: int, lanes: int) -> tuple[tuple[int, ...], int]:
    """Return the numbers of lanes that leave few of them idle, and the number without a search."""
    enough = 1 << (extent - 1).bit_length()
    choices = tuple(n for n in (lanes // 2, lanes, 2 * lanes) if 1 < n <= enough)
    return choices or (enough,), min(lanes, enough)


def not_idle(names: Sequence[str], extent: int) -> Limit:
    """Factors whose product is below twice the extent, or all but the last are 1."""

    def limit(c: Columns) -> npt.NDArray[np.bool_]:
        product = prod((c[n] for n in names[1:]), start=c[names[0]])
        return np.asarray((product < 2 * extent) | (product == c[names[-1]]))

    return limit


def loops_together(draft: Draft, name: str, loops: Sequence[ForOp]) -> list[ForOp]:
    """The last of a block's `loops`, as far as they run through memory as if they were one.

    Loops with another one between them, as of a reduce axis of extent 1, stay apart.
    """
    around = draft.loops(name)
    places = [around.index(loop.loop_name) for loop in loops]
    count, most = 1, run_together(draft.block(name), loops)
    while count < most and places[-count - 1] == places[-count] - 1:
        count += 1
    return list(loops[-count:])


def together(draft: Draft, name: str, loops: Sequence[ForOp]) -> tuple[str, int]:
    """Fuse the last of a block's `loops`, as far as they run through memory together; its name and its extent."""
    found = loops_together(draft, name, loops)
    extent = prod(loop.size for loop in found)
    return draft.fuse(name, [loop.loop_name for loop in found]), extent


def deal(draft: Draft, name: str, loops: Sequence[str]) -> None:
    """Make the outermost `loops` of a block one, and give its iterations to threads."""
    draft.do(Parallel, block=name, loop=draft.fuse(name, loops))
