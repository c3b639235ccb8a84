"""Loads, stores and buffers: whole vectors where the alignment is known, else element by element."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ...dialects.kernel import Chunk
from ...passes.analysis.initial_values import initial_value
from ..unsupported import UnsupportedError
from .expression import ADD, Expr, Place, ternary
from .index_arithmetic import terms
from .printer import Buffer, Handler, KernelPrinter
from .types import bytes_of, element_name

_SUM = re.compile(r" [-+] ")
_BRACKETS = re.compile(r"\[[^][]*\]|\([^()]*\)")


def load(p: KernelPrinter, op: Operation) -> None:
    """Print a load: scalars stay in the expression that uses them where nothing is written in between."""
    assert isinstance(op, kernel.LoadOp)
    if op.value.first_use is None:
        return
    buffer = p.buffer(op.buffer)
    places = places_of(p, op.buffer, op.index, op.offset.data, op.stride.data, kernel.lanes_of(op.value.type))
    masks = p.lanes(op.mask) if op.mask is not None else None
    if buffer.scope == "local" or op.stride.data != 1 or len(places) == 1:
        lanes = [_element(p, buffer, place) for place in dict.fromkeys(places)]
        lanes = lanes * (len(places) // len(lanes))
        p.define(op.value, _masked(p, buffer.kind, lanes, masks))
        return
    chunks = list(split(p, buffer.kind, len(places), op.align.data if op.align else 0))
    uniform = masks is None or all(mask.text == masks[0].text for mask in masks)
    if not uniform or all(chunk.lanes == 1 for chunk in chunks):
        p.define(op.value, _masked(p, buffer.kind, [_element(p, buffer, place) for place in places], masks))
        return
    hint = p.hint(op.value)
    condition = p.atoms(op.mask)[0] if op.mask is not None else None
    loaded = [_load_chunk(p, buffer, places[chunk.first], chunk.lanes, hint, condition) for chunk in chunks]
    p.define_literal(op.value, [lane for chunk in loaded for lane in chunk])


def _load_chunk(
    p: KernelPrinter, buffer: Buffer, place: Place, lanes: int, hint: str, condition: Expr | None
) -> list[Expr]:
    kind, words = buffer.kind, p.language
    if lanes == 1:
        element = _masked(p, kind, [_element(p, buffer, place)], condition and [condition])
        return [p.variable(kind, hint, element[0])]
    name = p.names.fresh(hint)
    value = words.vector_load(buffer.name, place_text(place), kind, lanes, buffer.scope == "shared")
    vector = words.vector_type(kind, lanes)
    p.vectors.add((kind, lanes))
    p.vector_names[name] = (kind, lanes)
    if condition is None:
        p.line(f"const {vector} {name} = {value};")
    else:
        p.line(f"{vector} {name} = {words.vector_zero(kind, lanes)};")
        p.line(f"if ({condition.text}) {name} = {value};")
    return [Expr(words.vector_lane(name, kind, lanes, lane)) for lane in range(lanes)]


def store(p: KernelPrinter, op: Operation) -> None:
    """Print a store."""
    assert isinstance(op, kernel.StoreOp)
    buffer = p.buffer(op.buffer)
    p.stored.add(op.buffer)
    lanes = list(p.lanes(op.value))
    places = places_of(p, op.buffer, op.index, op.offset.data, op.stride.data, len(lanes))
    masks = list(p.lanes(op.mask)) if op.mask is not None else None
    uniform = masks is None or all(mask.text == masks[0].text for mask in masks)
    if masks is not None:
        masks = list(p.atoms(op.mask)) if op.mask is not None and len(masks) > 1 else masks
    for place in places:
        p.settle(place)
    align = op.align.data if op.align else 0
    vector = buffer.scope != "local" and op.stride.data == 1 and uniform
    chunks = split(p, buffer.kind, len(lanes), align if vector else 0)
    order = slice(None, None, -1 if kernel.BACKWARDS in op.attributes else 1)
    chunks = iter([*chunks][order])
    lanes = _untangled(p, buffer.kind, lanes[order], places[order])[order]
    if masks is None or not uniform:
        _store_chunks(p, buffer, places, lanes, chunks, masks)
        return
    with p.braces(f"if ({masks[0].text})"):
        _store_chunks(p, buffer, places, lanes, chunks, None)


def _untangled(p: KernelPrinter, kind: str, lanes: list[Expr], places: Sequence[Place]) -> list[Expr]:
    """Copy lanes to variables where one reads what an earlier lane's store overwrites."""
    if not any(lane.reads for lane in lanes):
        return lanes
    tangled = any(
        read.may_be(place) for number, lane in enumerate(lanes) for read in lane.reads for place in places[:number]
    )
    return [p.variable(kind, "v", lane) if lane.reads else lane for lane in lanes] if tangled else lanes


def _store_chunks(
    p: KernelPrinter,
    buffer: Buffer,
    places: Sequence[Place],
    lanes: Sequence[Expr],
    chunks: Iterator[Chunk],
    masks: Sequence[Expr] | None,
) -> None:
    words, shared = p.language, buffer.scope == "shared"
    for chunk in chunks:
        place = places[chunk.first]
        condition = f"if ({masks[chunk.first].text}) " if masks is not None else ""
        if chunk.lanes > 1:
            values = lanes[chunk.first : chunk.first + chunk.lanes]
            p.vectors.add((buffer.kind, chunk.lanes))
            whole = whole_vector(p, buffer.kind, values)
            p.line(condition + words.vector_store(buffer.name, place_text(place), values, whole, buffer.kind, shared))
        elif buffer.scope == "local":
            p.line(f"{condition}{_assignment(register(buffer, place), lanes[chunk.first])}")
        else:
            p.line(condition + words.store(buffer.name, place_text(place), lanes[chunk.first], buffer.kind, shared))


