"""Long reductions to few results on a GPU: parts on blocks of their own, and a kernel that joins the parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import ClassVar

import numpy.typing as npt

from ...dialects.target import WARP, Target
from ...passes.schedule.bind import Bind
from ..sketch import arrays as np
from ..sketch.draft import Draft
from ..sketch.hole import Columns, Hole
from ..sketch.rule import SketchRule
from ..structure.anchor import find_anchor
from ..structure.gpu_chains import GpuChain, Shape, chain_of_one, chains_of, contiguous_suffix
from ._gpu_factors import UNKNOWN_THREADS
from ._gpu_folded_parts import BLOCKS_PER_CORE, Divided, near_usual, write_folded_parts
from ._gpu_joined_rows import THREADS, JoinedRowsPlan, joining_threads, write_joined_parts, write_joined_rows
from ._gpu_row_steps import repeat, untouched_reduce_loops
from ._gpu_tiled_rows import ROWS_ACROSS, HoleChoices, plan_tiled_rows, with_tiles, write_tiled_rows
from .gpu_rows import REGISTERS

FEWEST_ELEMENTS = 1 << 18
"""Elements of a reduction whose threads cannot be made to join from which on a second kernel costs less than the blocks
of threads that a single one leaves idle. A choice: 1 MiB, which one multiprocessor reads in 15 us
(`FILL_BYTES_PER_CYCLE_SM`), ten times a launch."""
FEWEST_TERMS = 4096
"""Terms of a result, at least, where threads lie along results or cannot be made to join; however many results there
are, as each block of threads reads the terms of its own. On an H200 means of 7 to 230 columns take 2.5 to 3.1 us in one
kernel and 2.9 to 4.4 in parts where they are of 2500 rows, 4.0 to 6.4 and 3.2 to 3.6 of 5000, 9.6 to 9.8 and 3.5 to 4.3
of 10608."""
FEWEST_ALONG = 1 << 15
"""The same where the threads of a block are along one result. Means of 1 to 17 rows of 25000 take 2.8 to 2.9 us in one
kernel and 2.9 to 3.4 in parts, of 60000 4.6 to 4.8 and 3.2, of 130000 7.8 to 8.0 and 2.9 to 3.3."""
FEWEST_IN_CHAINS = 3 << 14
"""Terms of a result where it stands in a chain that one kernel would compute otherwise, however few results there are,
and whose parts take kernels of their own to join: 1.5 times what the threads of a block keep in registers
(`gpu_rows.REGISTERS`). On an H200 softmax of 1, 8 and 32 rows of 50257 took 13.4, 14.6 and 15.0 us in one kernel, 7.0,
8.0 and 11.6 in five, of 32000 6.2 and 6.4; layer norm of one row of 50176 13.6 and 6.9, of 32 of 40960 8.0 and 8.8."""
ACROSS = 32
"""Results that a block of threads has where operands are contiguous along them, about."""
PARTS = (32, 64, 128, 256, 512, 1024)
"""Parts of a result: the threads of a block join them, one each."""
FOLDED_PARTS = (4, 8, 16, 32, 64, 128)
"""The same where each block that reads the result joins them. On an H200 softmax of one row of 32000 in 256 parts takes
6.0 us by blocks of 256 threads, 8.6 of 64 and 12.2 of 32, which take them in turns. Half as many parts as fill the
multiprocessors four times take 7.0 and 7.2 us for softmax of 1 and 4 rows of 32000, 5.9 and 6.1 as many, and 14.3 and
11.2 of 32 rows of 50257."""
ESTIMATED_CORES = 132
"""Multiprocessors of the H200 that the seconds below are fitted to, by what 43 softmaxes and norms take in one kernel
and in such parts: of those that are estimated to be faster in parts two took 1.03 and 1.05 times as long."""
FOLDED_KERNEL_S, ELEMENT_S = 1.75e-6, 0.9e-12
"""Seconds of a kernel of a chain in parts, and of each element of all rows in it."""
ONE_KERNEL_S, JOINED_S, HELD_TERM_S, TERM_S = 1.2e-6, 0.35e-6, 0.14e-9, 0.25e-9
"""Seconds of one kernel, of a reduction whose threads join, and of a term of a row that these keep in registers, or
that they read for each of the stages, from wherever it is."""
FEWEST_A_PART = 8
"""Steps along the loop that is split which each part has, at least."""

LANES = (2, 4, 8, 16, 32)
"""Lanes of a part where operands are contiguous along results."""
PARTS_OF_BLOCK = (1, 2, 4, 8, 16)
"""Parts that a block of threads takes of results that its threads cannot be made to join."""
LANES_OF_PART = (8, 16, 32, 64)
"""Lanes of such a part."""


class GpuSplitReduction(SketchRule):
    """Split reductions of too few results that reuse nothing; `gpu_tiling` splits those that do."""

    order: ClassVar[int] = 420
    of_unsettled: ClassVar[bool] = True

    def when(self, target: Target) -> bool:
        return target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        for chain in chains_of(draft):
            if any(_worth(draft, chain, name, target) for name in chain.reductions):
                draft = draft.with_steps(partial(_split_all, chain=chain, target=target)) or draft
        return [draft]


def _worth(draft: Draft, chain: GpuChain, name: str, target: Target) -> bool:
    """True where a reduction is long, and its results keep less than half of the multiprocessors busy."""
    shape = Shape.of(draft, chain_of_one(draft.block(name)))
    if shape.along is None or find_anchor(draft.module, name) is not None:
        return False
    if 2 * _blocks(shape) > target.cores:
        return False
    if is_folded(draft, chain):
        return _folded_s(draft, chain, target) < _one_kernel_s(draft, chain)
    if len(chain.reductions) > 1 or chain.within:
        return shape.terms >= FEWEST_IN_CHAINS
    if shape.named:
        return shape.terms >= (FEWEST_TERMS if shape.across else FEWEST_ALONG)
    return shape.terms >= FEWEST_TERMS and (shape.rows == 1 or shape.rows * shape.terms >= FEWEST_ELEMENTS)


def is_folded(draft: Draft, chain: GpuChain) -> bool:
    """True where those who read results of a chain's reductions can join their parts, and others than one kernel do."""
    shapes = [Shape.of(draft, chain_of_one(draft.block(name))) for name in chain.reductions]
    several = len(chain.reductions) > 1 or bool(chain.within)
    return several and all(shape.named and not shape.across for shape in shapes)


