"""Choice of a build's config: the best on record in the contexts around it, a pre-tuned one, or a fallback."""

from __future__ import annotations

from ...dialects.caller import warn_caller
from ..records.known import known_histories
from .bound import BoundTemplate
from .config import Config
from .fallback import explained_fallback

_warned: set[tuple[str, str]] = set()
"""Templates with their arguments, and targets, that this process has warned of."""


class FallbackWarning(UserWarning):
    """A template is built with a config that nobody measured."""


def best_config(task: BoundTemplate) -> Config:
    """The config of the innermost context that has one, else a pre-tuned one, else a fallback, with a warning once."""
    for known in known_histories():
        if (config := known.config(task)) is not None:
            return config
    chosen, refusal = explained_fallback(task)
    if (task.title, str(task.target)) not in _warned:
        _warned.add((task.title, str(task.target)))
        text = f"no record for template {task.title} on {task.target}: a config nobody measured is used"
        why = f", and not the one that the template chooses for that: {refusal}" if refusal is not None else ""
        warn_caller(text + why, FallbackWarning)
    return chosen