def _assignment(register: str, value: Expr) -> str:
    """Return `r = value;`, or `r += a;` where the value is `r + a`."""
    added = value.text.removeprefix(f"{register} + ")
    is_sum = value.precedence == ADD and added != value.text and not _SUM.search(_BRACKETS.sub("", added))
    return f"{register} += {added};" if is_sum else f"{register} = {value.text};"


def whole_vector(p: KernelPrinter, kind: str, values: Sequence[Expr]) -> str | None:
    """Return the vector variable whose lanes, in order, are `values`, if there is one."""
    name = values[0].text.partition(".")[0]
    if p.vector_names.get(name) != (kind, len(values)):
        return None
    lanes = [p.language.vector_lane(name, kind, len(values), lane) for lane in range(len(values))]
    return name if lanes == [value.text for value in values] else None


def gather(p: KernelPrinter, op: Operation) -> None:
    """Print a gather, element by element."""
    assert isinstance(op, kernel.GatherOp)
    buffer = p.buffer(op.buffer)
    places = [Place(op.buffer, index.text, 0) for index in p.atoms(op.indices)]
    elements = [_element(p, buffer, place) for place in places]
    p.define(op.value, _masked(p, buffer.kind, elements, p.lanes(op.mask)))


def scatter(p: KernelPrinter, op: Operation) -> None:
    """Print a scatter, element by element."""
    assert isinstance(op, kernel.ScatterOp)
    buffer = p.buffer(op.buffer)
    p.stored.add(op.buffer)
    places = [Place(op.buffer, index.text, 0) for index in p.atoms(op.indices)]
    lanes, masks = list(p.lanes(op.value)), p.atoms(op.mask)
    for place in places:
        p.settle(place)
    lanes = _untangled(p, buffer.kind, lanes, places)
    _store_chunks(p, buffer, places, lanes, split(p, buffer.kind, len(lanes), 0), masks)


def alloc(p: KernelPrinter, op: Operation) -> None:
    """Declare a buffer of a thread; those of a block are declared at the head of the kernel."""
    assert isinstance(op, kernel.AllocOp)
    scope = scope_of(op)
    if scope in ("shared", kernel.COUNTERS) or op.buffer.first_use is None:
        return
    if scope != "local":
        raise UnsupportedError(f"buffer '{op.label.data}' in a launch must be shared or local, got '{scope}'")
    size = math.prod(op.buffer.type.get_shape())
    kind = element_name(op.buffer.type)
    buffer = Buffer(p.names.fresh(op.buffer.name_hint or op.label.data), kind, "local", size)
    p.buffers[op.buffer] = buffer
    initial = initial_value(op)
    start = ""
    if initial is not None:
        p.done.update(initial.stores)
        start = f" = {p.literal(initial.value, kind).text if buffer.is_scalar else p.language.zeros}"
    p.line(f"{p.type_of(kind)} {buffer.name}{'' if buffer.is_scalar else f'[{size}]'}{start};")


def scope_of(op: kernel.AllocOp) -> str:
    """Return the scope of an allocation; `global` where its type names none."""
    space = op.buffer.type.memory_space
    return space.data if isinstance(space, StringAttr) else "global"


def places_of(p: KernelPrinter, buffer: SSAValue, index: SSAValue, offset: int, stride: int, lanes: int) -> list[Place]:
    """Return the element that each lane of an access addresses."""
    base = p.scalar(index)
    if base.reads:
        (base,) = p.atoms(index)
    part, constant = terms(base)
    offset += constant
    text = "" if part is None else part.at_least(ADD)
    return [Place(buffer, text, offset + lane * stride) for lane in range(lanes)]


def place_text(place: Place) -> str:
    """Return a place's index as C."""
    if not place.base:
        return str(place.constant)
    if not place.constant:
        return place.base
    return f"{place.base} {'-' if place.constant < 0 else '+'} {abs(place.constant)}"


def split(p: KernelPrinter, kind: str, lanes: int, align: int) -> Iterator[Chunk]:
    """Cut a vector whose first lane is aligned to `align` bytes into what one access can move."""
    return kernel.chunks(lanes, bytes_of(kind), align, p.language.vector_widths(kind))


def register(buffer: Buffer, place: Place) -> str:
    """Return an element of a buffer in registers."""
    return buffer.name if buffer.is_scalar else f"{buffer.name}[{place_text(place)}]"


def _element(p: KernelPrinter, buffer: Buffer, place: Place) -> Expr:
    if buffer.scope == "local":
        return Expr(register(buffer, place), reads=(place,))
    value = p.language.load(buffer.name, place_text(place), buffer.kind, buffer.scope == "shared")
    return value._replace(reads=(place,))


def _masked(p: KernelPrinter, kind: str, lanes: Sequence[Expr], masks: Sequence[Expr] | None) -> list[Expr]:
    if masks is None:
        return list(lanes)
    zero = p.literal(0, kind)
    return [ternary(mask, lane, zero) for mask, lane in zip(masks, lanes, strict=True)]


def prefetch(p: KernelPrinter, op: Operation) -> None:
    """Print nothing: other threads hide the latency."""


MEMORY: dict[type[Operation], Handler] = {
    kernel.AllocOp: alloc,
    kernel.LoadOp: load,
    kernel.StoreOp: store,
    kernel.GatherOp: gather,
    kernel.ScatterOp: scatter,
    kernel.PrefetchOp: prefetch,
}
