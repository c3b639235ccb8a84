"""A line of the trust table: what was tried, how often, and what did not hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """One kind of trial: `tried` of them, and how many ended in each of the ways that must not happen.

    `bad` names every way that was looked for, zeros included; `examples` holds enough of the first failures to run
    them again (a seed, a program's text, a path).
    """

    what: str
    tried: int
    bad: Mapping[str, int]
    seconds: float
    note: str = ""
    examples: tuple[str, ...] = field(default=(), repr=False)

    @property
    def holds(self) -> bool:
        return self.tried > 0 and not any(self.bad.values())

    def markdown(self) -> str:
        bad = ", ".join(f"{count} {name}" for name, count in self.bad.items())
        return f"| {self.what} | {self.tried:,} | {bad} | {self.seconds:.0f} | {self.note} |"


HEAD = "| what | tried | did not hold | seconds | |\n|---|---|---|---|---|"
