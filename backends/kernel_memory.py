"""Memory that a kernel's arguments and buffers take, refused where it is not there."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ..dialects.element import element_bytes
from ..dialects.kernel import AllocOp
from ..dialects.target import target_of
from ..dialects.walk import operations_in
from .host_memory import host_memory_bytes, require_bytes

MOST_DEVICE_BYTES = 1 << 40
"""More than any one device has (2026: 288 GB), where how much it has is not known before it is used."""


def require_memory(module: ModuleOp, most: int | None = None) -> None:
    """Raise NotEnoughMemory where a kernel's arguments and buffers are more than `most` bytes, or than there are."""
    has = host_memory_bytes() if not target_of(module).is_gpu else MOST_DEVICE_BYTES
    for func in [f for f in module.ops if isinstance(f, FuncOp) and f.body.blocks]:
        parts = [(argument.name_hint or "an argument", argument.type) for argument in func.body.block.args]
        parts += [(op.label.data, op.buffer.type) for op in operations_in(func) if type(op) is AllocOp]
        sizes = {name: _bytes(kind) for name, kind in parts}
        if not sizes:
            continue
        largest = max(sizes, key=lambda name: sizes[name])
        what = f"kernel {func.sym_name.data}, whose largest buffer '{largest}' has {sizes[largest]:,} bytes,"
        require_bytes(what, sum(_bytes(kind) for _, kind in parts), has if most is None else min(most, has))


def _bytes(kind: Attribute) -> int:
    return prod(kind.get_shape()) * element_bytes(kind.element_type) if isinstance(kind, MemRefType) else 0
