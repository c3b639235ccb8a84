"""Strided loads of neighbouring columns of rows: rows are read in parts, and the parts transposed in registers.

lane l of load c is element c + l * stride, for columns c = 0 .. 3
->
vector q of 0 .. 3: columns 0 .. 3 of rows q, q + 4, q + 8, ..; then 4 x 4 elements change places in each part
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import MemoryWriteEffect

from ...dialects import kernel
from .function import Function
from .near_gathers import first_on
from .types import element_text, lanes_of, stored_bytes, stored_text

PART_BYTES = 16
"""Within parts of so many bytes vectors of x86 are shuffled in a cycle, and each is loaded into its place; a vector of
Neon is one part (Intel Optimization Reference Manual, VUNPCKLPS and VINSERTF32X4)."""
LEAST_STRIDE = 5
"""Elements from one lane to the next: the lanes of smaller strides are in few vectors, and are picked from those."""

Place: TypeAlias = tuple[SSAValue, SSAValue, int, int, int]
"""A buffer, an index, a stride, lanes, and how many are on: what loads have in common that differ by their columns."""
Columns: TypeAlias = dict[int, list[kernel.LoadOp]]
"""Loads of a place by their offsets."""


@dataclass(frozen=True)
class TurnedLoads:
    """Loads of neighbouring columns, which begin at the offset `first` of as many as a part has elements."""

    first: int
    loads: tuple[kernel.LoadOp, ...]


def turned_loads(block: Block) -> dict[Operation, list[TurnedLoads]]:
    """Return the loads of a block that fill parts of rows, by the one of each group that comes first."""
    found: dict[Operation, list[TurnedLoads]] = {}
    for columns in _columns_of_places(block):
        order = {load: number for number, load in enumerate(load for loads in columns.values() for load in loads)}
        for group in _groups(columns, _part_elements(next(iter(order)))):
            found.setdefault(min(group.loads, key=order.__getitem__), []).append(group)
    return found


def _columns_of_places(block: Block) -> Iterator[Columns]:
    """Strided loads of a block in their order, by place; nothing is stored to a buffer between those of one."""
    held: dict[Place, Columns] = {}
    for op in block.ops:
        if type(op) is kernel.LoadOp:
            if _fills_parts(op):
                place = (op.buffer, op.index, op.stride.data, lanes_of(op.value.type) or 1, _lanes_on(op))
                held.setdefault(place, {}).setdefault(op.offset.data, []).append(op)
        elif held and (op.regions or op.has_trait(MemoryWriteEffect)):
            ended = [place for place in held if op.regions or place[0] in op.operands]
            yield from [held.pop(place) for place in ended]
    yield from held.values()


def _fills_parts(load: kernel.LoadOp) -> bool:
    """True for a load of several lanes that are far apart, a power of two of whole parts, the first so many of them."""
    lanes, kind = lanes_of(load.value.type), cast(MemRefType[Attribute], load.buffer.type).element_type
    if lanes is None or _lanes_on(load) <= 0 or load.stride.data < LEAST_STRIDE or element_text(kind) == "i1":
        return False
    return lanes & (lanes - 1) == 0 and lanes % _part_elements(load) == 0


def _lanes_on(load: kernel.LoadOp) -> int:
    """The first lanes, which are on where others are off; 0 where that is not known before it runs."""
    lanes = lanes_of(load.value.type) or 1
    return lanes if load.mask is None else first_on(load.mask, lanes)


def _part_elements(load: kernel.LoadOp) -> int:
    return PART_BYTES // stored_bytes(_stored(load))


def _stored(load: kernel.LoadOp) -> str:
    return stored_text(element_text(cast(MemRefType[Attribute], load.buffer.type).element_type))


def _groups(columns: Columns, elements: int) -> Iterator[TurnedLoads]:
    """Neighbouring columns, as many as a part has; the last of a run begin so that they end with it."""
    for run in _runs(sorted(columns)):
        for start in range(run.start, run.stop if len(run) >= elements else run.start, elements):
            loads = [load for column in range(start, min(start + elements, run.stop)) for load in columns[column]]
            yield TurnedLoads(min(start, run.stop - elements), tuple(loads))


def _runs(numbers: list[int]) -> Iterator[range]:
    """The longest ranges of neighbours in a sorted list of numbers."""
    start = 0
    for end in range(1, len(numbers) + 1):
        if end == len(numbers) or numbers[end] != numbers[end - 1] + 1:
            yield range(numbers[start], numbers[end - 1] + 1)
            start = end


def emit_turned(f: Function, group: TurnedLoads, address: Callable[[int], str]) -> None:
    """Print the rows' parts and what turns them, and give the loads of a group their names.

    `address` prints the pointer to the element at an offset of the place.
    """
    one = group.loads[0]
    stored, elements, lanes, on = _stored(one), _part_elements(one), cast(int, lanes_of(one.value.type)), _lanes_on(one)
    part, align = f"<{elements} x {stored}>", stored_bytes(stored)
    vectors = []
    for row in range(elements):
        offsets = {at: group.first + at * one.stride.data for at in range(row, lanes, elements)}
        parts = [
            f.put(f"load {part}, ptr {address(offset)}, align {align}") if at < on else "zeroinitializer"
            for at, offset in offsets.items()
        ]
        vectors.append(_joined(f, parts, stored, elements))
    turned = _transposed(f, vectors, stored, lanes, elements)
    for load in group.loads:
        f.names[load.value] = turned[load.offset.data - group.first]


def _joined(f: Function, parts: list[str], stored: str, elements: int) -> str:
    """Print what puts vectors behind each other, two by two; there are a power of two of them."""
    while len(parts) > 1:
        places = range(2 * elements)
        parts = [_shuffled(f, a, b, stored, elements, places) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        elements *= 2
    return parts[0]


def _transposed(f: Function, vectors: list[str], stored: str, lanes: int, elements: int) -> list[str]:
    """Print the transposition of the parts of vectors, as many as a part has elements: lanes dealt out in turn.

    Each step deals the elements of vector i and of the one that is half of them further, which turns the digits of
    places around by one; after log2(elements) steps rows are columns.
    """
    half, steps = elements // 2, elements.bit_length() - 1
    low = [place for at in range(0, lanes, elements) for n in range(at, at + half) for place in (n, lanes + n)]
    high = [place + half for place in low]
    for _ in range(steps):
        pairs = zip(vectors[:half], vectors[half:], strict=True)
        vectors = [_shuffled(f, a, b, stored, lanes, places) for a, b in pairs for places in (low, high)]
    return vectors


def _shuffled(f: Function, a: str, b: str, stored: str, lanes: int, places: range | list[int]) -> str:
    """Print the vector of lanes at places of two others, one behind the other."""
    vector, picks = f"<{lanes} x {stored}>", ", ".join(f"i32 {place}" for place in places)
    return f.put(f"shufflevector {vector} {a}, {vector} {b}, <{len(places)} x i32> <{picks}>")
