"""Operands that a reduction on a CPU reads from a copy that is made of them ahead of all tiles: what that takes."""

from __future__ import annotations

from math import prod

from ...dialects.buffers import buffer_shape
from ...dialects.loop import BlockOp
from ...dialects.target import Target
from ..estimates.copy_model import copy_cycles
from ..sketch.draft import Draft
from ..structure.strides import lanes_of_block, output_bytes
from ._tile_plan import TilePlan
from .strided_phases import phase_copies


def cycles_ahead(draft: Draft, plan: TilePlan) -> float:
    """Cycles of one core to write operands that are padded, or laid out by phases, before all tiles."""
    names = {*plan.pads_ahead, *(block.block_name for block in phase_copies(draft, plan.anchor))}
    return sum(_cycles(draft.block(name), plan.target) for name in sorted(names))


def _cycles(block: BlockOp, target: Target) -> float:
    """Cycles of one copy, by vectors of its rows, or element by element where rows are shorter than half a vector."""
    *rows, width = buffer_shape(block.outputs[0])
    lanes, size = lanes_of_block(block, target), output_bytes(block)
    read = sum(prod(buffer_shape(load.buffer)) for load in block.loads)
    vectors = prod(rows) * (-(-width // lanes) if 2 * width >= lanes else width)
    return copy_cycles(target, size * read, size * prod((*rows, width)), vectors)
