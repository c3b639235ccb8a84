"""Loads, stores, masks and prefetches of the kernel dialect as LLVM text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntAttr, MemRefType, StringAttr
from xdsl.dialects.vector import BroadcastOp
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import kernel
from ...dialects.names import LONGEST_NAME
from ..unsupported import UnsupportedError
from .function import Function
from .near_gathers import emit_near, near_of
from .turned_loads import TurnedLoads, emit_turned
from .types import element_text, lanes_of, stored_bytes, stored_text, vector_text

ALL_ON = "splat (i1 true)"
"""The mask that selects every lane."""

_WIDEST_SHUFFLED_STRIDE = 4
_ZEROS_BYTES = 256
"""Bytes of zeros to read where a vector is masked off: sixteen numbers of the widest type, in four of AVX2's."""


def emit_alloc(f: Function, op: Operation) -> None:
    """Print an allocation: on the stack or in the workspace."""
    buffer = op.results[0]
    buffer_type = cast(MemRefType[Attribute], buffer.type)
    label = cast(StringAttr, op.properties["label"]).data
    space = buffer_type.memory_space
    f.names[buffer] = f.allocate(
        _identifier(label), buffer_type, isinstance(space, StringAttr) and space.data == "local"
    )


def _identifier(label: str) -> str:
    """Make a name one that LLVM takes for a value without quotes."""
    name = "".join(c if (c.isascii() and c.isalnum()) or c in "_.$-" else "_" for c in label[:LONGEST_NAME])
    return f"_{name}" if name[:1].isdigit() else name


def _element(f: Function, buffer: SSAValue) -> str:
    return element_text(cast(MemRefType[Attribute], buffer.type).element_type)


def _integer(op: Operation, name: str) -> int:
    return cast(IntAttr, op.properties[name]).data


def address(f: Function, buffer: SSAValue, index: SSAValue, offset: int, element: str) -> str:
    """Return a pointer to element `index + offset` of a buffer; a base with a known index is computed once."""
    pointer, place = f.names[buffer], f.names[index]
    stored = "i8" if element == "i1" else element
    if place[0] != "%":
        offset += int(place)
        return f.put(f"getelementptr {stored}, ptr {pointer}, i64 {offset}") if offset else pointer
    key = (pointer, place)
    base = f.addresses.get(key)
    if base is None:
        base = f.addresses[key] = f.put(f"getelementptr {stored}, ptr {pointer}, i64 {place}")
    return f.put(f"getelementptr {stored}, ptr {base}, i64 {offset}") if offset else base


def emit_load(f: Function, op: Operation) -> None:
    """Print a scalar or vector load: plain, masked, broadcast, strided."""
    buffer, index, *masks = op.operands
    result = op.results[0]
    element = _element(f, buffer)
    pointer = address(f, buffer, index, _integer(op, "offset"), element)
    lanes = lanes_of(result.type)
    stored = stored_text(element)
    if lanes is not None and masks and _reads_near(op, lanes, stored):
        pointer, masks = _or_zeros(f, pointer, masks)
    mask = _mask(f, masks, lanes)
    if lanes is None:
        value = _load_scalar(f, pointer, stored, mask)
    else:
        value = _load_vector(f, pointer, stored, lanes, _integer(op, "stride"), mask)
    if element == "i1":
        value = _as_truth(f, value, lanes)
    f.names[result] = value


def emit_loads_together(f: Function, op: kernel.LoadOp, groups: list[TurnedLoads]) -> None:
    """Print loads of neighbouring columns, of which `op` is one, as rows that are transposed."""
    element = _element(f, op.buffer)
    for group in groups:
        emit_turned(f, group, lambda offset: address(f, op.buffer, op.index, offset, element))


def _reads_near(op: Operation, lanes: int, stored: str) -> bool:
    """True for a load of one element, or of neighbours, as long as there are zeros."""
    return _integer(op, "stride") in (0, 1) and lanes * stored_bytes(stored) <= _ZEROS_BYTES


