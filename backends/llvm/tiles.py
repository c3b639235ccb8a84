"""Matrix instructions of a CPU's thread as LLVM text: on vectors, and on Intel's tiles, which loops carry."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import combinations
from typing import NamedTuple, cast

from xdsl.dialects import scf
from xdsl.dialects.builtin import BFloat16Type, MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.element import element_bytes
from ...dialects.intrinsics import Intrinsic
from .function import Function
from .memory import address, splat
from .types import element_text

TILE = "x86_amx"
_SYMBOL = re.compile(r"@[\w.$]+(?=\()")


class TileKey(NamedTuple):
    """A tile of sums in memory: its buffer, the value and the constant part of its index, elements between rows."""

    buffer: SSAValue
    start: str
    offset: int
    step: int


Number = tuple[str, str]
"""A value that a call takes: its type and its text."""

Touching = kernel.TileProductOp | kernel.TileStartOp

Carried = dict[TileKey, Touching]
"""Tiles of sums that are kept in registers for a while, each with the first operation that touches it."""


def emit_load(f: Function, op: Operation) -> None:
    """Print a load of a factor: a tile, or a vector of one stretch of memory or of two halves."""
    assert isinstance(op, kernel.TileLoadOp)
    meaning, element = op.meaning(), _element(op.buffer)
    pointer = address(f, op.buffer, op.index, op.offset.data, element)
    if _factor_type(meaning) == TILE:
        shape = _shape(meaning, op.operand.data)
        f.names[op.value] = _load_tile(f, shape, pointer, op.step.data * _bytes(op.buffer))
        return
    count = meaning.elements(op.operand.data)
    f.names[op.value] = _load_rows(f, pointer, element, count, op.rows.data, op.step.data)


def emit_product(f: Function, op: Operation) -> None:
    """Print a product: its sums are loaded, added to and stored, but for tiles that a loop around carries."""
    assert isinstance(op, kernel.TileProductOp)
    meaning = op.meaning()
    f.module.features |= set(meaning.features)
    if _factor_type(meaning) == TILE:
        _tile_product(f, op, meaning)
        return
    element, count = _element(op.sums), meaning.elements("c")
    pointer = _sums_at(f, op)
    c = _load_rows(f, pointer, element, count, op.rows.data, op.step.data)
    a, b = (f.names[value] for value in (op.a, op.b))
    result = _vector_product(f, meaning, c, _repeated(f, meaning, a), b)
    _store_rows(f, result, pointer, element, count, op.rows.data, op.step.data)


def _element(buffer: SSAValue) -> str:
    return element_text(cast(MemRefType[Attribute], buffer.type).element_type)


def _bytes(buffer: SSAValue) -> int:
    return element_bytes(cast(MemRefType[Attribute], buffer.type).element_type)


def _factor_type(intrinsic: Intrinsic) -> str:
    """The type that LLVM's intrinsic takes factors in; empty for code on what is held."""
    return "" if "\n" in intrinsic.code else intrinsic.code.partition(" : ")[2]


# -- vectors ----------------------------------------------------------------------------------------------------------


def _load_rows(f: Function, pointer: str, element: str, count: int, rows: int, step: int) -> str:
    width = count // rows
    parts = [f.put(f"load <{width} x {element}>, ptr {at}, align 1") for at in _starts(f, pointer, element, rows, step)]
    if rows == 1:
        return parts[0]
    order = ", ".join(f"i32 {n}" for n in range(count))
    kind = f"<{width} x {element}>"
    return f.put(f"shufflevector {kind} {parts[0]}, {kind} {parts[1]}, <{count} x i32> <{order}>")


def _store_rows(f: Function, value: str, pointer: str, element: str, count: int, rows: int, step: int) -> None:
    width, kind = count // rows, f"<{count} x {element}>"
    for row, at in enumerate(_starts(f, pointer, element, rows, step)):
        part = value
        if rows > 1:
            order = ", ".join(f"i32 {row * width + n}" for n in range(width))
            part = f.put(f"shufflevector {kind} {value}, {kind} poison, <{width} x i32> <{order}>")
        f.do(f"store <{width} x {element}> {part}, ptr {at}, align 1")


def _starts(f: Function, pointer: str, element: str, rows: int, step: int) -> Iterator[str]:
    yield pointer
    for row in range(1, rows):
        yield f.put(f"getelementptr {element}, ptr {pointer}, i64 {row * step}")


