"""Charts as inline SVG: axes with ticks, points, lines; colours come from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...dialects.markup import as_text

WIDTH, HEIGHT = 860, 300
_LOOKS = {
    "best": 'fill="none" stroke="#0969da" stroke-width="2"',
    "roof": 'fill="none" stroke="#1f2328" stroke-width="2"',
    "drop": 'fill="none" stroke="#59636e" stroke-dasharray="4 4"',
    "grid": 'stroke="#d1d9e0"',
    "trial": 'fill="#57606a" fill-opacity="0.75"',
    "winner": 'fill="#0969da"',
    "early": 'fill="none" stroke="#57606a"',
    "twin": 'fill="none" stroke="#57606a" stroke-dasharray="2 2"',
    "failed": 'fill="none" stroke="#cf222e" stroke-width="1.5"',
}
"""Style where no style sheet says otherwise, as in a picture on its own."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 16, 12, 42

_LETTER, _LINE = 6.6, 14.0
"""Pixels of a letter's width, on average, and of a line's height, in the font of a chart."""

Point = tuple[float, float]


@dataclass(frozen=True)
class PixelScale:
    """From values to pixels, linear or logarithmic."""

    low: float
    high: float
    first: float
    last: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        position = math.log(value) if self.log else value
        return self.first + (position - low) / ((high - low) or 1.0) * (self.last - self.first)

    def ticks(self) -> list[float]:
        """Round values: powers of ten (with values between where there are few), or steps of 1, 2 or 5."""
        low, high = min(self.low, self.high), max(self.low, self.high)
        if not self.log:
            raw = (high - low) / 5 or 1.0
            unit = 10.0 ** math.floor(math.log10(raw))
            step = next(s * unit for s in (1, 2, 5, 10) if s * unit >= raw * 0.999)
            return [n * step for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
        exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks: list[float] = []
        for steps in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0)):
            ticks = [t for e in exponents for s in steps if low * 0.999 <= (t := s * 10.0**e) <= high * 1.001]
            if len(ticks) >= 3:
                break
        return ticks


@dataclass
class Chart:
    """A drawing in a plane of two scales; `title` is what it is read out as."""

    title: str
    x_label: str
    y_label: str
    x: tuple[float, float]
    y: tuple[float, float]
    log_x: bool = False
    log_y: bool = False
    height: int = HEIGHT
    _parts: list[str] = field(default_factory=list)
    _labels: list[tuple[float, float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.x_scale = PixelScale(*self.x, _LEFT, WIDTH - _RIGHT, self.log_x)
        self.y_scale = PixelScale(*self.y, self.height - _BOTTOM, _TOP, self.log_y)

    def at(self, point: Point) -> Point:
        """Pixels of a point."""
        return self.x_scale(point[0]), self.y_scale(point[1])

    def line(self, points: Sequence[Point], style: str) -> None:
        """A line through points."""
        text = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(self.at, points))
        self._parts.append(f'<polyline {_look(style)} points="{text}"/>')

    def dot(self, point: Point, style: str, note: str, radius: float = 3.5) -> None:
        """A point that tells more when pointed at."""
        x, y = self.at(point)
        self._parts.append(
            f'<circle {_look(style)} cx="{x:.1f}" cy="{y:.1f}" r="{radius}"><title>{as_text(note)}</title></circle>'
        )

    def cross(self, point: Point, style: str, note: str) -> None:
        """A cross that tells more when pointed at."""
        x, y = self.at(point)
        path = f"M{x - 3.5:.1f} {y - 3.5:.1f}l7 7m-7 0l7 -7"
        self._parts.append(f'<path {_look(style)} d="{path}"><title>{as_text(note)}</title></path>')

    def text(self, point: Point, words: str, anchor: str = "start", shift: Point = (0.0, 0.0)) -> None:
        """Words beside a point, moved up or down to the nearest place where they cover no words from before."""
        x, y = self.at(point)
        x, wanted = x + shift[0], y + shift[1]
        width = _LETTER * len(words)
        left = x - (width if anchor == "end" else width / 2 if anchor == "middle" else 0.0)
        y = next(y for y in self._places(wanted) if not self._covers(left, y, width))
        self._labels.append((left, y, width))
        self._parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{as_text(words)}</text>')

    def _places(self, wanted: float) -> Iterator[float]:
        """Heights for words, the nearest first; beyond the last one they lie where they were wanted."""
        yield wanted
        for step in range(1, self.height // int(_LINE)):
            yield from (y for y in (wanted - step * _LINE, wanted + step * _LINE) if _TOP < y < self.height - _BOTTOM)
        self._labels.clear()
        yield wanted

    def _covers(self, left: float, y: float, width: float) -> bool:
        return any(left < start + w and start < left + width and abs(y - at) < _LINE for start, at, w in self._labels)

    def __str__(self) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12" role="img" '
            f'viewBox="0 0 {WIDTH} {self.height}" aria-label="{as_text(self.title)}">'
            f"<title>{as_text(self.title)}</title>{self._axes()}{''.join(self._parts)}</svg>"
        )

    def _axes(self) -> str:
        left, right, top, bottom = _LEFT, WIDTH - _RIGHT, _TOP, self.height - _BOTTOM
        parts = []
        for value in self.x_scale.ticks():
            x = self.x_scale(value)
            parts.append(f'<line {_look("grid")} x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>')
            parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{value:g}</text>')
        for value in self.y_scale.ticks():
            y = self.y_scale(value)
            parts.append(f'<line {_look("grid")} x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
            parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
        middle = (top + bottom) / 2
        parts.append(
            f'<text x="{(left + right) / 2}" y="{self.height - 6}" text-anchor="middle">{as_text(self.x_label)}</text>'
        )
        parts.append(
            f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">'
            f"{as_text(self.y_label)}</text>"
        )
        return "".join(parts)


def _look(style: str) -> str:
    return f'class="{style}" {_LOOKS[style]}'