def _or_zeros(f: Function, pointer: str, masks: list[SSAValue]) -> tuple[str, list[SSAValue]]:
    """Read zeros where a condition that is the same for all lanes is false; the masks that are left.

    A masked load of no lane takes hundreds of cycles where nothing is mapped: on an AMD EPYC (AVX2) a concatenation of
    two tensors of 512x64x64 takes 99.8 ms by masks, 3.7 ms so, and 4.1 ms by NumPy.
    """
    mask = masks[0]
    while isinstance(mask.owner, arith.AndIOp):
        mask = mask.owner.lhs
    same = _same_for_lanes(f, [mask])
    if same is None:
        return pointer, masks
    f.module.symbols.setdefault("@lw.zeros", f"@lw.zeros = internal constant [{_ZEROS_BYTES} x i8] zeroinitializer")
    return f.put(f"select i1 {same}, ptr {pointer}, ptr @lw.zeros"), [] if mask is masks[0] else masks


def _same_for_lanes(f: Function, masks: list[SSAValue]) -> str | None:
    """Return the condition that all lanes of a mask have, where it is one and not known."""
    owner = masks[0].owner if masks else None
    if not isinstance(owner, BroadcastOp) or f.names[masks[0]] == ALL_ON:
        return None
    return f.names[owner.source]


def _as_truth(f: Function, value: str, lanes: int | None) -> str:
    stored = f"<{lanes} x i8>" if lanes else "i8"
    return f.put(f"icmp ne {stored} {value}, {'zeroinitializer' if lanes else '0'}")


def _mask(f: Function, masks: list[SSAValue], lanes: int | None) -> str | None:
    """Return an access's mask, None where all lanes are on; the mask of a one-lane vector is a scalar."""
    mask = f.names[masks[0]] if masks else None
    if mask in (ALL_ON, "true"):
        return None
    return f.put(f"insertelement <1 x i1> poison, i1 {mask}, i32 0") if mask is not None and lanes == 1 else mask


def _load_scalar(f: Function, pointer: str, stored: str, mask: str | None) -> str:
    if mask is not None:
        f.module.symbols.setdefault("@lw.zero", "@lw.zero = internal constant i64 0")
        pointer = f.put(f"select i1 {mask}, ptr {pointer}, ptr @lw.zero")
    return f.put(f"load {stored}, ptr {pointer}, align {stored_bytes(stored)}")


def _load_vector(f: Function, pointer: str, stored: str, lanes: int, stride: int, mask: str | None) -> str:
    vector = f"<{lanes} x {stored}>"
    if stride == 0:
        return _load_broadcast(f, pointer, stored, vector, lanes, mask)
    if stride == 1:
        return _load_whole(f, pointer, stored, vector, lanes, mask)
    if 1 < abs(stride) <= _WIDEST_SHUFFLED_STRIDE and lanes >= 4:
        return _load_shuffled(f, pointer, stored, vector, lanes, stride, mask)
    if stride == -1:
        return _load_reversed(f, pointer, stored, vector, lanes, mask)
    if mask is None and lanes <= 4:
        return _load_lane_by_lane(f, pointer, stored, vector, lanes, stride)
    places = vector_text([str(lane * stride) for lane in range(lanes)], "i64")
    return gather(f, pointer, places, stored, lanes, mask or ALL_ON)


def _load_whole(f: Function, pointer: str, stored: str, vector: str, lanes: int, mask: str | None) -> str:
    align = stored_bytes(stored)
    if mask is None:
        return f.put(f"load {vector}, ptr {pointer}, align {align}")
    arguments = ((f"ptr align {align}", pointer), (f"<{lanes} x i1>", mask), (vector, "zeroinitializer"))
    return f.intrinsic("masked.load", vector, [vector, "ptr"], *arguments)