def _held_type(intrinsic: Intrinsic, operand: str, elements: int | None = None) -> str:
    """The vector type of a factor in an intrinsic's code, or of the sums."""
    kind = intrinsic.fragment(operand).type
    text = "bfloat" if isinstance(kind, BFloat16Type) else element_text(kind)
    return f"<{elements or intrinsic.elements(operand)} x {text}>"


def _repeated(f: Function, intrinsic: Intrinsic, a: str) -> str:
    """Repeat `a` to as many bytes as `b` has."""
    size, whole = (intrinsic.elements(x) * intrinsic.fragment(x).bytes for x in "ab")
    if size == whole:
        return a
    group = f"i{8 * size}"
    held = f"<{intrinsic.elements('a')} x {element_text(intrinsic.a.type)}>"
    bits = f.put(f"bitcast {held} {a} to {group}")
    return splat(f, bits, group, f"<{whole // size} x {group}>", whole // size)


def _vector_product(f: Function, intrinsic: Intrinsic, c: str, a: str, b: str) -> str:
    sums, kind = _held_type(intrinsic, "c"), _factor_type(intrinsic)
    size, whole = (intrinsic.elements(x) * intrinsic.fragment(x).bytes for x in "ab")
    a_elements = intrinsic.elements("a") * (whole // size)
    stored_a = f"<{a_elements} x {element_text(intrinsic.a.type)}>"
    if size < whole:
        stored_a = f"<{whole // size} x i{8 * size}>"
    stored_b = f"<{intrinsic.elements('b')} x {element_text(intrinsic.b.type)}>"
    a_type = kind or _held_type(intrinsic, "a", a_elements)
    b_type = kind or _held_type(intrinsic, "b")
    arguments = ((sums, c), (a_type, _cast(f, a, stored_a, a_type)), (b_type, _cast(f, b, stored_b, b_type)))
    if kind:
        return f.call(sums, f"@{intrinsic.code.partition(' : ')[0]}", *arguments)
    symbol = f"@lw.{intrinsic.name}"
    if symbol not in f.module.symbols:
        f.module.symbols[symbol] = _definition(f, symbol, intrinsic.code, sums, a_type, b_type)
    return f.call(sums, symbol, *arguments)


def _cast(f: Function, value: str, have: str, wanted: str) -> str:
    return value if have == wanted else f.put(f"bitcast {have} {value} to {wanted}")


def _definition(f: Function, symbol: str, code: str, sums: str, a: str, b: str) -> str:
    """A function of an intrinsic's code; what it declares is declared in the module."""
    lines = []
    for line in code.splitlines():
        declared = _SYMBOL.search(line) if line.lstrip().startswith("declare ") else None
        if declared is None:
            lines.append(line)
        else:
            f.module.symbols.setdefault(declared[0], line.strip())
    head = f"define internal {sums} {symbol}({sums} %c, {a} %a, {b} %b) alwaysinline #0 {{"
    return "\n".join([head, *lines, "}"])


# -- tiles ------------------------------------------------------------------------------------------------------------


def _shape(intrinsic: Intrinsic, operand: str) -> tuple[Number, Number]:
    """Rows of a tile, and bytes of a row."""
    rows = intrinsic.rows(operand)
    size = intrinsic.elements(operand) * intrinsic.fragment(operand).bytes
    return ("i16", str(rows)), ("i16", str(size // rows))


def _load_tile(f: Function, shape: tuple[Number, Number], pointer: str, step_bytes: int) -> str:
    arguments = (*shape, ("ptr", pointer), ("i64", str(step_bytes)))
    return f.call(TILE, "@llvm.x86.tileloadd64.internal", *arguments)


def _load_sums(f: Function, op: Touching) -> str:
    return _load_tile(f, _shape(op.meaning(), "c"), _sums_at(f, op), op.step.data * _bytes(op.sums))


def _store_sums(f: Function, op: Touching, value: str) -> None:
    place = (("ptr", _sums_at(f, op)), ("i64", str(op.step.data * _bytes(op.sums))))
    f.call("void", "@llvm.x86.tilestored64.internal", *_shape(op.meaning(), "c"), *place, (TILE, value))


def _key(f: Function, op: Touching) -> TileKey:
    return TileKey(op.sums, f.names[op.index], op.offset.data, op.step.data)


def _tile_product(f: Function, op: kernel.TileProductOp, intrinsic: Intrinsic) -> None:
    key = _key(f, op)
    held = f.tiles.get(key)
    c = held or _load_sums(f, op)
    symbol = f"@{intrinsic.code.partition(' : ')[0]}"
    factors = ((TILE, f.names[op.a]), (TILE, f.names[op.b]))
    result = f.call(TILE, symbol, *_shape(intrinsic, "c"), _shape(intrinsic, "a")[1], (TILE, c), *factors)
    if held is None:
        _store_sums(f, op, result)
    else:
        f.tiles[key] = result


def emit_start(f: Function, op: Operation) -> None:
    """Print zeros: in a register where the tile is kept in one, else in memory."""
    assert isinstance(op, kernel.TileStartOp)
    key, meaning = _key(f, op), op.meaning()
    f.module.features |= set(meaning.features)
    zeros = f.call(TILE, "@llvm.x86.tilezero.internal", *_shape(meaning, "c"))
    if key in f.tiles:
        f.tiles[key] = zeros
    else:
        _store_sums(f, op, zeros)


def tiles_of_loop(f: Function, body: Block) -> Carried:
    """Tiles of sums that stay where they are in all iterations of a loop, and that its products alone touch there."""
    return _kept(f, list(body.ops))


def tiles_of_run(f: Function, ops: Sequence[Operation]) -> Carried:
    """The same of some operations of a block, one after the other, of tiles that are in no registers yet."""
    return {key: op for key, op in _kept(f, ops).items() if key not in f.tiles}


def run_of_tiles(block: Block) -> Sequence[Operation]:
    """The operations of a block from the first to the last that touch tiles of sums, in loops as well."""
    ops = list(block.ops)
    places = [n for n, op in enumerate(ops) if next(_touching([op]), None) is not None]
    return ops[places[0] : places[-1] + 1] if places else []


def _kept(f: Function, ops: Sequence[Operation]) -> Carried:
    """Tiles of sums that operations touch at known places, and nothing else meanwhile."""
    found: Carried = {}
    for op in _touching(ops):
        if op.index in f.names and _factor_type(op.meaning()) == TILE:
            found.setdefault(_key(f, op), op)
    inside = set(ops)
    return {key: op for key, op in found.items() if _is_own(f, op, inside, found)}


def _touching(ops: Iterable[Operation]) -> Iterator[Touching]:
    """Find the operations that touch tiles of sums, among some and in the loops among these."""
    for op in ops:
        if type(op) is kernel.TileProductOp or type(op) is kernel.TileStartOp:
            yield op
        elif type(op) is scf.ForOp:
            yield from _touching(op.body.block.ops)


def _is_own(f: Function, op: Touching, inside: Set[Operation], found: Carried) -> bool:
    """True where all that touches the sums there are products and starts of tiles that have nothing in common."""
    touching = [use.operation for use in op.sums.uses if _is_in(use.operation, inside)]
    if any(not isinstance(x, Touching) or x.index not in f.names for x in touching):
        return False
    keys = [key for key in found if key.buffer is op.sums]
    if {_key(f, x) for x in touching if isinstance(x, Touching)} != set(keys):
        return False
    return all(_are_apart(x, y, found[x].meaning(), found[y].meaning()) for x, y in combinations(keys, 2))


def _is_in(op: Operation | None, ops: Set[Operation]) -> bool:
    while op is not None:
        if op in ops:
            return True
        op = op.parent_op()
    return False


def _are_apart(x: TileKey, y: TileKey, of_x: Intrinsic, of_y: Intrinsic) -> bool:
    m, n = max(of_x.m, of_y.m), max(of_x.n, of_y.n)
    if (x.start, x.step) != (y.start, y.step):
        return False
    rows, columns = divmod(abs(x.offset - y.offset), x.step) if x.step else (0, abs(x.offset - y.offset))
    return rows >= m or (n <= columns and (columns <= x.step - n or not x.step))


def begin_tiles(f: Function, carried: Carried) -> Carried:
    """Load the tiles that are kept from here on, and are in no registers yet; which these are.

    Of those that start with zeros nothing is loaded.
    """
    begun = {key: op for key, op in carried.items() if key not in f.tiles}
    for key, op in begun.items():
        f.tiles[key] = "" if isinstance(op, kernel.TileStartOp) else _load_sums(f, op)
    return begun


def end_tiles(f: Function, begun: Carried) -> None:
    """Store the tiles that were begun with."""
    for key, op in begun.items():
        _store_sums(f, op, f.tiles.pop(key))


def _sums_at(f: Function, op: Touching) -> str:
    return address(f, op.sums, op.index, op.offset.data, _element(op.sums))


HANDLERS: dict[type[Operation], Callable[[Function, Operation], None]] = {
    kernel.TileLoadOp: emit_load,
    kernel.TileProductOp: emit_product,
    kernel.TileStartOp: emit_start,
}
