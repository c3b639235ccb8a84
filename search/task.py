"""A search task: a workload on a target, to be tuned, and to be built with the best schedule found."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp

from ..backends.build import build
from ..backends.kernel_function import Kernel
from ..backends.targets import resolve_target
from ..dialects.cached_property import cached_property
from ..dialects.caller import warn_caller
from ..dialects.classic_words import attributes_know_classic_words, knows_classic_words
from ..dialects.late import LateModule
from ..dialects.markup import as_text, facts, folded, folding, notebook
from ..dialects.target import Target
from ..passes.build_limits import USUAL_LIMITS, BuildLimits
from ..passes.collector import collector_paused
from ..passes.pipeline_text import apply_schedule, parse_schedule
from ..te import Tensor
from ..te.module import with_inputs
from .cost_model.general import General
from .cost_model.shipped import model_for, shipped_for
from .kept_choices import kept_choice
from .measure.backend_api import backend_path, load_backend
from .named_workloads import find_workload, workload_of_key
from .records import file as rec
from .records.file import Record
from .records.known import best_known
from .records.match import Choice, counted_reasons
from .sketch.as_python import as_python
from .sketch.generate import generate_sketches
from .sketch.likely import STEPS, SURE, SURE_ON_CPU, likeliest_candidate, sure_near_the_least
from .sketch.one_core import as_on_one_core
from .sketch.rule import SketchRule, checked_rules
from .sketch.sketch import RefusedSketchError, Sketch
from .workload import ComputeDAG, Workload, as_workload

if TYPE_CHECKING:
    from .measure import local as measuring_here
    from .measure import measurement as measurements
    from .measure import reference as references
    from .tune import options as tuning
else:  # what searches and measures is loaded by whoever does
    measuring_here = LateModule(".measure.local", __package__)
    measurements = LateModule(".measure.measurement", __package__)
    references = LateModule(".measure.reference", __package__)
    tuning = LateModule(".tune.options", __package__)

__all__ = ["SearchTask"]

Mode = Literal["schedule", "python", "ir", "source"]


@attributes_know_classic_words
class SearchTask:
    """A workload and a target.

    The workload is a function from `args` to the list of its inputs and outputs as te tensors, the name of a registered
    one, such tensors themselves, one or a list, or a te-level module; or `workload_key` says both, as a record does.
    `target` is text such as `llvm` (this machine) or `llvm cores=1`, or a Target. `rules` are the sketch rules to
    derive the search space by, in their order; all there are (`lw.sketch_rules()`) unless told otherwise.
    `instead_of` is the hash of a workload that this one computes in another way, of which a network takes one or the
    other: a TaskScheduler counts the faster.
    ValueError for a target that cannot be tuned for.
    """

    @knows_classic_words
    def __init__(
        self,
        workload: str | Workload | Callable[..., Sequence[Tensor]] | Tensor | Sequence[Tensor] | ModuleOp | None = None,
        args: Sequence[Any] = (),
        target: str | Target = "llvm",
        rules: Sequence[SketchRule | type[SketchRule]] | None = None,
        *,
        workload_key: str | None = None,
        instead_of: str | None = None,
    ) -> None:
        if (workload is None) == (workload_key is None):
            raise TypeError("a task is of a workload or of a workload_key: give one of them")
        if workload_key is not None:
            workload, args = workload_of_key(workload_key)
        if isinstance(workload, str):
            workload = find_workload(workload)
        if isinstance(args, str) or not isinstance(args, Sequence):
            raise TypeError(f"args are the arguments of the workload, in a list or a tuple, got {args!r}")
        self.args = tuple(args)
        if isinstance(workload, Tensor | list | tuple):
            tensors = with_inputs(workload)
            if self.args:
                raise TypeError(f"args are for a workload that is a function, and tensors are given: got {self.args!r}")
            self.name, self.compute_dag = tensors[-1].name, ComputeDAG.from_tensors(tensors)
        elif isinstance(workload, ModuleOp):
            self.name = "module"
            self.compute_dag = ComputeDAG.from_module(workload)
        else:
            assert workload is not None
            assert not isinstance(workload, Sequence)
            named = as_workload(workload)
            self.name = named.name
            self.compute_dag = named.dag(*self.args)
        self.target = resolve_target(target)
        self.rules = None if rules is None else checked_rules(rules)
        self.instead_of = instead_of

    def __repr__(self) -> str:
        shown = ", ".join(f"{value!r:.40}" for value in self.args)
        return f"<{type(self).__name__} {self.name}{shown and f'({shown})'} for {self.target}>"

    def _repr_html_(self) -> str:
        """The workload's size and its program, for a notebook."""
        dag = self.compute_dag
        rows = [("target", str(self.target)), ("operations of a run", f"{self.flops:,}")]
        rows += [("bytes of inputs and outputs", f"{dag.moved_bytes:,}"), ("workload", dag.hash)]
        program = folded("What is computed", folding(str(dag)))
        return notebook(f"<p>{as_text(repr(self)[1:-1])}</p>{facts(rows)}{program}")

    @property
    def workload_key(self) -> str:
        """JSON `[name, args, hash]`, the same in every process and on every machine."""
        return self.compute_dag.workload_key(self.name, self.args)

    @property
    def flops(self) -> int:
        """Arithmetic operations of one run; a multiply-add is 2."""
        return self.compute_dag.flops

    @cached_property
    def module(self) -> ModuleOp:
        """The te-level module, with the target."""
        return self.compute_dag.for_target(self.target)

    @cached_property
    def sketches(self) -> list[Sketch]:
        """The sketches that are searched: schedules with holes; ValueError for a GPU whose limits are not known."""
        if not all(sketch.is_legal for sketch in self._planned):
            self._make_without_plans()
        return self._planned

    @cached_property
    def _planned(self) -> list[Sketch]:
        """The sketches, of some of which nobody knows yet if their steps are legal."""
        if self.target.is_gpu and not self.target.max_threads_per_block:
            raise ValueError(
                f"target '{self.target}' says not how many threads a block may have, so there is nothing to search: "
                f"name a model, as 'cuda model=h200', an architecture, as 'cuda arch=sm_75', or max_threads_per_block="
            )
        return generate_sketches(self.module, self.target, self.rules, may_plan=True)

    def _make_without_plans(self) -> None:
        """Make the sketches anew that are legal, as a step of one is not."""
        self._planned = generate_sketches(self.module, self.target, self.rules)
        self.__dict__.pop("_compared", None)

    @cached_property
    def default_schedule(self) -> str:
        """The schedule of an untuned build, and the first trial of a search: that of `default_candidate`."""
        sketch, row = self._untuned
        return sketch.schedule(np.array(row, dtype=np.int64))

    @cached_property
    def default_candidate(self) -> tuple[int, tuple[int, ...]]:
        """The candidate that is taken untuned: the number of its sketch, and its row."""
        sketch, row = self._untuned
        return [each.name for each in self.sketches].index(sketch.name), row

    @cached_property
    @collector_paused()
    def _untuned(self) -> tuple[Sketch, tuple[int, ...]]:
        """The sketch and the row that are taken untuned."""
        try:
            sketch, row = self._likeliest()
            if not sketch.is_legal:
                raise RefusedSketchError(sketch.name)
        except RefusedSketchError:
            self._make_without_plans()
            sketch, row = self._likeliest()
        return sketch, tuple(row.tolist())

    def _likeliest(self) -> tuple[Sketch, npt.NDArray[np.int64]]:
        """The sketch and the row that are thought best.

        Where a cost model ships for such targets, the candidate of all sketches that it likes best of some thousand,
        or of one core of them, for which they are then as on one; else the defaults of the first sketch, or on CPUs of
        a sure one that is estimated near it.
        """
        sketches, model = self._compared
        if model is None:
            sure = None if self.target.is_gpu else sure_near_the_least(sketches, SURE_ON_CPU)
            chosen = sure or sketches[0]
            return chosen, chosen.default
        rounds, near = (STEPS, SURE) if self.target.is_gpu else (0, SURE_ON_CPU)
        return likeliest_candidate(sketches, model, model.doubt, rounds, near)

    @cached_property
    def _compared(self) -> tuple[list[Sketch], General | None]:
        """The sketches as the model that compares their candidates has seen such, as on one core, and that model."""
        if self.target.kind != "llvm":
            return self._planned, self._model
        alone = self.target.with_cores(1)
        model = model_for(alone, self.compute_dag.dtype)
        if model is None:
            return self._planned, None
        module, as_seen = self.compute_dag.for_target(alone), shipped_for(alone) is not None
        return as_on_one_core(self._planned, module, alone, self.target.cores, as_seen), model

    @property
    def compared_sketches(self) -> list[Sketch]:
        """The sketches as the model that ships knows them: on several cores of a CPU, those of one."""
        return self._compared[0]

    @property
    def compared_by(self) -> General | None:
        """The cost model that compares their candidates before any is measured; None where there is none."""
        return self._compared[1]

    @property
    def _model(self) -> General | None:
        """The cost model that ships for such targets and element types; None where none does."""
        return model_for(self.target, self.compute_dag.dtype)

    @cached_property
    def reference(self) -> references.Reference:
        """Random inputs and the right outputs."""
        from .measure.reference import make_reference

        return make_reference(self.module)

    @knows_classic_words
    def tune(
        self,
        options: tuning.TuningOptions | int | None = None,
        measure: measuring_here.Measure = None,
        *,
        builder: measuring_here.LocalBuilder | None = None,
        runner: measuring_here.Runner | None = None,
    ) -> tuning.TuningResult:
        """Search for a fast schedule; see TuningOptions, for which a number of trials may stand.

        Where no trial succeeds, the result says so.

        Candidates are measured by a `builder` (`lw.LocalBuilder`) and a `runner` (`lw.LocalRunner`, `lw.FleetRunner`),
        or as `measure` says: what `lw.measure_option()` returns, or a MeasureOptions.
        """
        from .measure.local import measuring
        from .task_in_search import in_search
        from .tune.deadline import Deadline
        from .tune.loop import tune_what_is_made
        from .tune.options import as_options

        options = as_options(options)
        deadline = Deadline.after(options.time_limit_s)

        def make() -> tuple[tuning.Tunable, tuning.TuningOptions]:
            chosen = self.taught(options)
            return in_search(self, chosen.cost_model), chosen

        measured = measuring(measure, self.measure_options(), builder, runner)
        return tune_what_is_made(make, options, measured, deadline)

    def forget_reference(self) -> None:
        """Let go of `reference`, which is made again when it is asked for."""
        self.__dict__.pop("reference", None)

    def taught(self, options: tuning.TuningOptions) -> tuning.TuningOptions:
        """The options with a cost model that starts from what is known of other tasks of the target.

        That is what the record file holds of them, else the model that ships for the kind of target.
        """
        from .cost_model.transfer import TEACHABLE, transfer_to
        from .tune.displays import progress_of

        if not (options.transfer and options.refits and options.cost_model == TEACHABLE):
            return self.grounded(options)
        recorded = options.records is not None and os.path.isfile(options.records)
        known = transfer_to(self, options.records) if options.records is not None and recorded else None
        if known is None:
            return self.grounded(options)
        progress = progress_of(options.progress)
        progress.note(f"{self.name}: {known}")
        model = known.model(options.seed) if known.samples else options.cost_model
        return replace(options, cost_model=model, progress=progress)

    def grounded(self, options: tuning.TuningOptions) -> tuning.TuningOptions:
        """The options with a cost model that starts from the one that ships for the kind of target, if one does.

        On several cores it is that of one: MobileNet v1 on two threads went without, and of its 22 kernels two thirds
        were no faster after 16 trials than untuned.
        """
        from .cost_model.grounded import Grounded
        from .cost_model.make import make_model
        from .cost_model.transfer import TEACHABLE

        _, ground = self._compared
        if ground is None or not (options.transfer and options.learns and options.cost_model == TEACHABLE):
            return options
        return replace(options, cost_model=Grounded(make_model(TEACHABLE, options.seed), ground))

    def tuning_task(self) -> tuning.TuningTask:
        """Make all that a tuner may ask of the task; to be changed with `dataclasses.replace`."""
        from .tune.loop import TuningTask

        reference = self.reference
        return TuningTask(
            name=self.name,
            workload_key=self.workload_key,
            workload=str(self.module),
            target=str(self.target),
            spaces=self.sketches,
            default_schedule=self.default_schedule,
            inputs=reference.inputs,
            expected=reference.expected,
            tolerances=reference.tolerances,
            flop=float(self.flops),
            workload_hash=self.compute_dag.hash,
        )

    def measure_options(self) -> measurements.MeasureOptions:
        """Options of measuring for this target, unless told otherwise."""
        from .measure.measurer import MeasureOptions
        from .measure.preflight import preflight
        from .measure.timing import GPU_TIMING, on_cores

        backend = backend_path(self.target.kind)
        check = partial(preflight, self.target)
        if self.target.is_gpu:
            overlap = self.target.kind == "cuda"
            return MeasureOptions(backend, overlap=overlap, timing=GPU_TIMING, preflight=check)
        cores = self.target.cores
        timing = on_cores(cores, self.target.l2_bytes)
        return MeasureOptions(backend, threads=cores, timing=timing, preflight=check)

    # -- what was found -----------------------------------------------------------------------------------------------

    def best_record(self, records: str | os.PathLike[str] | Iterable[Record]) -> Record:
        """The fastest valid record of this workload that is of use on this target.

        That is one of this very target, or of the same model with a schedule that keeps the limits of this one.
        RecordError where there is none, with the reasons; a RecordWarning says why faster ones are passed over.
        """
        return self._chosen(records).require()

    def _chosen(
        self, records: str | os.PathLike[str] | Iterable[Record], versions: Mapping[str, str] | None = None
    ) -> Choice:
        loaded = rec.loaded(records)
        choice = Choice(loaded, self, versions)
        if choice.record is not None and choice.refused:
            text = f"faster records of {self.name} are not used: {counted_reasons(choice.refused)}"
            warn_caller(text, rec.RecordWarning)
        return choice

    def versions(self) -> Mapping[str, str]:
        """The versions of packages and primitives that schedules are replayed by."""
        return load_backend(backend_path(self.target.kind)).versions()

    def schedule_module(self, schedule: str, limits: BuildLimits = USUAL_LIMITS) -> ModuleOp:
        """The workload's loops after a schedule; ScheduleError where it is not legal or goes beyond the limits."""
        module = self.module.clone()
        apply_schedule(module, schedule, limits)
        return module

    def build(
        self,
        schedule: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        check: bool = False,
        limits: BuildLimits = USUAL_LIMITS,
    ) -> Kernel:
        """Compile with a schedule; `params`, `check` and `limits` are those of `lw.build`.

        Without one it is the best that is known here, as `lw.compile` takes it: of the histories applied around the
        call (`lw.apply_history_best`), of the pre-tuned set, else the default one (`default_schedule`).
        """
        text = self.known_schedule() if schedule is None else schedule
        kernel = build(self.schedule_module(text, limits), self.target, params, limits=limits)
        if check:
            from .measure.check import check_kernel

            check_kernel(kernel, self.module, text, params)
        return kernel

    @knows_classic_words
    def apply_best(
        self,
        records: str | os.PathLike[str] | Iterable[Record],
        params: Mapping[str, Any] | None = None,
        *,
        check: bool = False,
        limits: BuildLimits = USUAL_LIMITS,
    ) -> Kernel:
        """Compile with the best schedule on record (`best_record`) whose primitives have not changed since.

        Whosever the records are, a schedule that asks for more than `limits` is refused with a sentence, as in `build`.
        """
        record = self._chosen(records, self.versions()).require()
        return self.build(record.schedule, params, check=check, limits=limits)

    def known_schedule(self) -> str:
        """The best schedule in the histories applied around the call and the pre-tuned set, else the default one.

        That is kept on disk (`kept_choices`), as choosing it takes a good part of a second.
        """
        known = best_known(self, self.versions()).record
        if known is not None:
            return known.schedule
        if self.rules is not None or "default_schedule" in self.__dict__:
            return self.default_schedule
        return kept_choice(self.compute_dag.text_for(self.target), lambda: self.default_schedule)

    @knows_classic_words
    def print_best(self, records: str | os.PathLike[str] | Iterable[Record], mode: Mode = "schedule") -> str:
        """The best schedule on record: as `schedule` text, `python` code, `ir` after it, or the kernel's `source`."""
        return self.render(self.best_record(records).schedule, mode)

    def render(self, schedule: str, mode: Mode) -> str:
        """A schedule as text, Python code, IR or source; ValueError for another mode."""
        if mode == "schedule":
            return schedule
        if mode == "python":
            return as_python(parse_schedule(schedule), str(self.target))
        if mode == "ir":
            return str(self.schedule_module(schedule))
        if mode == "source":
            return self.build(schedule).source
        raise ValueError(f"mode must be schedule, python, ir or source, got '{mode}'")