def _load_broadcast(f: Function, pointer: str, stored: str, vector: str, lanes: int, mask: str | None) -> str:
    if mask is None:
        return splat(f, _load_scalar(f, pointer, stored, None), stored, vector, lanes)
    some = f.intrinsic("vector.reduce.or", "i1", [f"<{lanes} x i1>"], (f"<{lanes} x i1>", mask))
    whole = splat(f, _load_scalar(f, pointer, stored, some), stored, vector, lanes)
    return f.put(f"select <{lanes} x i1> {mask}, {vector} {whole}, {vector} zeroinitializer")


def _load_reversed(f: Function, pointer: str, stored: str, vector: str, lanes: int, mask: str | None) -> str:
    first = f.put(f"getelementptr {stored}, ptr {pointer}, i64 {1 - lanes}")
    mask = None if mask is None else _reverse(f, mask, f"<{lanes} x i1>", lanes)
    return _reverse(f, _load_whole(f, first, stored, vector, lanes, mask), vector, lanes)


def _reverse(f: Function, value: str, vector: str, lanes: int) -> str:
    return _shuffle(f, vector, value, "poison", lanes, list(reversed(range(lanes))))


def _load_shuffled(
    f: Function, pointer: str, stored: str, vector: str, lanes: int, stride: int, mask: str | None
) -> str:
    """Load the stretch that holds all lanes as whole vectors, the last ending at the last lane, and pick."""
    width = abs(stride)
    last = (lanes - 1) * width
    if stride < 0:
        pointer = f.put(f"getelementptr {stored}, ptr {pointer}, i64 {-last}")
    starts = [part * lanes for part in range(width - 1)] + [last - lanes + 1]
    places = [lane * width for lane in range(lanes)]
    if stride < 0:
        places.reverse()
    value = "poison" if mask is None else "zeroinitializer"
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else last + 1
        held = {place - start: lane for lane, place in enumerate(places) if start <= place < end}
        at = f.put(f"getelementptr {stored}, ptr {pointer}, i64 {start}") if start else pointer
        part_mask = None if mask is None else _spread(f, mask, lanes, held)
        part = _load_whole(f, at, stored, vector, lanes, part_mask)
        picks = list(range(lanes))
        for place, lane in held.items():
            picks[lane] = lanes + place
        value = _shuffle(f, vector, value, part, lanes, picks)
    return value


def _spread(f: Function, mask: str, lanes: int, held: dict[int, int]) -> str:
    """Return the mask of a vector that holds lane `held[place]` at each place of it, all others off."""
    return _shuffle(f, f"<{lanes} x i1>", mask, "zeroinitializer", lanes, [held.get(n, lanes) for n in range(lanes)])


def _shuffle(f: Function, vector: str, a: str, b: str, lanes: int, picks: list[int]) -> str:
    order = ", ".join(f"i32 {pick}" for pick in picks)
    return f.put(f"shufflevector {vector} {a}, {vector} {b}, <{lanes} x i32> <{order}>")


def _load_lane_by_lane(f: Function, pointer: str, stored: str, vector: str, lanes: int, stride: int) -> str:
    value = "poison"
    for lane in range(lanes):
        at = f.put(f"getelementptr {stored}, ptr {pointer}, i64 {lane * stride}")
        scalar = f.put(f"load {stored}, ptr {at}, align {stored_bytes(stored)}")
        value = f.put(f"insertelement {vector} {value}, {stored} {scalar}, i32 {lane}")
    return value


