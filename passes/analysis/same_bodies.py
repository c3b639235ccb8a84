"""Bodies of expressions and of blocks that compute the same, but for what their iterators are called."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.attributes import IndicesAttr
from ...dialects.index import axis


def computes_same(a: SSAValue, b: SSAValue, names: Mapping[str, str]) -> bool:
    """Return whether two bodies compute the same, the iterators of the first called by `names` in the second."""
    if a is b:  # a buffer, or a tensor
        return True
    first, second = a.owner, b.owner
    if not isinstance(first, Operation) or not isinstance(second, Operation) or first.name != second.name:
        return False
    if _renamed(first, names) != second.properties or len(first.operands) != len(second.operands):
        return False
    return all(computes_same(x, y, names) for x, y in zip(first.operands, second.operands, strict=True))


def _renamed(op: Operation, names: Mapping[str, str]) -> dict[str, Attribute]:
    """Return the properties of an operation of a body with its iterators renamed."""
    values = {old: axis(new) for old, new in names.items()}
    return {
        key: IndicesAttr(tuple(e.substitute(values) for e in found.data)) if isinstance(found, IndicesAttr) else found
        for key, found in op.properties.items()
    }
