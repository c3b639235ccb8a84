"""Gathers of lanes that are known places apart: a load for all that are near each other, and a shuffle.

lane l of a gather is element first + near[l], near = 0, 100, 1, 101, 2, 102, 3, 103
->
loads of elements first + 0 .. 3 and first + 100 .. 103, and lanes picked from both
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.vector import BroadcastOp
from xdsl.ir import SSAValue
from xdsl.transforms.canonicalization_patterns.utils import const_evaluate_operand

from ...dialects import kernel
from .function import Function
from .types import stored_bytes

MOST_LOADS = 4
"""Of a gather: with more a gather is as fast (a choice)."""

Run = tuple[int, int]
"""The first and the last place that a load reads."""


def near_of(op: kernel.GatherOp) -> tuple[int | None, ...] | None:
    """Distances of lanes from the first one, None of those that are off; None where a few loads would not do."""
    if op.near is None:
        return None
    places = tuple(op.near.get_values())
    on = first_on(op.mask, len(places))
    if on == 0 or len(_runs(places[:on], len(places))) > MOST_LOADS:
        return None
    return places[:on] + (None,) * (len(places) - on)


def first_on(mask: SSAValue, lanes: int) -> int:
    """The first lanes, which are on where others are off; 0 where that is not known before it runs."""
    owner = mask.owner
    if isinstance(owner, BroadcastOp):
        return lanes if const_evaluate_operand(owner.source) else 0
    if not isinstance(owner, kernel.MaskOp) or owner.step.data != -1:
        return 0
    start = const_evaluate_operand(owner.start)
    return 0 if start is None else min(lanes, start + 1)


def _runs(places: Sequence[int], lanes: int) -> list[Run]:
    """The fewest stretches of no more elements than lanes in which all places are."""
    found: list[Run] = []
    for place in sorted(set(places)):
        if found and place - found[-1][0] < lanes:
            found[-1] = found[-1][0], place
        else:
            found.append((place, place))
    return found


def emit_near(f: Function, first: str, stored: str, near: Sequence[int | None]) -> str:
    """Print the loads around the pointer `first`, and what picks the lanes; those that are None are zero."""
    lanes = len(near)
    value = "zeroinitializer"
    for low, high in _runs([place for place in near if place is not None], lanes):
        count = high - low + 1
        pointer = f.element(stored, first, str(low))
        part = f.put(f"load <{count} x {stored}>, ptr {pointer}, align {stored_bytes(stored)}")
        picks = [place - low if place is not None and low <= place <= high else None for place in near]
        wide = _shuffled(f, part, "poison", stored, count, [pick if pick is not None else -1 for pick in picks])
        kept = [lane if pick is None else lanes + lane for lane, pick in enumerate(picks)]
        value = _shuffled(f, value, wide, stored, lanes, kept)
    return value


def _shuffled(f: Function, a: str, b: str, stored: str, count: int, picks: Sequence[int]) -> str:
    """Print the vector of elements at places of two others of `count`, one behind the other; -1 is any element."""
    vector, places = f"<{count} x {stored}>", ", ".join(f"i32 {p}" if p >= 0 else "i32 poison" for p in picks)
    return f.put(f"shufflevector {vector} {a}, {vector} {b}, <{len(picks)} x i32> <{places}>")