def _folded_s(draft: Draft, chain: GpuChain, target: Target) -> float:
    """Estimate the kernels of a chain in parts: one for each reduction, and one for what is behind them."""
    shape = Shape.of(draft, chain)
    spread = shape.rows * shape.terms * ELEMENT_S * ESTIMATED_CORES / max(1, target.cores)
    return (len(chain.reductions) + 1) * (FOLDED_KERNEL_S + spread)


def _one_kernel_s(draft: Draft, chain: GpuChain) -> float:
    """Estimate a chain in one kernel, with a block of threads for each row."""
    shape = Shape.of(draft, chain)
    held = shape.is_plain and shape.terms <= REGISTERS * max(THREADS)
    return ONE_KERNEL_S + len(chain.reductions) * JOINED_S + shape.terms * (HELD_TERM_S if held else TERM_S)


def _split_all(draft: Draft, chain: GpuChain, target: Target) -> None:
    """Split the reductions of a chain that are worth it; what stands between them is computed again."""
    repeat(draft, chain)
    if is_folded(draft, chain):
        plans = {name: plan_split(draft, name, target, folded=True) for name in chain.reductions}
        write_folded_parts(draft, chain, lambda name: _divided(draft, plans[name]), target)
    else:
        for name in chain.reductions:
            if _worth(draft, chain, name, target):
                plan = plan_split(draft, name, target)
                _join(draft, plan, _split(draft, plan))
    draft.names.append(f"{chain.last}_parts")


@dataclass(frozen=True)
class GpuSplitPlan:
    """A reduction in `parts`: of its outermost loop, or, where none is long enough, of all of them as one.

    `length` is how many terms that lie together a part has, without a search.
    """

    name: str
    target: Target
    shape: Shape
    parts: Hole
    as_one: bool
    length: int

    @property
    def joined(self) -> bool:
        """True where the threads of a block are all along one part: they can be made to join, and read neighbours."""
        return self.shape.named and not self.shape.across


