"""The nest of all candidates of a schedule at once, derived from its steps and not from any candidate's IR."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.cached_property import cached_property
from ...dialects.target import Target
from ..open_number import open_names
from ..pipeline_text import apply_schedule, lower_to_loops, parse_schedule
from ..primitive import UnknownStepError
from .nest import Nest
from .read import nest_of_candidate, nest_of_module
from .sizes import SizeGraph, Sizes


class ScheduledNests:
    """The nests of schedules of one module for a target; what schedules begin with alike is applied to the IR once."""

    def __init__(self, module: ModuleOp, target: Target) -> None:
        self._module = module
        self._target = target

    @cached_property
    def _begun(self) -> dict[tuple[ModulePass, ...], ModuleOp]:
        """The module on loops after the steps that nests were asked for to begin with."""
        on_loops = self._module.clone()
        lower_to_loops(on_loops)
        return {(): on_loops}

    def nest(self, schedule: str | Sequence[ModulePass], graph: SizeGraph) -> Nest:
        """The nest of a schedule with open numbers, as text or as steps; each is a column of `graph`.

        The steps before the first open number are applied to the IR, the others to its extents. UnknownStepError for a
        step whose effect on extents is not known.
        """
        steps = parse_schedule(schedule) if isinstance(schedule, str) else tuple(schedule)
        first = next((k for k, step in enumerate(steps) if open_names(step)), len(steps))
        nest = nest_of_module(self._after(steps[:first]), self._target)
        replay_steps(nest, steps[first:], Sizes(graph.column))
        return nest

    def candidate(self, schedule: str) -> Nest:
        """The nest of a schedule without open numbers, from its IR, which is forgotten: buffers are as it has them."""
        module = self._after(()).clone()
        apply_schedule(module, parse_schedule(schedule))
        return nest_of_candidate(module, self._target)

    def _after(self, steps: tuple[ModulePass, ...]) -> ModuleOp:
        """The module on loops after steps, which nobody changes."""
        if steps not in self._begun:
            known = max((begun for begun in self._begun if steps[: len(begun)] == begun), key=len)
            module = self._begun[known].clone()
            apply_schedule(module, steps[len(known) :])
            self._begun[steps] = module
        return self._begun[steps]


def replay_steps(nest: Nest, steps: Iterable[ModulePass], sizes: Sizes) -> None:
    """Apply steps to the extents of `nest`, in place, each by its own `replay_sizes`, which any pass may have."""
    for step in steps:
        replay = getattr(step, "replay_sizes", None)
        if replay is None:
            raise UnknownStepError(step)
        replay(nest, sizes)
