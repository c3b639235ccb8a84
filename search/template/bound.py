"""A template bound to arguments and a target: a space of configs, each of them a schedule of one workload."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from ...backends.targets import resolve_target
from ...dialects.cached_property import cached_property
from ...dialects.loop import is_thread_kind, loops_in
from ...dialects.markup import as_text, folded, notebook
from ...dialects.target import Target, target_of
from ...passes.analysis.nest import functions
from ...passes.parametric.usage import Usage
from ...passes.primitive import ScheduleError
from ...schedule import Schedule
from ..features.catalogue import names
from ..measure.measurer import MeasureOptions
from ..measure.reference import Reference
from ..records.file import Record
from ..records.match import ranked
from ..task import SearchTask
from ..workload import ComputeDAG
from .cases import Case, Cases
from .config import Config, ConfigSpace
from .features import KINDS, SKETCH, program_features
from .function import TemplateFunction
from .knobs.knob import ConfigError
from .limits import excess, usage
from .space import Rows

Floats = npt.NDArray[np.float32]

_FIRST_TRIES = 64
"""Configs that are tried to find one that can be scheduled; templates that refuse more of them are mistaken."""


class BoundTemplate:
    """A template, its arguments and a target: which configs there are, which can be measured, and what each makes.

    `workload_key` is what records name the workload by, unless it is the template with its arguments. Configs are held
    to the limits of the device, and unless `estimates` is False to estimates of what is worth a build. ConfigError
    where no config can be scheduled, or the template is for another kind of target.
    """

    def __init__(
        self,
        template: TemplateFunction,
        args: Sequence[Any],
        target: str | Target,
        workload_key: str = "",
        estimates: bool = True,
    ) -> None:
        self.template = template
        self.args = tuple(args)
        self.target = resolve_target(target)
        self.estimates = estimates
        self.config_space = ConfigSpace(self.target)
        self._first = self._collect()
        self._require_target(self._first)
        self.compute_dag = ComputeDAG.from_module(self._first.workload)
        self._key = workload_key
        self._flop = first_flop if (first_flop := self._collected.flop) else float(self.compute_dag.flops)
        self._known: dict[int, str | Usage] = {}
        self.cases = Cases(self)

    def _collect(self) -> Schedule:
        """Call the template until it defines all of its knobs and returns a schedule, on a first config that can."""
        rng = np.random.default_rng(0)
        row: Sequence[int] | Rows = ()
        refusal: Exception | None = None
        for _ in range(_FIRST_TRIES):
            self._collected = Config(self.config_space, row, self.target, collecting=True)
            try:
                return self.call(self._collected)
            except (ScheduleError, ConfigError) as error:
                refusal = refusal or error
                if not self.config_space.knobs:
                    raise
                row = self.config_space.sample(rng, 1)[0]
        raise ConfigError(f"template '{self.name}': {_FIRST_TRIES} configs tried, none can be scheduled: {refusal}")

    def _require_target(self, made: Schedule) -> None:
        """ConfigError where a schedule has loops that this kind of target has none of."""
        kinds = sorted({loop.loop_kind for function in functions(made.module) for loop in loops_in(function)})
        wrong = [kind for kind in kinds if (kind == "parallel" if self.target.is_gpu else is_thread_kind(kind))]
        if wrong:
            meant, others = ("a CPU", "is a GPU") if self.target.is_gpu else ("a GPU", "is a CPU")
            raise ConfigError(
                f"template '{self.name}' is for {meant}, as it has loops of kind {wrong[0]}, and target "
                f"'{self.target.kind}' {others}; name a template for it, or another target"
            )

    # -- what it is ---------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The template's name."""
        return self.template.name

    @property
    def workload_key(self) -> str:
        """JSON `[name, args, hash]`, the same in every process and on every machine."""
        return self._key or self.compute_dag.workload_key(self.name, self.args)

    @property
    def workload(self) -> str:
        """The workload key, under its name in the classic autotuner: what `History.query` takes."""
        return self.workload_key

    @property
    def title(self) -> str:
        """The template with its arguments, or with the workload's name and shapes where that is its argument."""
        if not self._key:
            return f"{self.name}{self.args}"
        name, shapes, _ = json.loads(self._key)
        return f"{self.name} of {name}{tuple(shapes)}"

    @property
    def flops(self) -> float:
        """Arithmetic operations of one run: those the template counts with `cfg.add_flop`, else the computation's."""
        return self._flop

    @cached_property
    def search_task(self) -> SearchTask:
        """The same workload and target, without the template."""
        return SearchTask(self.compute_dag.module, target=self.target)

    @property
    def module(self) -> ModuleOp:
        """The te-level module, with the target."""
        return self.search_task.module

    @property
    def reference(self) -> Reference:
        """Random inputs and the right outputs."""
        return self.search_task.reference

    def measure_options(self) -> MeasureOptions:
        """Options of measuring configs, unless told otherwise."""
        return self.search_task.measure_options()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.title} on {self.target.kind}, {self.config_space.size} configs>"

    def _repr_html_(self) -> str:
        """The configs that may be chosen, for a notebook."""
        space = folded("Configs to choose from", f"<pre>{as_text(str(self.config_space))}</pre>")
        return notebook(f"<p>{as_text(repr(self)[1:-1])}</p>{space}")

    # -- records ------------------------------------------------------------------------------------------------------

    def recorded(self, records: Iterable[Record]) -> Config | None:
        """The best config on record that keeps the limits of the target; None where there is no record of one."""
        ranking = ranked(records, self.target)
        configs = (config for record in ranking if (config := self._config_of(record)) is not None)
        best = next(configs, None)
        if best is None or self.why_impossible(best) is None:
            return best
        others = list({config.index: config for config in configs}.values())
        rows = np.array([config.row for config in others], dtype=np.int64).reshape(len(others), -1)
        return next(itertools.compress(others, self.possible(rows)), None)

    def _config_of(self, record: Record) -> Config | None:
        """Read the choices of the knobs from a record; None where the knobs have changed since."""
        values = record.template.get("config")
        try:
            return self.config(values) if isinstance(values, Mapping) else None
        except ValueError:
            return None

    # -- configs ------------------------------------------------------------------------------------------------------

    def config(self, config: int | Mapping[str, Any] | Sequence[int] | Config) -> Config:
        """A config by its index, its values, or its row; IndexError or ConfigError where there is none such."""
        space = self.config_space
        if isinstance(config, int | np.integer):
            return space.get(int(config))
        if isinstance(config, Mapping):
            return Config(space, space.row_of(config), self.target)
        row = config.row if isinstance(config, Config) else config
        if isinstance(row, str) or not isinstance(row, Sequence | np.ndarray):
            raise TypeError(f"a config is an index, a value for each knob, a row or a Config, got {config!r}")
        return Config(space, space.checked_row(row), self.target)

    def described(self, config: Config) -> dict[str, Any]:
        """Return what a record says of a config in its field `template`."""
        return {"name": self.name, "args": list(self.args), "index": config.index, "config": config.values}

    def call(self, config: Config) -> Schedule:
        """The schedule that the template makes of a config, which may be one that it changes, or that is traced."""
        return self.template.schedule(config, self.args)

    def instantiate(self, config: int | Mapping[str, Any] | Sequence[int] | Config) -> Schedule:
        """The `lw.Schedule` of a config; ScheduleError where a step is not legal, ConfigError where it refuses."""
        made = self.call(self.config(config))
        if not made.starts_like(self._first) and ComputeDAG.from_module(made.workload).hash != self.compute_dag.hash:
            raise ConfigError(f"template '{self.name}' computes something else for config {config}")
        return made

    def schedule(self, config: int | Mapping[str, Any] | Sequence[int] | Config) -> str:
        """The schedule text of a config."""
        return str(self.instantiate(config).pipeline)

    def schedules(self, configs: Sequence[Config]) -> list[str]:
        """The schedule texts of configs."""
        rows = np.array([config.row for config in configs], dtype=np.int64).reshape(len(configs), -1)
        texts = [""] * len(rows)
        for case, at in self.cases.groups(rows):
            trusted = case is not None and case.trusted
            made = case.trace.texts(self.config_space.columns(rows[at]), len(at)) if case is not None else iter(())
            for position in at:
                texts[position] = next(made) if trusted else self.schedule(rows[position])
        return texts

    def why_not(self, config: int | Mapping[str, Any] | Sequence[int] | Config) -> str | None:
        """The reason why a config cannot be measured: an illegal step, a limit or an estimate; None where it can."""
        return self._why_not(config, self.estimates)

    def why_impossible(self, config: int | Mapping[str, Any] | Sequence[int] | Config) -> str | None:
        """The reason why a config cannot run: a step that is not legal, or a limit of the target; None where it can."""
        return self._why_not(config, False)

    def _why_not(self, config: int | Mapping[str, Any] | Sequence[int] | Config, estimates: bool) -> str | None:
        chosen = self.config(config)
        if chosen.index not in self._known:
            self._known[chosen.index] = self._examine(chosen)
        known = self._known[chosen.index]
        return known if isinstance(known, str) else excess(known, self.target, estimates)

    def _examine(self, config: Config) -> str | Usage:
        """Return what a config takes of the target, or why it cannot be scheduled."""
        try:
            made = self.instantiate(config)
            told = target_of(made.module) == self.target  # else the steps have not been held to its limits
            module = made.module if told else self.search_task.schedule_module(made.pipeline)
            return usage(module)
        except (ConfigError, PassFailedException) as error:
            return str(error)

    def refusal(self, config: Config) -> str | None:
        """Call the template with a config that it may change; why it returns no schedule, or None where it does."""
        try:
            self.call(config)
        except (ConfigError, ScheduleError) as error:
            return str(error)
        return None

    def legal(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Return which rows `(n,)` can be measured."""
        return self._mask(rows, self.estimates)

    def possible(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Return which rows `(n,)` can run, worth a build or not."""
        return self._mask(rows, False)

    def _mask(self, rows: Rows, estimates: bool) -> npt.NDArray[np.bool_]:
        mask = np.zeros(len(rows), dtype=bool)
        for case, at in self.cases.groups(rows):
            if case is not None:
                mask[at] = self._legal(case, rows[at], None, estimates)
        return mask

    def _legal(
        self, case: Case, rows: Rows, taken: Mapping[str, Rows] | None, estimates: bool
    ) -> npt.NDArray[np.bool_]:
        """Return the mask of a case's rows that keep the limits; single configs are asked where it is not trusted."""
        if not case.trusted:
            return np.array([self._why_not(row, estimates) is None for row in rows], dtype=bool)
        known = self.cases.usage(case, rows) if taken is None else taken
        return self.cases.keeps_limits(known, len(rows), estimates)

    def features(self, rows: Rows, kind: str = "itervar") -> Floats:
        """Features of each row, `(n, f)`; see features.KINDS. Rows that cannot be scheduled are zeros."""
        return self._survey(rows, kind, judge=False)[1]

    def survey(self, rows: Rows, kind: str = "itervar") -> tuple[npt.NDArray[np.bool_], Floats]:
        """Return which rows can be measured, and the features of those, for little more than either costs."""
        mask, features = self._survey(rows, kind, judge=True)
        return mask, features[mask]

    def _survey(self, rows: Rows, kind: str, judge: bool) -> tuple[npt.NDArray[np.bool_], Floats]:
        if kind not in (*KINDS, SKETCH):
            raise ValueError(f"feature type must be one of {', '.join(KINDS)}, got '{kind}'")
        mask = np.zeros(len(rows), dtype=bool)
        knobs = self.config_space.features(rows)
        if kind == "knob":
            return self.legal(rows) if judge else mask, knobs
        found: Floats | None = None
        if kind == SKETCH:
            knobs, found = knobs[:, :0], np.full((len(rows), len(names()) + 1), np.nan, dtype=np.float32)
        for case, at in self.cases.groups(rows):
            if case is None:
                continue
            taken, part = program_features(case.program, self.config_space.columns(rows[at]), len(at), kind)
            if judge:
                mask[at] = self._legal(case, rows[at], taken, self.estimates)
            if found is None:
                found = np.zeros((len(rows), part.shape[1]), dtype=np.float32)
            found[at, : part.shape[1]] = part
        return mask, knobs if found is None else np.concatenate([found, knobs], axis=1)
