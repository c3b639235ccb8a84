"""The best record known around a point of a program: of the histories applied there, then of the pre-tuned set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...dialects.target import Target
from . import pretuned
from .index import History, histories
from .match import Choice, Wanted


def known_histories(untuned: Target | None = None) -> Iterator[History]:
    """The histories applied around this point, innermost first, then the pre-tuned set.

    Of that, what is better for a target than the choice without records, where there is one that is made for it.
    """
    yield from histories()
    yield pretuned.index() if untuned is None else pretuned.index_for(untuned)


def best_known(task: Wanted, versions: Mapping[str, str] | None = None, first: History | None = None) -> Choice:
    """The choice for a task in the first history that has a record of use to it: `first`, then those known here.

    Where none has, it is the choice in the first history that holds any record of the workload.
    """
    refused: Choice | None = None
    for known in (*([] if first is None else [first]), *known_histories(task.target)):
        choice = Choice(known.of(task.compute_dag.hash), task, versions)
        if choice.record is not None:
            return choice
        if refused is None and choice.reasons:
            refused = choice
    return refused or Choice([], task)
