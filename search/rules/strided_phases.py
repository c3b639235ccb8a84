"""Strided rows on a CPU: laid out by phases before all tiles, so that neighbours among results read neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from ...dialects.loop import BlockOp
from ...dialects.target import Target
from ...passes.analysis.access import writers
from ...passes.analysis.nest import buffer_name
from ...passes.schedule.cache_read import CacheRead
from ...passes.schedule.transform_layout import TransformLayout
from ..sketch.draft import Draft
from ..sketch.rule import SketchRule
from ..structure.anchor import Anchor, Operand, anchors_in
from ..structure.strides import WIDEST_STRIDE
from ._lanes import lanes_of
from .injective import spread


@dataclass(frozen=True)
class StridedPhases(SketchRule):
    """`x[c, 2 * i + k]` -> `x_phases[c, (2 * i + k) mod 2, i + k floordiv 2]`, beside reading it as it is.

    Vectors along `i` are loaded whole then, whatever the tap, in the place of a shuffle or a copy for each of them.
    Where the operand is padded, the block that pads writes it so. 192 channels of 56x56 apart, 7x7/2, take 0.64 ms so
    and 2.6 by copies of each window, PyTorch 1.0 (a core of an Emerald Rapids).
    """

    order: ClassVar[int] = 280

    def when(self, target: Target) -> bool:
        return not target.is_gpu

    def apply(self, draft: Draft, target: Target) -> list[Draft]:
        drafts = [draft]
        for anchor in anchors_in(draft.module):
            if anchor.block not in draft.settled and (operand := _strided(anchor, target)) is not None:
                written = draft.with_steps(partial(_write, anchor=anchor, operand=operand, target=target))
                drafts += [written] if written is not None else []
        return drafts


def _strided(anchor: Anchor, target: Target) -> Operand | None:
    """The operand that alone moves along the last axis of the results, by a few elements at a time; None without.

    None also where each of its elements is read once, by one tap alone, and where enough results are made of each for
    vectors along these, or for copies of each window to pay: filters of one group, a vector of them and more. Of
    seven random layers with 16 to 32 filters a group six take 1 / 1.07 to 1 / 2.3 of the time so, one 1 / 0.88. Rows of
    two or three leave most lanes idle, and are faster so than copies all the same: 384 channels of 13x6 apart, 5x5/2,
    take 37 us an image for 272 (one core of a Zen 5).
    """
    last, lanes = anchor.spatial[-1], lanes_of(anchor, target)
    moving = [o for o in anchor.operands if last.name in o.axes]
    if len(moving) != 1:
        return None
    (operand,) = moving
    slide = next((each for each in operand.slides if each.dimension == len(operand.indices) - 1), None)
    if slide is None or slide.place != last or any(last.name in e.axes() for e in operand.indices[:-1]):
        return None
    filters = max(anchor.run_of(a.name) for a in anchor.spatial)
    few = (filters if filters > 1 else anchor.kept_results(operand)) < lanes
    return operand if 1 < slide.stride <= WIDEST_STRIDE and slide.tap.extent > slide.stride and few else None


def _write(draft: Draft, anchor: Anchor, operand: Operand, target: Target) -> None:
    """Lay the operand out by phases, as it is padded or in a copy, and schedule the block that does so."""
    steps = operand.indices[-1].coefficient(anchor.spatial[-1].name)
    name = next((w.block_name for w in writers(operand.buffer) if w.block_name in anchor.pads), "")
    if not name:
        name = f"{operand.name}_phases"
        draft.do(CacheRead, block=anchor.block, buffer=operand.name, scope="global", label=name)
    block = draft.block(name)
    *kept, last = [e.as_axis() or f"d{n}" for n, e in enumerate(block.write_indices[0])]
    layout = (*kept, f"{last}%{steps}", f"{last}/{steps}")
    draft.do(TransformLayout, block=name, buffer=buffer_name(block.outputs[0]), layout=layout)
    *outer, along = draft.loops(name)
    whole, phase = draft.split(name, along, (0, steps))
    draft.order(name, (*outer, phase, whole))
    spread(draft, name, target)
    draft.settled.add(name)
    draft.names.append("phases")


def phase_copies(draft: Draft, anchor: Anchor) -> list[BlockOp]:
    """The blocks that have laid out operands of a reduction so: they write at remainders."""
    found = [w for o in anchor.operands for w in writers(o.buffer) if w.block_name in draft.settled]
    return [w for w in found if not w.is_reduction and any(e.as_axis() is None for e in w.write_indices[0])]


def reads_phases(draft: Draft, anchor: Anchor) -> bool:
    """True for a reduction of which an operand has been laid out so: it is read where it is."""
    return bool(phase_copies(draft, anchor))
