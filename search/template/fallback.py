"""A config without any record: what the template says with `fallback_split`, else the first legal one of a few."""

from __future__ import annotations

import numpy as np

from ..measure.measurement import headline
from .bound import BoundTemplate
from .config import Config
from .knobs.knob import ConfigError

_DRAWS = (64, 512, 4096)
"""Random configs among which a legal one is looked for, more of them where there is none. A choice."""


def fallback_config(task: BoundTemplate) -> Config:
    """A legal config, the same in every process; ConfigError where none was found.

    The template is called with `cfg.is_fallback`, where `cfg.fallback_split(name, [None, 8, 4])` and `cfg[name] = ...`
    choose. Where it chooses nothing, or what cannot be, the first legal one of some random configs is taken.
    """
    return explained_fallback(task)[0]


def explained_fallback(task: BoundTemplate) -> tuple[Config, str | None]:
    """The fallback, and why it is not what the template chooses, if it chooses something that cannot be."""
    chosen = Config(task.config_space, np.zeros(task.config_space.n_decisions, dtype=np.int64), task.target)
    chosen.is_fallback = True
    refusal = task.refusal(chosen)
    if refusal is None and chosen.was_chosen:
        refusal = task.why_not(chosen)
        if refusal is None:
            return Config(task.config_space, chosen.row, task.target), None
    return _first_legal(task), headline(refusal) if refusal is not None else None


def _first_legal(task: BoundTemplate) -> Config:
    rng = np.random.default_rng(0)
    for count in _DRAWS:
        rows = task.config_space.sample(rng, count)
        rows = rows[task.legal(rows)]
        if len(rows):
            return task.config(rows[0])
    raise ConfigError(f"template '{task.name}': no legal config was found for {task.target}")