def splat(f: Function, scalar: str, element: str, vector: str, lanes: int) -> str:
    """Return the vector whose lanes all are `scalar`."""
    if scalar[0] != "%":
        return f"splat ({element} {scalar})"
    first = f.put(f"insertelement {vector} poison, {element} {scalar}, i32 0")
    return f.put(f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")


def emit_store(f: Function, op: Operation) -> None:
    """Print a scalar or vector store: plain, masked, strided."""
    value, buffer, index, *masks = op.operands
    element = _element(f, buffer)
    pointer = address(f, buffer, index, _integer(op, "offset"), element)
    lanes = lanes_of(value.type)
    text, stored = f.names[value], stored_text(element)
    if element == "i1":
        shape = f"<{lanes} x i8>" if lanes else "i8"
        text = f.put(f"zext {f.type(value.type)} {text} to {shape}")
    if lanes is None:
        with _where(f, _mask(f, masks, None)):
            f.do(f"store {stored} {text}, ptr {pointer}, align {stored_bytes(stored)}")
        return
    same = _same_for_lanes(f, masks)
    mask = None if same is not None else _mask(f, masks, lanes)
    with _where(f, same):
        _store_vector(f, text, pointer, stored, lanes, _integer(op, "stride"), mask)


@contextmanager
def _where(f: Function, condition: str | None) -> Iterator[None]:
    """Branch around what is written inside, unless a condition holds."""
    if condition is None:
        yield
        return
    then, after = f.label("on"), f.label("after")
    f.branch(condition, then, after)
    f.start_block(then)
    yield
    f.do(f"br label %{after}")
    f.start_block(after)


def _store_vector(
    f: Function, value: str, pointer: str, stored: str, lanes: int, stride: int, mask: str | None
) -> None:
    vector, align = f"<{lanes} x {stored}>", stored_bytes(stored)
    if stride == -1:
        pointer = f.put(f"getelementptr {stored}, ptr {pointer}, i64 {1 - lanes}")
        value = _reverse(f, value, vector, lanes)
        mask = None if mask is None else _reverse(f, mask, f"<{lanes} x i1>", lanes)
        stride = 1
    if stride == 1 and mask is None:
        f.do(f"store {vector} {value}, ptr {pointer}, align {align}")
        return
    if stride == 1:
        assert mask is not None
        truths = f"<{lanes} x i1>"
        f.intrinsic(
            "masked.store", "void", [vector, "ptr"], (vector, value), (f"ptr align {align}", pointer), (truths, mask)
        )
        return
    if mask is not None:
        places = vector_text([str(lane * stride) for lane in range(lanes)], "i64")
        scatter(f, value, pointer, places, stored, lanes, mask)
        return
    for lane in range(lanes):
        scalar = f.put(f"extractelement {vector} {value}, i32 {lane}")
        at = f.put(f"getelementptr {stored}, ptr {pointer}, i64 {lane * stride}")
        f.do(f"store {stored} {scalar}, ptr {at}, align {align}")


def gather(f: Function, pointer: str, places: str, stored: str, lanes: int, mask: str) -> str:
    """Return lane l = element `places[l]` from `pointer`, zero where its mask bit is off."""
    vector, align = f"<{lanes} x {stored}>", stored_bytes(stored)
    at = f.put(f"getelementptr {stored}, ptr {pointer}, <{lanes} x i64> {places}")
    pointers = f"<{lanes} x ptr>"
    arguments = ((f"{pointers} align {align}", at), (f"<{lanes} x i1>", mask), (vector, "zeroinitializer"))
    return f.intrinsic("masked.gather", vector, [vector, pointers], *arguments)


def scatter(f: Function, value: str, pointer: str, places: str, stored: str, lanes: int, mask: str) -> None:
    """Write lane l to element `places[l]` from `pointer` where its mask bit is on."""
    vector, align = f"<{lanes} x {stored}>", stored_bytes(stored)
    at = f.put(f"getelementptr {stored}, ptr {pointer}, <{lanes} x i64> {places}")
    pointers = f"<{lanes} x ptr>"
    arguments = ((vector, value), (f"{pointers} align {align}", at), (f"<{lanes} x i1>", mask))
    f.intrinsic("masked.scatter", "void", [vector, pointers], *arguments)


def emit_gather(f: Function, op: Operation) -> None:
    """Print a gather: each lane loads from a place of its own."""
    buffer, indices, mask = op.operands
    element = _element(f, buffer)
    lanes = lanes_of(op.results[0].type)
    if lanes is None:
        raise UnsupportedError("lw_kernel.gather gives a vector")
    stored, near = stored_text(element), near_of(cast(kernel.GatherOp, op))
    if near is not None:
        first = f.put(f"extractelement <{lanes} x i64> {f.names[indices]}, i32 0")
        value = emit_near(f, f.element(stored, f.names[buffer], first), stored, near)
    else:
        value = gather(f, f.names[buffer], f.names[indices], stored, lanes, f.names[mask])
    f.names[op.results[0]] = _as_truth(f, value, lanes) if element == "i1" else value


def emit_scatter(f: Function, op: Operation) -> None:
    """Print a scatter: each lane stores to a place of its own."""
    value, buffer, indices, mask = op.operands
    element = _element(f, buffer)
    lanes = lanes_of(value.type)
    if lanes is None:
        raise UnsupportedError("lw_kernel.scatter takes a vector")
    text = f.names[value]
    if element == "i1":
        text = f.put(f"zext <{lanes} x i1> {text} to <{lanes} x i8>")
    scatter(f, text, f.names[buffer], f.names[indices], stored_text(element), lanes, f.names[mask])


def emit_lanes(f: Function, op: Operation) -> None:
    """Print the lane numbers: the constant 0, 1, 2, ..."""
    lanes = lanes_of(op.results[0].type) or 1
    element = f.type(op.results[0].type).rpartition(" ")[2].rstrip(">")
    f.names[op.results[0]] = f"<{', '.join(f'{element} {lane}' for lane in range(lanes))}>"


def emit_mask(f: Function, op: Operation) -> None:
    """Print a mask: lane l is on where `start + l * step >= 0`; a constant where start is one."""
    start, step = f.names[op.operands[0]], _integer(op, "step")
    lanes = lanes_of(op.results[0].type)
    if start[0] != "%":
        bits = ["true" if int(start) + lane * step >= 0 else "false" for lane in range(lanes or 1)]
        f.names[op.results[0]] = bits[0] if lanes is None else vector_text(bits, "i1")
        return
    if lanes is None:
        f.names[op.results[0]] = f.put(f"icmp sge i64 {start}, 0")
        return
    reach = abs(step) * lanes + 1  # a start beyond it decides all lanes, so 32 bits are enough
    low = f.intrinsic("smax", "i64", ["i64"], ("i64", start), ("i64", str(-reach)))
    both = f.intrinsic("smin", "i64", ["i64"], ("i64", low), ("i64", str(reach)))
    narrow = f.put(f"trunc i64 {both} to i32")
    vector = f"<{lanes} x i32>"
    wide = splat(f, narrow, "i32", vector, lanes)
    bounds = vector_text([str(-lane * step) for lane in range(lanes)], "i32")
    f.names[op.results[0]] = f.put(f"icmp sge {vector} {wide}, {bounds}")


def emit_prefetch(f: Function, op: Operation) -> None:
    """Print a prefetch, a hint that may name any address."""
    assert isinstance(op, kernel.PrefetchOp)
    pointer = address(f, op.buffer, op.index, op.offset.data, _element(f, op.buffer))
    locality = "3" if op.level is None else "2"
    f.call("void", "@llvm.prefetch.p0", ("ptr", pointer), ("i32", "0"), ("i32", locality), ("i32", "1"))


HANDLERS: dict[type[Operation], Callable[[Function, Operation], None]] = {
    kernel.AllocOp: emit_alloc,
    kernel.LoadOp: emit_load,
    kernel.StoreOp: emit_store,
    kernel.GatherOp: emit_gather,
    kernel.ScatterOp: emit_scatter,
    kernel.LanesOp: emit_lanes,
    kernel.MaskOp: emit_mask,
    kernel.PrefetchOp: emit_prefetch,
}
