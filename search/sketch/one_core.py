"""Sketches of CPUs as a model of one core sees them: the work of all, without parallel loops, by steps it knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.target import Target
from ...passes.parametric.replay import ScheduledNests
from ...passes.pipeline_text import parse_schedule
from ...passes.schedule.parallel import Parallel
from ..features.of_sketch import SketchFeatures
from .hole import Columns
from .sketch import Sketch


def as_on_one_core(
    sketches: Sequence[Sketch], module: ModuleOp, alone: Target, cores: int, as_seen: bool = True
) -> list[Sketch]:
    """Return sketches for so many cores, described as on a target of one: what is chosen has its parallel loops.

    Steps that its samples have not stand there as those have them (`Draft.do_unseen`): what is known of tiles holds
    with them, too; without `as_seen`, for a model that stands on no such one, they are described as they are. `module`
    is the workload with the target `alone`.

    Estimates are the seconds of all cores together, so that it counts where some wait for others. Convolutions of
    channels apart, of which estimates alone take padded copies, run in a third of the time so (960 channels of 7x7 on
    two threads 59 us by the estimates, 17 on one by the model; 192 of 28x28 115 and 43; two virtual cores of an Emerald
    Rapids that share a real one).
    """
    nests = ScheduledNests(module, alone)
    return [
        replace(sketch, describe=_described(sketch, nests, module, alone, cores, as_seen))
        if cores > 1 or (as_seen and sketch.written_as_seen is not None)
        else sketch
        for sketch in sketches
    ]


def _described(
    sketch: Sketch, nests: ScheduledNests, module: ModuleOp, alone: Target, cores: int, as_seen: bool
) -> SketchFeatures:
    prior = sketch.prior

    def together(columns: Columns) -> npt.NDArray[np.float64]:
        assert prior is not None
        return prior(columns) * cores

    def serial() -> list[ModulePass]:
        template = sketch.seen_template if as_seen else sketch.template
        return [step for step in parse_schedule(template) if not isinstance(step, Parallel)]

    return SketchFeatures(module, alone, sketch.name, serial, None if prior is None else together, nests=nests)
