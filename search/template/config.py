"""The config that a template is called with: it defines knobs on it, and reads which choice to apply."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, SupportsIndex

import numpy as np

from ...dialects.target import Target
from .knobs.annotate import AnnotateKnob
from .knobs.choice import ChoiceKnob
from .knobs.knob import ConfigError, Knob, extent_of
from .knobs.reorder import ReorderKnob
from .knobs.split import SplitKnob
from .space import KnobSpace, Rows, out_of_range
from .symbolic import Tracer


class Config:
    """One point of a template's space, or, while `collecting`, the space as it is being defined.

    `cfg[name]` is the choice of a knob: of `define_split`, `define_reorder` and `define_annotate` with
    `apply(sch, block, axis or axes)`, of `define_knob` with `val`. All knobs are defined before one is read.
    """

    def __init__(
        self,
        space: KnobSpace,
        row: Sequence[int] | Rows = (),
        target: Target | None = None,
        collecting: bool = False,
        tracer: Tracer | None = None,
    ) -> None:
        self.space = space
        self.row = tuple(int(p) for p in row)
        self.target = target
        self.flop = 0.0
        self.is_fallback = False
        self.was_chosen = False
        self._collecting = collecting
        self._defined: set[str] = set()
        self._tracer = tracer

    # -- defining -----------------------------------------------------------------------------------------------------

    def define_split(self, name: str, axis: Any, policy: str = "factors", num_outputs: int = 2, **options: Any) -> None:
        """Let a loop be split into `num_outputs`; `axis` is its extent, the loop, or a te axis. See SplitKnob."""
        self._define(name, lambda: SplitKnob(name, extent_of(axis), policy, num_outputs, **options))

    def define_reorder(self, name: str, axes: Sequence[Any], policy: str = "all", **options: Any) -> None:
        """Let loops be ordered. `axes` may be loops, te axes, or any names for them. See ReorderKnob."""
        self._define(name, lambda: ReorderKnob(name, axes, policy, **options))

    def define_annotate(self, name: str, axes: Sequence[Any], policy: str, **options: Any) -> None:
        """Let loops be unrolled, vectorized, or bound to threads. See AnnotateKnob."""
        self._define(name, lambda: AnnotateKnob(name, axes, policy, **options))

    def define_knob(self, name: str, candidate: Iterable[Any]) -> None:
        """Let a value be one of a list."""
        self._define(name, lambda: ChoiceKnob(name, candidate))

    def add_flop(self, flop: float) -> None:
        """Count `flop` arithmetic operations of one run, instead of those of the computation."""
        self.flop += flop

    def _define(self, name: str, make: Callable[[], Knob[Any]]) -> None:
        """Add a knob, unless this call is not the first one; in one call, it may be defined again only as it is."""
        known = self.space.knobs.get(name)
        if known is None and not self._collecting:
            raise ConfigError(f"knob '{name}' is defined for some configs only; define all knobs always")
        if known is None:
            self.space.add(make())
            self.row = (*self.row, 0)
        elif self._collecting and name in self._defined and not known.is_like(made := make()):
            raise ConfigError(f"knob '{name}' is defined twice, as {known} and as {made}")
        self._defined.add(name)

    # -- without a record ---------------------------------------------------------------------------------------------

    def fallback_split(self, name: str, constraints: Sequence[int | None]) -> None:
        """Choose, for a fallback, the largest parts within the constraints, from the innermost; None: what is left.

        `cfg.fallback_split("tile_f", [None, 8, 4])`: an innermost part of at most 4, a middle one of at most 8.
        """
        knob = self._knob(name)
        if not isinstance(knob, SplitKnob) or len(constraints) != knob.num_outputs:
            raise ConfigError(f"fallback_split '{name}': one number for each part of a split, got {list(constraints)}")
        left = np.ones(len(knob), dtype=bool)
        for part in range(knob.num_outputs - 1, 0, -1):
            most = constraints[part]
            if most is None or most < 0:
                continue
            column = knob.sizes[:, part]
            fits = left & (column <= most)
            if not fits.any():
                raise ConfigError(f"fallback_split '{name}': no split has part {part} of at most {most}")
            left = fits & (column == column[fits].max())
        self._choose(name, int(np.flatnonzero(left)[0]))

    def __setitem__(self, name: str, value: Any) -> None:
        """Choose, for a fallback, the value of a knob, as JSON holds it."""
        self._choose(name, self._knob(name).position_of(value))

    def _choose(self, name: str, position: int) -> None:
        if not self.is_fallback:
            raise ConfigError(f"knob '{name}' is chosen by the config; choose where cfg.is_fallback only")
        at = list(self.space.knobs).index(name)
        self.row = (*self.row[:at], position, *self.row[at + 1 :])
        self.was_chosen = True

    # -- reading ------------------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        knob = self._knob(name)
        position = self.row[list(self.space.knobs).index(name)]
        return knob.entity(position) if self._tracer is None else knob.traced(position, self._tracer)

    def _knob(self, name: str) -> Knob[Any]:
        knobs = self.space.knobs
        if name not in knobs:
            raise ConfigError(f"there is no knob '{name}'; knobs are {', '.join(knobs) or 'not defined yet'}")
        return knobs[name]

    def __contains__(self, name: str) -> bool:
        return name in self.space.knobs

    @property
    def index(self) -> int:
        """The point as one number."""
        self._settle()
        return int(sum(p * int(s) for p, s in zip(self.row, self.space.strides, strict=True)))

    @property
    def values(self) -> dict[str, Any]:
        """The value of each knob, as JSON holds it."""
        self._settle()
        return self.space.values(self.row)

    def _settle(self) -> None:
        """Note, while a template is traced, that it looks at everything at once."""
        if self._tracer is not None:
            for name, position in zip(self.space.knobs, self.row, strict=True):
                self._tracer.fix(name, position)

    def __str__(self) -> str:
        return f"{self.space.describe(self.row)},{self.index}"

    __repr__ = __str__


class ConfigSpace(KnobSpace):
    """The configs of a template for a target: `space[index]` or `space.get(index)`, one after the other in a loop."""

    def __init__(self, target: Target | None = None) -> None:
        super().__init__()
        self.target = target

    def get(self, index: SupportsIndex) -> Config:
        """The config of an index; IndexError where it is out of range."""
        index = operator.index(index)
        if not 0 <= index < self.size:
            raise IndexError(out_of_range(index, self.size))
        return Config(self, self.rows([index])[0], self.target)

    def __getitem__(self, index: SupportsIndex) -> Config:
        return self.get(index)

    def __iter__(self) -> Iterator[Config]:
        return map(self.get, range(self.size))
