"""Features of a sketch's candidates as one program over columns, made when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...backends.forkable import ForkableLock
from ...dialects.cached_property import cached_property
from ...dialects.target import Target
from ...passes.collector import collector_paused
from ...passes.parametric.replay import ScheduledNests
from ...passes.parametric.sizes import Size, SizeGraph
from ...passes.parametric.usage import steps_allowed, usage_of
from ...passes.primitive import UnknownStepError
from ..estimates.build_model import build_seconds
from .catalogue import PRIOR, names
from .extract import features_of_view, ideal_seconds
from .native import run_program
from .program import Program
from .view import NestView

Schedule = str | Sequence[ModulePass]
Prior = Callable[[Mapping[str, npt.NDArray[np.int64]]], npt.NDArray[np.float64]]


class SketchFeatures:
    """From columns of decisions to a feature matrix, one column for each feature of the catalogue and the prior.

    `module` is the workload on tensors, `template` the schedule with `<name>` for holes, as text or as steps, or what
    returns these when it is called; `prior` is the estimate in seconds by the rules that wrote the sketch; without one,
    `estimate` is what the nest of loops itself is estimated to take, if it may be. `nests` are those of the module,
    which sketches of one workload share.
    UnknownStepError when first called, where a step's effect on extents is not known.
    """

    def __init__(
        self,
        module: ModuleOp,
        target: Target,
        name: str,
        template: Schedule | Callable[[], Schedule],
        prior: Prior | None,
        estimate: Callable[[NestView], Size] | None = None,
        nests: ScheduledNests | None = None,
    ) -> None:
        self._nests = nests or ScheduledNests(module, target)
        self._name = name
        self._template = template
        self._estimate = estimate
        self._most_shared = target.max_shared_bytes if target.is_gpu else 0
        self._making = ForkableLock()
        """Held while programs are made, as what they are made of is taken apart for all threads."""
        self.prior = prior if prior is not None or estimate is None else self._estimated
        """Seconds of candidates with these columns, `(n,)`; None where nobody has an idea."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return (*names(), PRIOR.name)

    @property
    def program(self) -> Program:
        """The catalogue's features, and the ideal seconds that times are relative to."""
        return self._programs[0]

    @property
    def _programs(self) -> tuple[Program, Program, Program]:
        """Those of `_made`, which one thread makes for all."""
        with self._making:
            return self._made

    @cached_property
    @collector_paused()
    def _made(self) -> tuple[Program, Program, Program]:
        """The features; the estimate of building, where there is one; the limits of unrolling that make a difference.

        All are made at once, since the expressions that they are made of, tens of thousands, are let go then.
        """
        graph, view = self._view
        seconds = build_seconds(view.nest)
        programs = (
            Program(graph, [*features_of_view(view), ideal_seconds(view)]),
            Program(graph, [] if seconds is None else [seconds]),
            Program(graph, steps_allowed(view.nest) if view.nest.target.is_gpu else []),
        )
        del self._view
        view.nest.forget()
        graph.forget()
        return programs

    @cached_property
    def _estimates(self) -> Program:
        """The estimate of running by the loops."""
        graph, view = self._view
        assert self._estimate is not None
        return Program(graph, [self._estimate(view)])

    @cached_property
    def _view(self) -> tuple[SizeGraph, NestView]:
        """The nest of all candidates, which programs are of, and the expressions there are of it, until these are."""
        graph = SizeGraph()
        try:
            with collector_paused():
                template = self._template() if callable(self._template) else self._template
                return graph, NestView(self._nests.nest(template, graph))
        except UnknownStepError as error:
            error.add_note(f"in sketch '{self._name}'")
            raise

    def _estimated(self, columns: Mapping[str, npt.NDArray[np.int64]]) -> npt.NDArray[np.float64]:
        rows = len(next(iter(columns.values()))) if columns else 1
        with self._making:
            program = self._estimates
        return np.asarray(run_program(program, columns, rows)[0], dtype=np.float64)

    def build_seconds(self, columns: Mapping[str, npt.NDArray[np.int64]], rows: int) -> npt.NDArray[np.float64] | None:
        """Rough seconds until candidates with these columns are built, `(rows,)`; None where nobody has an idea."""
        program = self._programs[1]
        return np.asarray(run_program(program, columns, rows)[0], dtype=np.float64) if program.outputs else None

    def steps_allowed(self, columns: Mapping[str, npt.NDArray[np.int64]], rows: int) -> npt.NDArray[np.float64] | None:
        """Limits of unrolling `(limits, rows)`, as far as they make a difference; None where there are none."""
        program = self._programs[2]
        return np.asarray(run_program(program, columns, rows), dtype=np.float64) if program.outputs else None

    def has_room(self, columns: Mapping[str, npt.NDArray[np.int64]], schedule: str) -> bool:
        """True where blocks of the one candidate with these columns and this schedule find all their shared memory.

        Extents of all candidates at once bound it, mostly sharply: where they do not tell, those of its own IR do,
        which takes 10 to 30 ms.
        """
        if not self._most_shared:
            return True
        (logarithm,) = run_program(self.program, columns, 1, np.float64)[names().index("program.shared_bytes")]
        if round(2**logarithm - 1) <= self._most_shared:
            return True
        with self._making, collector_paused():
            taken = usage_of(self._nests.candidate(schedule)).shared_bytes
        assert isinstance(taken, int | float), "extents of one candidate are numbers"
        return taken <= self._most_shared

    def __call__(self, columns: Mapping[str, npt.NDArray[Any]], rows: int) -> npt.NDArray[np.float32]:
        """The features `(rows, len(catalogue()) + 1)` of candidates with these columns, each `(rows,)`."""
        result = run_program(self.program, columns, rows)
        ideal_s = result[-1]
        result[-1] = np.nan if self.prior is None or not rows else np.log2(self.prior(columns) / ideal_s)
        return result.T
