"""A scheduled program for all configs of a case: what it takes of the target, and how long its loops are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np
import numpy.typing as npt

from ...dialects.cached_property import cached_property
from ...passes.parametric.nest import Loop, Stage
from ...passes.parametric.replay import ScheduledNests
from ...passes.parametric.sizes import Size, SizeGraph, product
from ...passes.parametric.usage import Usage, usage_of
from ..features.extract import features_of_view
from ..features.movement import Footprint, Movement, StageMovement
from ..features.native import run_program
from ..features.program import Program
from ..features.view import NestView
from .symbolic import Columns
from .trace import Trace

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Compiled = Callable[[Columns, int], npt.NDArray[np.float32]]

LOOPS = 24
"""Loops that there are columns for, from the innermost one of the stage that computes most. A choice: tiles of a
convolution's seven axes."""
ACCESSES = 4
"""Buffers of the main stage that there are columns for: a result, two operands and one more."""
USAGE = tuple(field.name for field in fields(Usage))
"""Fields of Usage that `usage` gives."""


class CaseProgram:
    """The parametric nest of a trace; its numbers are computed for populations of configs at once."""

    def __init__(self, nests: ScheduledNests, trace: Trace) -> None:
        self._trace = trace
        self._graph = SizeGraph()
        self.nest = nests.nest(trace.steps, self._graph)

    def compiled(self, sizes: Sequence[Size]) -> Compiled:
        """Compile sizes of the nest for populations: a function of columns and their count to `(sizes, count)`."""
        program = Program(self._graph, sizes)
        return lambda columns, count: run_program(program, self._trace.values(columns, count), count)

    def usage(self, columns: Columns, count: int) -> dict[str, Ints]:
        """The numbers of Usage, each `(count,)`."""
        return _whole(self._usage(columns, count))

    @cached_property
    def _usage(self) -> Compiled:
        return self.compiled(self._taken)

    @cached_property
    def _taken(self) -> list[Size]:
        taken = usage_of(self.nest)
        return [getattr(taken, name) for name in USAGE]

    def survey(self, columns: Columns, count: int) -> tuple[dict[str, Ints], npt.NDArray[np.float32]]:
        """The numbers of Usage, each `(count,)`, and the features of the catalogue, `(count, features)`."""
        found = self._survey(columns, count)
        return _whole(found[: len(USAGE)]), found[len(USAGE) :].T

    @cached_property
    def _survey(self) -> Compiled:
        return self.compiled([*self._taken, *features_of_view(NestView(self.nest))])

    @cached_property
    def main(self) -> Stage:
        """The stage that computes most at the config that was traced."""
        stages = list(self.nest.root.stages())
        work: list[Size] = [product([x.extent for x in s.loops]) * sum(s.arithmetic.values()) for s in stages]
        traced = {name: np.array([expr.value]) for name, expr in self._trace.numbers.items()}
        return stages[int(np.argmax(run_program(Program(self._graph, work), traced, 1)[:, 0]))]

    @cached_property
    def loops(self) -> list[Loop]:
        """The loops around the main stage that there are columns for, innermost first."""
        return self.main.loops[::-1][:LOOPS]

    def walk(self, columns: Columns, count: int) -> tuple[Floats, list[tuple[Floats, Floats]], Floats]:
        """Return the main stage's loops, innermost first: their lengths `(count, LOOPS)`, and for each access its step
        in elements and how many elements it touches in a loop and those inside, both `(count, LOOPS)`; at last the
        iterations on different blocks of threads or cores, and those in one thread, `(count, 2)`.
        """
        found = self._walk(columns, count).astype(np.float64)
        length, accesses = len(self.loops), self.main.accesses[:ACCESSES]
        parts = np.ones((1 + 2 * len(accesses), count, LOOPS))
        parts[:, :, :length] = found[:-2].reshape(len(parts), length, count).transpose(0, 2, 1)
        parts[1::2, :, length:] = 0.0
        if length:
            parts[2::2, :, length:] = parts[2::2, :, length - 1 : length]
        return parts[0], list(zip(parts[1::2], parts[2::2], strict=True)), found[-2:].T

    @cached_property
    def _walk(self) -> Compiled:
        outputs: list[Size] = [x.extent for x in self.loops]
        for steps, elements in touched(self.main, self.loops)[:ACCESSES]:
            outputs += [*steps, *elements]
        apart = [x for x in self.main.loops if x.kind.startswith("blockIdx") or x.kind == "parallel"]
        alone = [x for x in self.main.loops if x not in apart and not x.kind.startswith("threadIdx")]
        return self.compiled([*outputs, product([x.extent for x in apart]), product([x.extent for x in alone])])


def _whole(taken: npt.NDArray[np.float32]) -> dict[str, Ints]:
    """The numbers of Usage by their names."""
    return {name: np.rint(column).astype(np.int64) for name, column in zip(USAGE, taken, strict=True)}


def touched(stage: Stage, loops: Sequence[Loop]) -> list[tuple[list[Size], list[Size]]]:
    """For each access of a stage and each of its loops, innermost first: the access's step in elements, and how many
    elements it touches in the loop and those inside.
    """
    movement = StageMovement(stage, stage.loops)
    found = []
    for access in stage.accesses:
        moved = Movement(movement, access)
        footprint = Footprint(moved)
        elements: list[Size] = []
        for loop in loops:
            footprint.grow(loop)
            elements.append(footprint.elements)
        found.append(([moved.address_step(loop) for loop in loops], elements))
    return found
