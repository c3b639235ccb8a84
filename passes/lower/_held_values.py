"""Elements of a CPU's local buffers as a scope has stored them: read again as values, stored once for several times.

What is remembered stands among the scope's loads, and ends where they do: at regions, at what else touches the buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.kernel import lanes_of
from ._addresses import Address, Scope


@dataclass
class Held:
    """Whole vectors, or elements, that one buffer holds side by side from one base."""

    base: SSAValue
    kind: Attribute
    start: int
    values: dict[int, SSAValue] = field(default_factory=dict)
    """By their offsets."""
    stores: dict[int, Operation] = field(default_factory=dict)
    """The last store to an offset, where nothing has read the memory since."""

    def is_at(self, address: Address, kind: Attribute) -> bool:
        """True for an access to one of the vectors: it is that vector or none of the others."""
        whole = (address.offset - self.start) % lanes_of(kind) == 0
        return whole and address.base is self.base and kind == self.kind and is_whole(address, kind)


def is_whole(address: Address, kind: Attribute) -> bool:
    """True for an element, and for lanes that lie side by side."""
    return address.gather is None and (address.stride == 1 or (address.stride == 0 and lanes_of(kind) == 1))


def held_value(scope: Scope, buffer: SSAValue, address: Address, kind: Attribute) -> SSAValue | None:
    """Return the value that a buffer is known to hold; where there is none, its memory is about to be read."""
    held = scope.loads.get((buffer, Held))
    if not isinstance(held, Held):
        return None
    if not held.is_at(address, kind):
        held.stores.clear()
        return None
    return held.values.get(address.offset)


def memory_is_read(scope: Scope, buffer: SSAValue) -> None:
    """Note that what was stored to a buffer is read, wherever it is."""
    held = scope.loads.get((buffer, Held))
    if isinstance(held, Held):
        held.stores.clear()


def hold(
    scope: Scope,
    buffer: SSAValue,
    held: Held | None,
    address: Address,
    value: SSAValue,
    store: Callable[[], Operation],
) -> None:
    """Store a value, and remember it; `held` is what the buffer held before, which is forgotten of other places.

    The store before it to the same place, if nothing has read what it left, becomes this one.
    """
    if held is None or not held.is_at(address, value.type):
        held = Held(address.base, value.type, address.offset)
    before = held.stores.get(address.offset)
    if before is None:
        held.stores[address.offset] = before = store()
    else:
        scope.block.detach_op(before)
        before.operands[0] = value
    scope.block.add_op(before)
    held.values[address.offset] = value
    if is_whole(address, value.type):
        scope.loads[buffer, Held] = held
