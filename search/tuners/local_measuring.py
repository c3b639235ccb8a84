"""How configs of templates are built and run: a builder and a runner, as options of the measurer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..measure.measurer import MeasureOptions, Measurer

if TYPE_CHECKING:
    from ..template.task import TemplateTask


@dataclass(frozen=True)
class LocalBuilder:
    """Build in `n_parallel` processes (None: one a core), each build for `timeout` seconds at most."""

    timeout: float = 30.0
    n_parallel: int | None = None

    def __post_init__(self) -> None:
        if not self.timeout > 0:
            raise ValueError(f"timeout must be above 0 seconds, got {self.timeout}")
        if self.n_parallel is not None:
            check_count("n_parallel", self.n_parallel)


@dataclass(frozen=True)
class LocalRunner:
    """Run on this machine's device, in a process of its own.

    A measurement is `repeat` numbers, each the mean of `number` runs or more, of `min_repeat_ms` milliseconds together
    or more; it takes `timeout` seconds at most, and the device rests for `cooldown` seconds before it. Without
    `check_correctness` any output passes.
    """

    number: int = 4
    repeat: int = 3
    min_repeat_ms: float = 50.0
    timeout: float = 10.0
    cooldown: float = 0.0
    check_correctness: bool = True

    def __post_init__(self) -> None:
        check_count("number", self.number)
        check_count("repeat", self.repeat)
        if not self.timeout > 0:
            raise ValueError(f"timeout must be above 0 seconds, got {self.timeout}")
        for name in ("min_repeat_ms", "cooldown"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")


@dataclass(frozen=True)
class MeasureOption:
    """A builder and a runner."""

    builder: LocalBuilder = field(default_factory=LocalBuilder)
    runner: LocalRunner = field(default_factory=LocalRunner)

    def __post_init__(self) -> None:
        for name, kind in (("builder", LocalBuilder), ("runner", LocalRunner)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} must be a {kind.__name__}, got {type(getattr(self, name)).__name__}")

    def options(self, base: MeasureOptions) -> MeasureOptions:
        """What the measurer is told: as this says, and for the rest as usual for the target."""
        builder, runner = self.builder, self.runner
        timing = replace(
            base.timing,
            number=int(runner.number),
            repeat=int(runner.repeat),
            min_repeat_ms=float(runner.min_repeat_ms),
            cooldown_s=runner.cooldown,
        )
        return replace(
            base,
            builders=base.builders if builder.n_parallel is None else int(builder.n_parallel),
            build_timeout_s=builder.timeout,
            run_timeout_s=runner.timeout,
            timing=timing,
        )


def measure_option(builder: LocalBuilder | None = None, runner: LocalRunner | None = None) -> MeasureOption:
    """How `tune` measures: with a LocalBuilder and a LocalRunner."""
    return MeasureOption(builder or LocalBuilder(), runner or LocalRunner())


def tolerance(option: Any, atol: float, rtol: float) -> tuple[float, float]:
    """How far from right an output may be: anything where the runner does not check."""
    checked = not isinstance(option, MeasureOption) or option.runner.check_correctness
    return (atol, rtol) if checked else (math.inf, 0.0)


def make_measurer(task: TemplateTask, option: MeasureOption | MeasureOptions | None) -> Measurer:
    """A measurer for a task, still to be entered; TypeError where the option is none."""
    if option is None:
        return Measurer(task.measure_options())
    if isinstance(option, MeasureOption):
        return Measurer(option.options(task.measure_options()))
    if isinstance(option, MeasureOptions):
        return Measurer(option)
    expected = "what measure_option() returns, a MeasureOptions, None or a function"
    raise TypeError(f"measure_option must be {expected}, got {type(option).__name__}")


def check_count(name: str, value: object) -> None:
    """Refuse what is not a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
