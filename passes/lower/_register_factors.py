"""Factors of products in registers: of the steps of k, a thread reads those that it holds of the fragment."""

from __future__ import annotations

from xdsl.dialects.builtin import DictionaryAttr, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp

from ...dialects.attributes import AxesAttr, Axis, IndicesAttr
from ...dialects.index import IndexExpr, axis
from ...dialects.intrinsics import Intrinsic, find_intrinsic
from ...dialects.loop import BlockOp, ForOp, blocks_in, loops_in, scope_of
from ..analysis.matrix_product import OWN, TENSORIZE, MatrixProduct, Mismatch, k_of_factor, match_product
from ..analysis.nest import fresh_name


def read_register_factors(func: FuncOp) -> None:
    """Have each thread read its own elements of a fragment in place, where a product has a factor in registers.

    `a[i, k0 * 16 + k]` -> `a[i, k0 * 16 + k floordiv 8 * 8 + threadIdx.x * 2 + k mod 2]`: analyses then see that no
    value passes between threads, or refuse what does.
    """
    for loop in list(loops_in(func)):
        note = loop.notes.get(TENSORIZE)
        intrinsic = find_intrinsic(note.data) if isinstance(note, StringAttr) else None
        if intrinsic is None or intrinsic.target != "cuda":
            continue
        block = next(blocks_in(loop))
        if OWN not in block.notes and any(scope_of(load.buffer) == "local" for load in block.loads):
            _read_held(block, loop, intrinsic)


def _read_held(block: BlockOp, loop: ForOp, intrinsic: Intrinsic) -> None:
    try:
        match = match_product(block, loop, intrinsic)
    except Mismatch:
        return  # who writes the product says why it is none
    name = k_of_factor(block, match.a)
    assert name is not None
    position = [a.name for a in block.axes].index(name)
    bound = block.bindings.data[position].substitute({match.digits[-1].loop_name: held_step(match)})
    fresh = fresh_name(f"{name}_own", {a.name for a in block.axes})
    block.iterators = AxesAttr((*block.axes, Axis(fresh, block.axes[position].extent)))
    block.rebind((*block.bindings.data, bound), block.conditions)
    match.a.indices = IndicesAttr(tuple(e.substitute({name: axis(fresh)}) for e in match.a.indices.data))
    block.annotations = DictionaryAttr({**block.notes, OWN: UnitAttr()})


def held_step(match: MatrixProduct) -> IndexExpr:
    """The step of k in a thread's fragment, for one in the loop over all of them.

    The digits of k that the fragment holds are those of the loop, the one in between is the lane's.
    """
    k, lane = axis(match.digits[-1].loop_name), axis(match.lanes[-1].loop_name)
    low = match.intrinsic.held_extents("a")[-1]
    row = low * match.lanes[-1].size
    return k // row * row + lane * low + k % low
