"""Element-by-element blocks on a CPU: lanes along memory, vectors side by side, the other loops dealt to threads."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from math import gcd, prod
from typing import ClassVar

from xdsl.ir import SSAValue

from ...dialects.index import Div, IndexExpr, Mod, atom_axes
from ...dialects.loop import BlockOp
from ...dialects.target import Target
from ...passes.analysis.access import writers
from ...passes.schedule.split import Split
from ...passes.schedule.unroll import Unroll
from ...passes.schedule.vectorize import Vectorize
from ..sketch.draft import Draft
from ..sketch.hole import Hole, Limit
from ..sketch.rule import SketchRule
from ..structure.chains import unscheduled
from ..structure.strides import Access, accesses, in_rows, lanes_apart, lanes_of_block, nearly_in_rows, output_bytes
from ._copied_runs import is_copied_whole
from ._lanes import (
    TASKS_A_CORE,
    deal,
    is_costly,
    lane_choices,
    not_idle,
    parallel_elements,
    together,
    vectors_pay,
)
from ._turned import plan_turned, turned_axes, write_turned
from .always_inline import COSTLY

VECTORS = (1, 2, 4, 8)
"""Vectors side by side."""
USUAL_VECTORS = 4
"""The same without a search, where nothing but memory takes long: so many loads are on their way at a time. With 2 and
8 9 of 58 default schedules change, in 0.99 and 0.98 of the time (Zen 3): it is flat."""
POLYNOMIALS = frozenset(COSTLY) - {"arith.divf", "math.sqrt"}
"""Operations of many dependent steps: two registers in one vector hide their latency (gelu: 234 us for 263)."""
GATHERED_LANES = 1
"""Elements that lanes would gather come one by one unless each takes long to compute: resizing an image takes 198 us
with four side by side and 410 us with 16 lanes (Zen 5, one thread), a transposed convolution of 8x40x40 to 40 with
stride 3, whose phases an epilogue puts together, 1.19 ms and 3.03 (one core of an Emerald Rapids). Nothing else is in
the space: no estimate tells them apart, and the model that ships took the wider ones."""
NARROWEST_GATHERED = 4
"""Bytes of an element that x86 gathers, at least."""
FEWEST_A_STRETCH = 4
"""Lanes of each stretch of an operand, at least, to be loaded and put in their places by shuffles: a part of a vector
(a choice). 256x20x20 to twice as many pixels takes 18 us so, 50 element by element, 64x128x128 228 and 531 (one core
of a Zen 5)."""


MOST_PIECES = 8
"""Pieces of equal length, at most, that a loop is written out in, along which other parts are read from some place on
(a choice: each is the code of the loops inside). What is read is known of all pieces but those with a seam: 512 and 512
channels of 64x64 behind each other take 704 us so, 924 with a condition of each vector, 33 and 70 rows of 500 514 and
693, 2790 and 9100 elements of each of 65 rows 58 and 97 (one core of a Zen 5; PyTorch and onnxruntime 60 to 62)."""
MOST_WRITTEN = 64
"""Vectors of a row with seams, at most, that are all written out, so that masks are known: 300, 301 and 77 elements of
each of 500 rows take 25 us so, 43 with a mask of each vector (one core of a Zen 5; PyTorch 28), and 128 vectors are the
code of several kernels (a choice)."""


class Injective(SketchRule):
    """Schedule on a CPU what no other rule has scheduled.

    Loops that run through memory together become one, so that short rows fill vectors; a block that reads along another
    axis than it writes is tiled along both.
    """

    order: ClassVar[int] = 700
    of_unsettled: ClassVar[bool] = True

    def when(self, target: Target) -> bool:
        return not target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        for block in unscheduled(draft):
            if not block.enclosing_loops or block.is_reduction:
                continue
            repeats = _split_repeats(draft, block, target)
            block = draft.block(block.block_name)
            axes = turned_axes(block)
            if axes is None:
                together(draft, block.block_name, block.enclosing_loops)
                write_run(draft, plan_run(draft.block(block.block_name), target), repeats)
            else:
                write_turned(draft, plan_turned(draft, block, axes, target))
        return [draft]


def _split_repeats(draft: Draft, block: BlockOp, target: Target) -> bool:
    """`for i in r * n { x[i mod n] }` -> `for i0 in r { for i1 in n { x[i1] } }`, a tensor repeated as a whole.

    The innermost loop of repeats, unless what it runs through at a time fills no half of a vector: tiles of 381x131
    take 27 us so, 212 an element at a time (one core of a Zen 5; onnxruntime 45). True where there are some.
    """
    sites = accesses(block)
    conditions = [*block.conditions, *(c for load in block.loads for c in load.conditions)]
    inside = 1
    for loop in reversed(block.enclosing_loops):
        name = loop.loop_name
        atoms = {atom for site in sites for atom, _ in site.offset.terms if atom != name and name in atom_axes(atom)}
        if atoms or any(name in c.axes() for c in conditions):
            lengths = [atom.divisor for atom in atoms if isinstance(atom, Mod) and atom.expr.as_axis() == name]
            length = lengths[0] if len(lengths) == len(atoms) == 1 else loop.size
            fills = 2 * length * inside >= lanes_of_block(block, target)
            found = fills and loop.size % length == 0 and length < loop.size
            if found:
                draft.split(block.block_name, name, (0, length))
            return found
        inside *= loop.size
    return False


@dataclass(frozen=True)
class RunPlan:
    """A block without a reduction along memory: its last loop, the `run`, in `vectors` of so many `lanes`.

    `lanes` is None where vectors would not pay. `dealt` are how many of the outermost loops threads share, the run
    itself among them where it is one more than those outside of it. The loop `seam` is written out in pieces.
    """

    name: str
    run: str
    lanes: Hole | int | None
    vectors: Hole | int
    limits: tuple[Limit, ...]
    dealt: int
    seam: str = ""


def plan_run(block: BlockOp, target: Target) -> RunPlan:
    """Lanes, vectors and threads; holes for them where there is much to do.

    The loops that run through memory together are one by now: a fused loop of which one had extent 1 is not always
    seen to move evenly, and lanes along it are then gathered.
    """
    name, (*outside, last) = block.block_name, block.enclosing_loops
    run, extent = last.loop_name, last.size
    total = extent * prod(loop.size for loop in outside)
    dealt = 0
    if target.cores > 1 and total >= parallel_elements(target):
        dealt = len(outside) + (total // extent < TASKS_A_CORE * target.cores)
    if not vectors_pay(block, run, extent, lanes_of_block(block, target)):
        return RunPlan(name, run, None, 1, (), dealt)
    choices, usual, side, most = _usual_vectors(block, run, extent, target)
    seam = _seamed(block, {loop.loop_name for loop in block.enclosing_loops[dealt:]})
    if is_copied_whole(block, run, seam, target):
        return RunPlan(name, run, None, 1, (), dealt, seam)
    if total < parallel_elements(target) or (seam == run and not is_costly(block)):
        return RunPlan(name, run, usual, side, (), dealt, seam)
    lanes = usual if len(choices) == 1 else Hole.near(f"{name}_lanes", choices, usual, "vector")
    vectors = Hole.near(f"{name}_vectors", tuple(n for n in VECTORS if n <= most), side, "unroll")
    factors = (vectors.name, *([lanes.name] if isinstance(lanes, Hole) else []))
    return RunPlan(name, run, lanes, vectors, (not_idle(factors, extent),), dealt, seam)


def _usual_vectors(block: BlockOp, run: str, extent: int, target: Target) -> tuple[tuple[int, ...], int, int, int]:
    """Return choices of lanes; lanes, and vectors side by side, without a search; the most of these."""
    full, costly = lanes_of_block(block, target), is_costly(block)
    choices, usual = lane_choices(extent, full)
    if any(op.name in POLYNOMIALS for op in block.body.block.ops):
        usual = max(n for n in choices if n <= max(usual, 2 * full))
    gathered = not nearly_in_rows(block, run)
    if gathered and not costly:
        lanes = _lanes_of_stretches(block, run, extent, full)
        if lanes:
            return (lanes,), lanes, 1, 1
        if _at_data(block, run):
            most = -(-extent // usual)
            return choices, usual, min(USUAL_VECTORS, most), most
        return (GATHERED_LANES,), GATHERED_LANES, min(USUAL_VECTORS, extent), extent
    if gathered:
        choices = (1, *choices)
    most = -(-extent // usual)
    side = USUAL_VECTORS if in_rows(block, run) and not costly else 1
    return choices, usual, min(side, most), most


def _at_data(block: BlockOp, run: str) -> bool:
    """True where lanes along a loop write in rows what they read at places that rows of data say.

    Bounds and addresses of places are then computed in lanes, too: 64 of each of 2049 rows of 43 take 31 us gathered
    and 44 one by one (one core of a Zen 5), 21 and 72 (Emerald Rapids; PyTorch 52).
    """
    if block.conditions or output_bytes(block) < NARROWEST_GATHERED:
        return False
    steps = [access.step(run) for access in accesses(block)]
    places = any(load.positions and run in _loops_of(block, load.indices.data) for load in block.loads)
    return places and steps[0] == 1 and all(step in (0, 1, None) for step in steps)


def _lanes_of_stretches(block: BlockOp, run: str, extent: int, full: int) -> int:
    """The lanes that each load reads in a few stretches, as pixels that are repeated or interleaved.

    Such as begin alike come first. They divide the run where the rows of what is read are lanes together: where lanes
    end beyond it, rows become longer, and who writes these in lanes along several of them would scatter them. 0 where
    there are none, and where some lanes read nothing.
    """
    if block.conditions or any(load.conditions for load in block.loads):
        return 0
    sites = accesses(block)
    periods = _periods(sites, run)
    widths = [full // part * n for n in (*reversed(periods), 1) for part in (1, 2, 4)]
    alone = all(_written_in_rows(load.buffer) for load in block.loads if run in _loops_of(block, load.indices.data))
    for lanes in (n for n in widths if FEWEST_A_STRETCH <= n <= extent and (alone or extent % n == 0)):
        apart = [lanes_apart(site, run, lanes) for site in sites]
        if all(one is not None and _in_stretches(one, full) for one in apart):
            return lanes
    return 0


def _written_in_rows(buffer: SSAValue) -> bool:
    """True for what blocks write in lanes along its last dimension, and no other: its rows may become longer."""
    found = writers(buffer)
    for block in found:
        lanes = {loop.loop_name for loop in block.enclosing_loops if loop.loop_kind == "vectorized"}
        *others, last = (lanes & _loops_of(block, [e]) for e in block.write_indices[0])
        if block.is_reduction or last != lanes or any(others):
            return False
    return bool(found)


def _loops_of(block: BlockOp, indices: Sequence[IndexExpr]) -> set[str]:
    """The loops around a block that indices over its iterators move with."""
    return {loop for e in indices for loop in e.substitute(block.bound).axes()}


def _periods(sites: Sequence[Access], run: str) -> list[int]:
    """Odd divisors of the loop, up to the vectors side by side: so many vectors begin alike."""
    atoms = {atom for site in sites for atom, _ in site.offset.terms if not isinstance(atom, str)}
    divisors = {atom.divisor for atom in atoms if isinstance(atom, Div | Mod) and run in atom_axes(atom)}
    return sorted(n for n in divisors if n % 2 and n <= max(VECTORS))


def _in_stretches(apart: Sequence[int], full: int) -> bool:
    """True where places are in stretches of some lanes each, none longer than a vector."""
    places, count, start = sorted(set(apart)), 1, min(apart)
    for place in places:
        if place - start >= full:
            count, start = count + 1, place
    return len(apart) >= FEWEST_A_STRETCH * count


def _seamed(block: BlockOp, loops: Set[str]) -> str:
    """The one of some loops along which loads are on from some place on, or up to one, as that of a concatenation.

    "" where conditions are of several loops.
    """
    conditions = [c.substitute(block.bound) for load in block.loads for c in load.conditions]
    named = {name for c in conditions for name in c.axes()}
    if len(named) != 1 or not named <= loops or block.conditions:
        return ""
    (name,) = named
    steps = [c.coefficient(name) if c.is_linear_in(name) else 0 for c in conditions]
    return "" if any(abs(step) != 1 for step in steps) else name


def _piece(block: BlockOp, name: str) -> int:
    """The longest pieces of a loop that seams end, or as many as there may be, which are as long as each other."""
    extent = next(loop.size for loop in block.enclosing_loops if loop.loop_name == name)
    conditions = [c.substitute(block.bound) for load in block.loads for c in load.conditions]
    places = [c.const + 1 if c.coefficient(name) < 0 else -c.const for c in conditions]
    piece = gcd(extent, *(place for place in places if 0 < place < extent))
    return piece if extent // piece <= MOST_PIECES else -(-extent // MOST_PIECES)


def write_run(draft: Draft, plan: RunPlan, repeats: bool = False) -> None:
    """`for i { for j { S } }` -> lanes, vectors side by side, one vector after the other, threads.

    Where a tensor `repeats`, threads come first: that tails of its rows share nothing with the next is not shown.
    """
    name = plan.name
    draft.limits += plan.limits
    if plan.dealt and repeats:
        deal(draft, name, [loop for loop in draft.loops(name) if loop != plan.run][: plan.dealt])
    if plan.lanes is not None and isinstance(plan.lanes, int) and plan.seam == plan.run:
        _write_seamed_run(draft, plan, plan.lanes)
    elif plan.lanes is not None:
        draft.add(*(n for n in (plan.lanes, plan.vectors) if isinstance(n, Hole)))
        _, vectors, lanes = draft.split(name, plan.run, (0, plan.vectors, plan.lanes))
        draft.do(Vectorize, block=name, loop=lanes)
        draft.do(Unroll, block=name, loop=vectors)
    outside = draft.loops(name)
    if plan.seam and plan.seam != plan.run and (piece := _piece(draft.block(name), plan.seam)) > 1:
        pieces, _ = draft.split(name, plan.seam, (0, piece))
        draft.do(Unroll, block=name, loop=pieces)
    if plan.dealt and not repeats:
        deal(draft, name, outside[: plan.dealt])


def has_lanes(draft: Draft, name: str, target: Target) -> bool:
    """True for a block whose innermost loop fills half of a vector, which `spread` makes lanes of."""
    block = draft.block(name)
    extent = block.enclosing_loops[-1].size if block.enclosing_loops else 1
    return extent >= lanes_of_block(block, target) // 2 and extent > 1


def _write_seamed_run(draft: Draft, plan: RunPlan, lanes: int) -> None:
    """All vectors of a run written out, or pieces of it with vectors side by side in each."""
    name, extent = plan.name, draft.sizes(plan.name)[plan.run]
    vectors = -(-extent // lanes)
    if vectors <= MOST_WRITTEN:
        written, *_, lane = draft.split(name, plan.run, (0, lanes))
        draft.do(Unroll, block=name, loop=written)
    else:
        assert isinstance(plan.vectors, int), "planned"
        steps = -(-vectors // (MOST_PIECES * plan.vectors))
        pieces, _, side, lane = draft.split(name, plan.run, (0, steps, plan.vectors, lanes))
        for loop in (pieces, side):
            draft.do(Unroll, block=name, loop=loop)
    draft.do(Vectorize, block=name, loop=lane)


def spread(draft: Draft, name: str, target: Target) -> None:
    """Schedule a small block without a reduction, and without anything to search: lanes and threads."""
    block = draft.block(name)
    loops = [(loop.loop_name, loop.size) for loop in block.enclosing_loops]
    if not loops or any(loop.loop_kind != "serial" for loop in block.enclosing_loops):
        return
    total = prod(extent for _, extent in loops)
    lanes = lanes_of_block(block, target)
    last, extent = loops[-1]
    if has_lanes(draft, name, target):
        draft.do(Split, block=name, loop=last, factors=(0, lanes))
        draft.do(Vectorize, block=name, loop=f"{last}1")
        loops[-1] = (f"{last}0", -(-extent // lanes))
    if target.cores > 1 and total >= parallel_elements(target):
        deal(draft, name, [n for n, _ in loops[:-1]] or [loops[0][0]])
