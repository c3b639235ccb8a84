"""Numbers of a schedule that are not chosen yet: integer options take them, and they print as `<name>`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xdsl.passes import ModulePass  # running a compiled network reads layouts, and imports no compiler


class OpenNumber(int):
    """A whole number that is not chosen yet: it prints as `<name>` and is computed with as a number it stands for.

    It equals no plain number, and another open one where the names are the same.
    """

    name: str

    def __new__(cls, name: str, stand_in: int = 1) -> OpenNumber:
        self = super().__new__(cls, stand_in)
        self.name = name
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpenNumber) and self.name == other.name

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return f"<{self.name}>"

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class NumberText(str):
    """A text that numbers are spelled in, as `j/16`, which keeps them: they may be open, or follow from knobs."""

    pieces: tuple[str | int, ...]

    def __new__(cls, *pieces: str | int) -> NumberText:
        self = super().__new__(cls, "".join(p if isinstance(p, str) else int.__repr__(p) for p in pieces))
        self.pieces = pieces
        return self


@dataclass(frozen=True)
class OpenText:
    """A schedule text with `<name>` for open numbers, taken apart: `literals` around `names`, one more of them."""

    literals: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> OpenText:
        """Take a text apart; neither bracket occurs in names, numbers or options otherwise."""
        pieces = text.replace(">", "<").split("<")
        return cls(tuple(pieces[::2]), tuple(pieces[1::2]))

    def filled(self, values: Mapping[str, int]) -> str:
        """The text with numbers in place of their names."""
        numbers = (str(values[name]) for name in self.names)
        return "".join(text for pair in zip(self.literals, (*numbers, ""), strict=True) for text in pair)


def open_names(step: ModulePass) -> list[str]:
    """The names of the open numbers in a step's options, also in those that are text, as layouts are."""
    return list(_open_in(tuple(getattr(step, f.name) for f in fields(step))))


def _open_in(value: Any) -> Iterator[str]:
    if isinstance(value, OpenNumber):
        yield value.name
    elif isinstance(value, str):
        yield from OpenText.of(value).names
    elif isinstance(value, tuple):
        for part in value:
            yield from _open_in(part)
