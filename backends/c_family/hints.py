"""Names for values without one in the IR: after the buffer they index or are loaded from, or their operation."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from .types import element_name

_SCOPES = ("_shared", "_local", "_tile", "_pad")
"""Ends of the names of copies, which a value loaded from one does without."""
_BY_KIND = {"index": "i", "i1": "p"}
_MOST_PARTS = 2


def hint_of(value: SSAValue, name_of: Callable[[SSAValue], str | None]) -> str:
    """Return what to call a value; `name_of` gives the name of a buffer or of a value that has one."""
    if value.name_hint:
        return value.name_hint
    return _loaded(value, name_of) or _place(value, name_of) or _part(value, name_of) or _plain(value)


def _plain(value: SSAValue) -> str:
    return _BY_KIND.get(element_name(value.type), "v")


def _loaded(value: SSAValue, name_of: Callable[[SSAValue], str | None]) -> str | None:
    """Name a loaded value after its buffer: `A3` for `A_shared`."""
    if not isinstance(value.owner, kernel.LoadOp):
        return None
    name = name_of(value.owner.buffer)
    for scope in _SCOPES if name is not None else ():
        name = name.removesuffix(scope) if name is not None else None
    return name


def _place(value: SSAValue, name_of: Callable[[SSAValue], str | None]) -> str | None:
    """Name an index after the one buffer that it addresses: `A_at`."""
    if element_name(value.type) != "index":
        return None
    buffers = {_addressed(use.operation, value) for use in value.uses}
    buffer = buffers.pop() if len(buffers) == 1 else None
    name = name_of(buffer) if buffer is not None else None
    return None if name is None else f"{name}_at"


def _addressed(op: Operation, value: SSAValue) -> SSAValue | None:
    return op.buffer if isinstance(op, kernel.LoadOp | kernel.StoreOp) and op.index is value else None


def _part(value: SSAValue, name_of: Callable[[SSAValue], str | None]) -> str | None:
    """Name quotients and remainders of a thread or loop index: `thread_x_div32`, `thread_x_mod32`."""
    parts: list[str] = []
    while isinstance(value.owner, arith.DivUIOp | arith.RemUIOp) and len(parts) < _MOST_PARTS:
        whole, by = value.owner.operands
        if not isinstance(by.owner, arith.ConstantOp) or not isinstance(by.owner.value, IntegerAttr):
            return None
        parts.insert(0, f"_{'div' if isinstance(value.owner, arith.DivUIOp) else 'mod'}{by.owner.value.value.data}")
        value = whole
    name = name_of(value) if parts else None
    return None if name is None else name + "".join(parts)