def plan_split(draft: Draft, name: str, target: Target, folded: bool = False) -> GpuSplitPlan:
    """Plan parts that fill the multiprocessors, if each has enough steps.

    The threads of a block join them, one each, or where they are `folded` any threads.
    """
    numbers = FOLDED_PARTS if folded else PARTS
    block = draft.block(name)
    shape = Shape.of(draft, chain_of_one(block))
    together = contiguous_suffix(block)
    loops = [a.extent for a in block.axes if a.reduce and a.extent > 1 and a.name not in together]
    loops.append(prod(a.extent for a in block.axes if a.name in together))
    wanted = -(-BLOCKS_PER_CORE * target.cores // _blocks(shape))
    most = min(max(numbers), target.max_threads_per_block or UNKNOWN_THREADS)
    as_one = loops[0] < FEWEST_A_PART * min(wanted, most)
    first, *others = [prod(loops)] if as_one else loops
    most = min(most, max(numbers[0], first // FEWEST_A_PART))
    middle = max(numbers[0], min(most, 1 << (wanted.bit_length() - 1 if folded else (wanted - 1).bit_length())))
    choices = HoleChoices.within(
        numbers, middle if folded else middle // 2, min(most, (1 if folded else 4) * middle), middle
    )
    parts = Hole.near(f"{name}_parts", choices.values, choices.default, "parts")
    return GpuSplitPlan(name, target, shape, parts, as_one, others[-1] if others else shape.terms // parts.default)


def _blocks(shape: Shape) -> int:
    """Blocks of threads that the results of a reduction are for, one part each."""
    return -(-shape.rows // ACROSS) if shape.across else shape.rows


def _divided(draft: Draft, plan: GpuSplitPlan) -> Divided:
    """Divide a reduction whose threads can be made to join: nothing of it is bound yet."""
    part, made, loops = _parts_of(draft, plan)
    threads = near_usual(joining_threads(made, plan.target, plan.length, plan.length))
    draft.limits.append(partial(_has_terms, plan=plan, threads=threads.name))
    return Divided(made, part, loops, threads)


def _parts_of(draft: Draft, plan: GpuSplitPlan) -> tuple[str, str, tuple[str, ...]]:
    """Partial results of the parts: the loop over parts in what joins them, the block that has them, and its loops."""
    name = plan.name
    loops = untouched_reduce_loops(draft, name)
    first, *others = [draft.fuse(name, loops)] if plan.as_one else loops
    draft.add(plan.parts)
    part, rest = draft.split(name, first, (plan.parts, 0))
    draft.order(name, (part, *[n for n in draft.loops(name) if n != part]))
    return part, draft.partial(name, part, -1), (rest, *others)


def _split(draft: Draft, plan: GpuSplitPlan) -> str:
    """Partial results of the parts, on blocks of their own; the loop over parts in what joins them."""
    target = plan.target
    part, made, loops = _parts_of(draft, plan)
    chain, known = chain_of_one(draft.block(made)), {made: loops}
    if plan.joined:
        threads = joining_threads(made, target, plan.length, plan.length)
        draft.limits.append(partial(_has_terms, plan=plan, threads=threads.name))
        write_joined_rows(draft, JoinedRowsPlan(chain, threads), known)
    else:
        tiled = plan.shape.along if plan.shape.across else part
        assert tiled is not None
        across = plan.shape.across
        write_tiled_rows(draft, with_tiles(chain, target, tiled, across, *_tiles(plan), known))
    return part


def _has_terms(c: Columns, plan: GpuSplitPlan, threads: str) -> npt.NDArray[np.bool_]:
    """Candidates in which each thread that joins a part has a term of it, or is of its only warp."""
    length = plan.shape.terms // c[plan.parts.name]
    return np.asarray(c[threads] <= np.maximum(length, WARP))


def _tiles(plan: GpuSplitPlan) -> tuple[HoleChoices, HoleChoices]:
    """Return the choices of results, or parts, for a thread block, and of lanes for each."""
    most = (plan.target.max_threads_per_block or UNKNOWN_THREADS) // WARP
    shape = plan.shape
    if shape.across:
        (extent,) = (a.extent for a in shape.deepest.axes if a.name == shape.along)
        whole = 1 << (extent - 1).bit_length()
        rows = HoleChoices.within(ROWS_ACROSS, ROWS_ACROSS[0], whole, ACROSS)
        return rows, HoleChoices.within(LANES, LANES[0], most, 8)
    rows = HoleChoices.within(PARTS_OF_BLOCK, 1, most, 4)
    return rows, HoleChoices.within(LANES_OF_PART, 8, max(LANES_OF_PART), WARP)


def _join(draft: Draft, plan: GpuSplitPlan, part: str) -> None:
    """The parts of each result, with a block that takes results one by one where there is one."""
    block = draft.block(plan.name)
    chain = next((c for c in chains_of(draft) if plan.name in c.reductions), chain_of_one(block))
    last = draft.block(chain.last)
    if len(chain.reductions) > 1 or chain.within or chain.repeated or not last.enclosing_loops:
        chain = chain_of_one(block)
    draft.settled |= {plan.name, chain.last}
    if plan.shape.named:
        write_joined_parts(draft, chain)
    elif any(not a.reduce for a in last.axes):
        tiles = plan_tiled_rows(Shape.of(draft, chain), plan.target)
        write_tiled_rows(draft, replace(tiles, across=False))  # parts lie along the reduction
    else:
        _join_in_a_warp(draft, plan.name, part)


def _join_in_a_warp(draft: Draft, name: str, part: str) -> None:
    """A single result that threads cannot be made to join: a warp takes the parts, one thread what is left."""
    rest, lane = draft.split(name, part, (0, WARP))
    draft.order(name, (lane, rest))
    draft.do(Bind, block=draft.partial(name, lane, 0), loop=lane, thread="threadIdx.x")
