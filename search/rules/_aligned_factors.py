"""Factors of a product whose rows begin at no multiples of a vector, copied before to rows that do."""

from __future__ import annotations

from math import prod

from ...dialects.buffers import buffer_shape
from ...dialects.target import WIDEST_ACCESS_BYTES
from ...passes.schedule.bind import Bind
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.vectorize import Vectorize
from ..sketch.draft import Draft
from ..structure.products import Factor, Product, is_box

THREADS, COPIED = 256, 4
"""Threads of a block that copies, and neighbours that each of them writes at once. A choice: loads are of an element
each, of which four are under way so."""


def may_be_aligned(product: Product) -> bool:
    """True where some factors are matrices whose rows are no whole vectors."""
    return any(_is_apart(product, factor) for factor in product.factors)


def are_boxes_when_aligned(product: Product) -> bool:
    """True where the copy engine can bring both factors once those whose rows are no whole vectors are aligned."""
    return all(_is_apart(product, factor) or is_box(product, factor) for factor in product.factors)


def align_factors(draft: Draft, block: str, product: Product) -> int:
    """Copy the factors whose rows are no whole vectors to rows that are, which zeros fill up; the bytes of them."""
    found, k = 0, [a.name for a in product.k]
    for factor in product.factors:
        if _is_apart(product, factor):
            name, rows = factor.operand.name, [a.name for a in factor.rows]
            layout = (*(a.name for a in product.batch), *((*k, *rows) if factor.turned else (*rows, *k)))
            draft.do(CacheRead, block=block, buffer=name, scope="global", layout=layout, label=f"{name}_aligned")
            _copy(draft, f"{name}_aligned")
            found += prod(buffer_shape(factor.operand.buffer)) * product.intrinsic.a.bytes
    return found


def _copy(draft: Draft, block: str) -> None:
    """Copy a factor by a kernel, with a vector of neighbours to each thread."""
    grid, thread, vector = draft.split(block, draft.fuse(block, draft.loops(block)), (0, THREADS, COPIED))
    draft.do(Bind, block=block, loop=grid, thread="blockIdx.x")
    draft.do(Bind, block=block, loop=thread, thread="threadIdx.x")
    draft.do(Vectorize, block=block, loop=vector)
    draft.settled.add(block)


def _is_apart(product: Product, factor: Factor) -> bool:
    """True for a matrix of rows and steps of k, one axis each, whose rows are no whole vectors."""
    row_bytes = buffer_shape(factor.operand.buffer)[-1] * product.intrinsic.a.bytes
    return len(factor.rows) == len(product.k) == 1 and row_bytes % WIDEST_ACCESS_BYTES != 0
