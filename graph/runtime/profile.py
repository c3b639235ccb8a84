"""The time of each step of a network, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .plan import KernelInfo

_WIDEST = 44
"""Characters of a name in the table: with numbers it is as wide as common terminals."""


@dataclass(frozen=True)
class ProfileRow:
    """One step: its name, its kernel, and the seconds it took."""

    label: str
    kernel: KernelInfo
    time_s: float

    @property
    def gflops_per_s(self) -> float:
        return self.kernel.flops / self.time_s / 1e9 if self.time_s else 0.0


@dataclass(frozen=True)
class Profile:
    """The steps of a network in order, with their times; `str` is a table, the longest first."""

    name: str
    rows: tuple[ProfileRow, ...]

    @property
    def total_s(self) -> float:
        """The sum of all steps."""
        return sum(row.time_s for row in self.rows)

    def __iter__(self) -> Iterator[ProfileRow]:
        return iter(self.rows)

    def __str__(self) -> str:
        lines = [f"{'step':<{_WIDEST}}  {'operators':<{_WIDEST}}  {'ms':>9}  {'share':>6}  {'GFLOP/s':>9}  schedule"]
        for row in sorted(self.rows, key=lambda r: -r.time_s):
            share = row.time_s / self.total_s if self.total_s else 0.0
            lines.append(
                f"{_cut(row.label):<{_WIDEST}}  {_cut(row.kernel.label):<{_WIDEST}}  {row.time_s * 1e3:9.4f}  "
                f"{share:6.1%}  {row.gflops_per_s:9.1f}  {'tuned' if row.kernel.tuned else 'default'}"
            )
        flops = sum(row.kernel.flops for row in self.rows)
        speed = flops / self.total_s / 1e9 if self.total_s else 0.0
        total = f"{self.name}: {len(self.rows)} steps"
        lines.append(f"{total:<{2 * _WIDEST + 2}}  {self.total_s * 1e3:9.4f}  {'100%':>6}  {speed:9.1f}")
        return "\n".join(lines)


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."
