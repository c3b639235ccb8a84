"""Lines of a formula that read an element of a tensor around which there is padding, and gaps between its elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class PaddedRead:
    """Lines under construction, and the conditions under which the place that they compute is in the tensor."""

    lines: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)

    def line(self, text: str) -> str:
        """Add a line, and return its token."""
        self.lines.append(text)
        return f"t{len(self.lines) - 1}"

    def place(self, padded: str, extent: int, gap: int, low: int, highest: int) -> str:
        """Return the place along an axis of `extent` elements, `gap` apart, from that in the padded axis.

        `padded` is a token of values from 0 to `highest`, and `low` the padding before the first element.
        """
        place = self.line(f"subtract {padded} {low}:int32") if low else padded
        last = (extent - 1) * gap
        if low > 0:
            self.conditions.append(self.line(f"greater_equal {place} 0:int32"))
        if highest - low > last:
            self.conditions.append(self.line(f"less_equal {place} {last}:int32"))
        if gap == 1:
            return place
        rest = self.line(f"mod {place} {gap}:int32")
        self.conditions.append(self.line(f"equal {rest} 0:int32"))
        return self.line(f"floor_divide {place} {gap}:int32")

    def element(self, places: Sequence[str], outside: str | None, kind: str | None = None, tensor: int = 0) -> str:
        """Read a tensor at places, as an element of type `kind`; the token `outside` where that is padding."""
        element = self.line(" ".join([f"read:{tensor}", *places]))
        if kind is not None:
            element = self.line(f"cast:{kind} {element}")
        if not self.conditions or outside is None:
            return element
        inside = self.conditions[0]
        for other in self.conditions[1:]:
            inside = self.line(f"and {inside} {other}")
        return self.line(f"select {inside} {element} {outside}")
