"""Copies of a pipelined loop in pieces, one for each step of an iteration's work, in the place of all ahead of it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntAttr, StringAttr
from xdsl.ir import Block, Region

from ...dialects.index import axis
from ...dialects.loop import SERIAL, AtOp, BlockOp, ForOp, buffer_shape, is_bound, loops_in, statements
from ...dialects.target import WIDEST_ACCESS_BYTES
from ..analysis.code_size import buffer_element_bytes, unroll_limit
from ..analysis.matrix_product import TENSORIZE
from ._run_ahead import blocks_of

Nest = ForOp | BlockOp

LEAST_RESULTS = 16
"""Results of a thread, virtual ones apart, that a step adds to, at least. On an H200 (2026-11-28) products with as many
take 0.90 to 1.05 of the time where copies are spread, 0.97 in the mean, those with 8 or less 0.95 to 1.17."""
SHARE = 2
"""Part of the steps, the first ones, that copies are spread over: over all, the last ones come late. 512x4096x4096 and
2048 cubed take 0.964 and 0.967 of the time over a half, 1.006 and 0.990 over all of them."""


def steps_of(loop: ForOp, copies: Sequence[Nest]) -> ForOp | None:
    """Return the loop of steps that is all the work of a pipelined loop, where spreading its copies over them pays.

    Steps are written out, as those that are counted would ask which copies are theirs, and threads take them, with no
    matrix unit and no sum inside.
    """
    work = [nest for nest in statements(loop) if nest not in copies]
    steps = work[0] if len(work) == 1 else None
    if not isinstance(steps, ForOp) or steps.loop_kind != SERIAL or steps.ends is not None:
        return None
    inside = list(loops_in(steps))
    if any(TENSORIZE in each.notes or is_of_a_sum(each) for each in inside) or any(map(_has_cut_rows, copies)):
        return None
    many = max(map(_results, statements(steps)), default=0) >= LEAST_RESULTS
    return steps if many and are_written_out(steps) else None


def are_written_out(steps: ForOp) -> bool:
    """True for a loop of which copies are made, as it or a loop around says."""
    return steps.size * sum(map(_copies, statements(steps))) <= _limit_in(steps)


def _results(nest: Nest) -> int:
    """Iterations of a nest for each thread."""
    return (
        1 if isinstance(nest, BlockOp) else sum(map(_results, statements(nest))) * (1 if is_bound(nest) else nest.size)
    )


def _copies(nest: Nest) -> int:
    """Copies of what is in a nest when its loops are written out, lanes apart."""
    if isinstance(nest, BlockOp):
        return 1
    return sum(map(_copies, statements(nest))) * (1 if nest.loop_kind == "vectorized" else nest.size)


def is_of_a_sum(loop: ForOp) -> bool:
    """True for loops that sum up, as over a window."""
    return any(
        axis_.reduce and loop.loop_name in bound.axes()
        for block in blocks_of(loop)
        for axis_, bound in zip(block.axes, block.bindings.data, strict=True)
    )


def _has_cut_rows(nest: Nest) -> bool:
    """True for a copy of rows as they are, which are no whole number of vectors.

    Spread copies of these, of single elements, take 1.03 to 1.09 times as long (997x1009x1013, 777x1025x513).
    """
    for block in blocks_of(nest):
        (load,) = block.loads
        runs_on = load.indices.data[-1].axes() & block.write_indices[0][-1].axes()
        if runs_on and buffer_shape(load.buffer)[-1] * buffer_element_bytes(load.buffer) % WIDEST_ACCESS_BYTES:
            return True
    return False


def _limit_in(loop: ForOp) -> int:
    """The most copies that a serial loop may make of what is in it, as it or a loop around says."""
    parent = loop.parent_op()
    return unroll_limit(loop, _limit_in(parent) if isinstance(parent, ForOp) else 0)


def spread(loop: ForOp, steps: ForOp, nests: Sequence[Nest], ahead: int) -> bool:
    """Put copies for a later iteration of a loop into its steps, a few rounds of them each; False where none fit.

    `for x in 4 { copy(x) }` in 16 steps, with another copy behind it, is `at k = k + 1 where (3 - step >= 0) {
    copy(step) }` in each of them. Copies for no iteration are not made: that is a predicate of theirs, and no branch.
    """
    rounds = [_rounds(nest) for nest in nests]
    counts = [1 if each is None else each.size for each in rounds]
    most = steps.size // SHARE
    share = next((n for n in range(1, max(counts) + 1) if sum(-(-count // n) for count in counts) <= most), None)
    if share is None:
        return False
    step, k, first = axis(steps.loop_name), axis(loop.loop_name), 0
    reached = [loop.size - 1 - k, *(loop.ends.data if loop.ends is not None else ())]
    pieces = []
    for nest, own, count in zip(nests, rounds, counts, strict=True):
        last = first + -(-count // share) - 1
        conditions, at = list(reached), {}
        if own is not None:
            at[own.loop_name] = round_ = (step - first) * share + axis(own.loop_name)
            own.extent, own.kind = IntAttr(share), StringAttr("unrolled" if share > 1 else SERIAL)
            conditions += [count - 1 - round_] if count % share else []
        for block in blocks_of(nest):
            where = [*(c.substitute(at) for c in block.conditions), *conditions]
            block.rebind([e.substitute(at) for e in block.bindings.data], where)
        pieces.append(AtOp(loop.loop_name, k + ahead, Region(Block([nest])), [step - first, last - step]))
        first = last + 1
    begin = steps.body.block.first_op
    assert begin is not None
    steps.body.block.insert_ops_before(pieces, begin)
    return True


def _rounds(nest: Nest) -> ForOp | None:
    """The outermost serial loop of a copy, whose iterations are its rounds; None for one of a single round."""
    while isinstance(nest, ForOp):
        if nest.loop_kind == SERIAL and nest.size > 1:
            return nest
        inside = [op for op in nest.body.block.ops if isinstance(op, ForOp | BlockOp)]
        if len(inside) != 1 or (nest.loop_kind != SERIAL and not is_bound(nest)):
            return None
        nest = inside[0]
    return None
