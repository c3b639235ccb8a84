"""A config without any record: what the template says with `fallback_split`, else the first legal one of a few."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .config import Config
from .knobs.knob import ConfigError

if TYPE_CHECKING:
    from .task import TemplateTask

_DRAWS = (64, 512, 4096)


def fallback_config(task: TemplateTask) -> Config:
    """A legal config, the same in every process; ConfigError where none was found.

    The template is called with `cfg.is_fallback`, where `cfg.fallback_split(name, [None, 8, 4])` and `cfg[name] = ...`
    choose. Where it chooses nothing, or what cannot be, the likeliest of some random configs is taken: on a GPU the
    one whose threads are nearest to 128 a block.
    """
    chosen = Config(task.config_space, np.zeros(task.config_space.n_decisions, dtype=np.int64), task.target)
    chosen.is_fallback = True
    if task.runs(chosen) and chosen.was_chosen and task.why_not(chosen) is None:
        return Config(task.config_space, chosen.row, task.target)
    rng = np.random.default_rng(0)
    for count in _DRAWS:
        rows = task.config_space.sample(rng, count)
        rows = rows[task.legal(rows)]
        if len(rows):
            return task.config(rows[int(np.argmin(task.estimate(rows)))])
    raise ConfigError(f"template '{task.name}': no legal config was found for {task.target}")
