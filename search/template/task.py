"""A template with arguments and a target, to be tuned, and to be built with the best config found."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...backends.kernel_function import Kernel
from ...backends.targets import resolve_target
from ...dialects.classic_words import knows_classic_words
from ...dialects.target import Target
from ..measure.local import LocalBuilder, Measure, Runner, measuring
from ..records.file import Record
from ..task import Mode
from ..tune.deadline import Deadline
from ..tune.loop import TuningOptions, TuningResult, tune_what_is_made
from ..tune.options import as_options
from .bound import BoundTemplate
from .config import Config
from .function import TemplateFunction
from .in_search import TemplateInSearch
from .registry import find_template


class TemplateTask(BoundTemplate):
    """A template, its arguments and a target, to be tuned: `tune`, a TaskScheduler, or one of `lw.tuners`.

    The template is a name, a Template, or a function `f(cfg, *args)`. `print(task.config_space)` shows what may be
    chosen. `workload_key` is what records name the workload by, unless it is the template with its arguments.
    `estimates=False` lets configs be measured that are within the device's limits, but by estimate not worth a build.
    `instead_of` is that of a SearchTask.
    ConfigError where there is no such template, it is for another kind of target, or no config of it can be scheduled.
    """

    @knows_classic_words
    def __init__(
        self,
        template: str | TemplateFunction | Callable[..., Any],
        args: Sequence[Any] = (),
        target: str | Target = "llvm",
        workload_key: str = "",
        estimates: bool = True,
        *,
        instead_of: str | None = None,
    ) -> None:
        resolved = resolve_target(target)
        if isinstance(template, str):
            template = find_template(template, resolved)
        elif not isinstance(template, TemplateFunction):
            if not callable(template):
                raise TypeError(f"a template is a name or a function f(cfg, *args), got {type(template).__name__}")
            template = TemplateFunction(template.__name__, template)
        super().__init__(template, args, resolved, workload_key, estimates)
        self.instead_of = instead_of

    # -- tuning -------------------------------------------------------------------------------------------------------

    @knows_classic_words
    def tune(
        self,
        options: TuningOptions | int | None = None,
        measure: Measure = None,
        *,
        builder: LocalBuilder | None = None,
        runner: Runner | None = None,
    ) -> TuningResult:
        """Search for a fast config with the evolution that searches sketches; see `lw.SearchTask.tune`.

        Its cost model, run-off, resuming, transfer and time limit are those of sketches. Where no trial succeeds, the
        result says so.
        """
        options = as_options(options)
        deadline = Deadline.after(options.time_limit_s)
        measured = measuring(measure, self.measure_options(), builder, runner)

        def make() -> tuple[TemplateInSearch, TuningOptions]:
            return TemplateInSearch(self), self.search_task.taught(options)

        return tune_what_is_made(make, options, measured, deadline)

    def forget_reference(self) -> None:
        """Let go of `reference`, which is made again when it is asked for."""
        self.search_task.forget_reference()

    # -- what was found -----------------------------------------------------------------------------------------------

    def build(
        self,
        config: int | Mapping[str, Any] | Config,
        params: Mapping[str, Any] | None = None,
        *,
        check: bool = False,
    ) -> Kernel:
        """Compile a config; `params` and `check` are those of `lw.build`."""
        return self.search_task.build(self.schedule(config), params, check=check)

    def best_record(self, records: str | os.PathLike[str] | Iterable[Record]) -> Record:
        """The fastest record of this workload that is of use here, of a template or not: SearchTask.best_record."""
        return self.search_task.best_record(records)

    @knows_classic_words
    def apply_best(
        self,
        records: str | os.PathLike[str] | Iterable[Record],
        params: Mapping[str, Any] | None = None,
        *,
        check: bool = False,
    ) -> Kernel:
        """Compile with the best schedule on record, of a template or not; RecordError where there is none."""
        return self.search_task.apply_best(records, params, check=check)

    @knows_classic_words
    def print_best(self, records: str | os.PathLike[str] | Iterable[Record], mode: Mode = "schedule") -> str:
        """The best schedule on record, as SearchTask.print_best shows it."""
        return self.search_task.print_best(records, mode)
