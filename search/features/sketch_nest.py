"""The nest of all candidates of a sketch at once, derived from its steps and not from any candidate's IR."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from ...dialects.target import Target
from ...passes.open_number import open_names
from ...passes.pipeline_text import apply_schedule, parse_schedule
from .nest import Nest
from .read import nest_of_module
from .sizes import Graph
from .steps import Sizes, UnknownStepError, replay_steps


def nest_of_sketch(module: ModuleOp, target: Target, name: str, template: str, graph: Graph) -> Nest:
    """The nest of a schedule text with `<name>` for holes; each is a column of `graph`.

    The steps before the first hole are applied to the IR, the others to its extents. UnknownStepError for a step whose
    effect on extents is not known.
    """
    steps = parse_schedule(template)
    first = next((k for k, step in enumerate(steps) if open_names(step)), len(steps))
    copy = module.clone()
    apply_schedule(copy, steps[:first])
    nest = nest_of_module(copy, target)
    try:
        replay_steps(nest, steps[first:], Sizes(graph.column))
    except UnknownStepError as error:
        raise UnknownStepError(f"sketch '{name}': {error}") from None
    return nest
