"""A builder and a runner: the terms in which people say how candidates are measured."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ...dialects.classic_words import options_know_classic_words
from ...dialects.counts import require_count
from .measurement import MeasureOptions


@options_know_classic_words
@dataclass(frozen=True)
class LocalBuilder:
    """Build in `n_parallel` processes, each build for `timeout` seconds at most; None: as usual (one a core, 30 s)."""

    timeout: float | None = None
    n_parallel: int | None = None

    def __post_init__(self) -> None:
        _check_timeout(self.timeout)
        if self.n_parallel is not None:
            require_count("n_parallel", self.n_parallel)

    def options(self, base: MeasureOptions) -> MeasureOptions:
        """The options of a measurer with this builder, and for the rest those of `base`."""
        timeout_s = base.build_timeout_s if self.timeout is None else self.timeout
        builders = base.builders if self.n_parallel is None else int(self.n_parallel)
        return replace(base, builders=builders, build_timeout_s=timeout_s)


@dataclass(frozen=True)
class Runner:
    """Terms of running candidates, wherever that is; None: as usual for the target.

    A measurement is `repeat` numbers, each the mean of `number` runs, or of as many more as take `min_repeat_ms`
    milliseconds together; it takes `timeout` seconds at most, and the device rests for `cooldown` seconds before it.
    `flush_bytes` are written before each run. Without `check_correctness` any output passes.
    """

    number: int | None = None
    repeat: int | None = None
    min_repeat_ms: float | None = None
    timeout: float | None = None
    cooldown: float | None = None
    check_correctness: bool = True
    flush_bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("number", "repeat"):
            if getattr(self, name) is not None:
                require_count(name, getattr(self, name))
        _check_timeout(self.timeout)
        for name in ("min_repeat_ms", "cooldown", "flush_bytes"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise ValueError(f"{name} must be at least 0, got {value}")

    def options(self, base: MeasureOptions) -> MeasureOptions:
        """The options of a measurer with this runner, and for the rest those of `base`."""
        said = {
            "number": self.number,
            "repeat": self.repeat,
            "min_repeat_ms": self.min_repeat_ms,
            "cooldown_s": self.cooldown,
            "flush_bytes": self.flush_bytes,
        }
        given: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
        timeout_s = base.run_timeout_s if self.timeout is None else self.timeout
        check = base.check and self.check_correctness
        return replace(base, timing=replace(base.timing, **given), run_timeout_s=timeout_s, check=check)


@options_know_classic_words
@dataclass(frozen=True)
class LocalRunner(Runner):
    """Run on this machine's device, in a process of its own; options are those of every Runner."""


@dataclass(frozen=True)
class MeasureOption:
    """A builder and a runner; None: the usual one of the target."""

    builder: LocalBuilder | None = None
    runner: Runner | None = None

    def __post_init__(self) -> None:
        for name, kind, usual in (("builder", LocalBuilder, LocalBuilder), ("runner", Runner, LocalRunner)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise TypeError(f"{name} must be a {usual.__name__}, got {type(value).__name__}")

    def options(self, base: MeasureOptions) -> MeasureOptions:
        """Return the measurer's options: as this says, and for the rest as usual for the target."""
        for part in (self.builder, self.runner):
            base = base if part is None else part.options(base)
        return base


Measure = MeasureOptions | MeasureOption | None
"""Options of measuring, as `tune` takes them; None: as usual for the target."""


def measure_option(builder: LocalBuilder | None = None, runner: Runner | None = None) -> MeasureOption:
    """Make options of measuring of a builder and a runner, as usual for the target where none is given."""
    return MeasureOption(builder, runner)


def measuring(
    given: Measure, usual: MeasureOptions, builder: LocalBuilder | None = None, runner: Runner | None = None
) -> MeasureOptions:
    """The options that what was given comes to; TypeError where it is none, or says the same twice."""
    if given is not None and (builder is not None or runner is not None):
        raise TypeError("measure says how to measure already: give that, or builder and runner")
    if isinstance(given, MeasureOptions):
        return given
    if given is not None and not isinstance(given, MeasureOption):
        expected = (
            "what lw.measure_option(builder, runner) returns, lw.MeasureOptions(...), None or (tuners) a function"
        )
        raise TypeError(f"options of measuring are {expected}, got {type(given).__name__}")
    return (given or MeasureOption(builder, runner)).options(usual)


def _check_timeout(time_s: float | None) -> None:
    if time_s is not None and not time_s > 0:
        raise ValueError(f"timeout must be above 0 seconds, got {time_s}")


def runs_here(measure: Measure) -> bool:
    """True where the candidates of a search with these options run on this machine."""
    if isinstance(measure, MeasureOptions):
        return measure.runners is None
    return measure is None or measure.runner is None or isinstance(measure.runner, LocalRunner)
