"""A template: a function from a config and plain arguments to a schedule, under a name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...schedule import Schedule
from .config import Config

Function = Callable[..., Any]


@dataclass(frozen=True)
class TemplateFunction:
    """A function `f(cfg, *args)` that returns the scheduled `lw.Schedule`, under a name."""

    name: str
    function: Function

    def schedule(self, cfg: Config, args: Sequence[Any]) -> Schedule:
        """The schedule that a config gives; TypeError where the function returns none."""
        made = self.function(cfg, *args)
        if not isinstance(made, Schedule):
            raise TypeError(f"template '{self.name}' must return the lw.Schedule it made, got {type(made).__name__}")
        return made
