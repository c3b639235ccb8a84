"""The size of the straight-line code that loops ask for, counted before any of it is written."""

from __future__ import annotations

from itertools import accumulate
from math import prod

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from ...dialects.element import element_bytes
from ...dialects.loop import BlockOp, ForOp


def unroll_limit(loop: ForOp, around: int) -> int:
    """The most copies that serial loops may make from a loop on, by its pragma; those `around` it where it has none."""
    steps, explicit = loop.notes.get("auto_unroll_max_step"), loop.notes.get("unroll_explicit")
    if isinstance(explicit, IntegerAttr) and not explicit.value.data:
        return 0
    return int(steps.value.data) if isinstance(steps, IntegerAttr) else around


def copying_loops(block: BlockOp) -> list[ForOp]:
    """The loops around a block that are written out: virtual threads, unrolled loops, and what a pragma asks for."""
    loops = block.enclosing_loops
    _, *limits = accumulate(loops, lambda around, loop: unroll_limit(loop, around), initial=0)
    inside = 1
    found: list[ForOp] = []
    for loop, most in zip(reversed(loops), reversed(limits), strict=True):
        inside *= 1 if loop.loop_kind == "vectorized" else loop.size
        if loop.loop_kind in ("unrolled", "vthread") or (loop.loop_kind == "serial" and inside <= most):
            found.append(loop)
    return found[::-1]


def copies(block: BlockOp) -> int:
    """Count how often a block is written out, lanes apart."""
    return prod(loop.size for loop in copying_loops(block))


def lanes(block: BlockOp) -> int:
    """Count the vector lanes of a block: the elements it computes at once."""
    return prod(loop.size for loop in block.enclosing_loops if loop.loop_kind == "vectorized")


def vectors(block: BlockOp, vector_bytes: int) -> int:
    """Count the machine's vectors that a block fills at once."""
    return -(-lanes(block) * buffer_element_bytes(block.outputs[0]) // vector_bytes)


def buffer_element_bytes(buffer: SSAValue) -> int:
    """Bytes of one element of a buffer."""
    return element_bytes(buffer.type.element_type)  # type: ignore[attr-defined]
