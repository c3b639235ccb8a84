"""The signatures of a schedule's methods, written from the passes themselves: prints `primitive_methods.py`."""

from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from loopwright.schedule import _OTHER_NAMES, _methods, primitive_class

HEAD = '''"""Signatures of primitives for type checkers, written by `tests/support/primitive_methods.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from .loop_ref import LoopRef
    from .te.tensor import Tensor

    Block = str | Tensor


class PrimitiveMethods:
    """The methods of `lw.Schedule` that passes give it when they are called."""

    if TYPE_CHECKING:
'''
BY_HAND = ("split", "fuse")
"""Methods that lw.Schedule has itself."""
MAKES = {"cache_read": "str", "cache_write": "str", "rfactor": "str", "decompose_reduction": "str"}
"""Methods that name the block they make."""
TYPES = {"tuple[str, ...]": "Sequence[str]", "tuple[int, ...]": "Sequence[int]"}


def parameter(field: Field[Any]) -> str:
    """A field of a primitive as a parameter."""
    kind = TYPES.get(str(field.type), str(field.type))
    if field.name == "buffer":
        kind = "Block"
    if field.name in ("consumer", "producer"):
        kind = "Block"
    return f"{field.name}: {kind}" if field.default is MISSING else f"{field.name}: {kind} = ..."


def method(name: str) -> list[str]:
    """The lines of a method: with a block, and, where a LoopRef knows it, without."""
    found = fields(primitive_class(_OTHER_NAMES.get(name, name)))
    _, *rest = found
    result = MAKES.get(name, "None")
    if rest and rest[0].name in ("loop", "loops"):
        several = rest[0].name == "loops"
        more = [parameter(field) for field in rest[1:]]
        known = ", ".join(["self", "*loops: LoopRef" if several else "loop: LoopRef", *more])
        given = ", ".join(["self", "block: Block", "*loops: str | Sequence[str]" if several else "loop: str", *more])
        return [
            "@overload",
            f"def {name}({known}) -> {result}: ...",
            "@overload",
            f"def {name}({given}) -> {result}: ...",
            f"def {name}(self, *arguments: Any, **options: Any) -> {result}: ...",
        ]
    arguments = ", ".join(["self", "block: Block", *map(parameter, rest)])
    return [f"def {name}({arguments}) -> {result}: ..."]


def text() -> str:
    """The module."""
    lines = [line for name in _methods() if name not in BY_HAND for line in method(name)]
    return HEAD + "\n".join(f"        {line}" for line in lines) + "\n"


if __name__ == "__main__":
    import loopwright

    (Path(loopwright.__file__).resolve().parent / "primitive_methods.py").write_text(text())
