"""The nest of all candidates of a sketch at once, derived from its steps and not from any candidate's IR."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.target import Target
from ...passes.open_number import open_names
from ...passes.pipeline_text import apply_schedule, parse_schedule
from .nest import Nest
from .read import nest_of_module
from .sizes import Graph
from .steps import Sizes, UnknownStepError, replay_steps


def nest_of_sketch(module: ModuleOp, target: Target, name: str, template: str, graph: Graph) -> Nest:
    """The nest of a schedule text with `<name>` for holes, as `nest_of_steps` has it; `name` is for its errors."""
    try:
        return nest_of_steps(module, target, parse_schedule(template), graph)
    except UnknownStepError as error:
        raise UnknownStepError(f"sketch '{name}': {error}") from None


def nest_of_steps(module: ModuleOp, target: Target, steps: Sequence[ModulePass], graph: Graph) -> Nest:
    """The nest of steps with open numbers, each a column of `graph`.

    The steps before the first open number are applied to the IR, the others to its extents. UnknownStepError for a step
    whose effect on extents is not known.
    """
    first = next((k for k, step in enumerate(steps) if open_names(step)), len(steps))
    copy = module.clone()
    apply_schedule(copy, steps[:first])
    nest = nest_of_module(copy, target)
    replay_steps(nest, tuple(steps[first:]), Sizes(graph.column))
    return nest
