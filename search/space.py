"""From a workload to its sketches: every rule in turn on every draft, and what came out made ready for a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp

from ..dialects.target import Target
from .sketch import Columns, CostEstimate, Draft, Sketch
from .sketch_rules import SketchRule, sketch_rules
from .tile_model import FEATURES


def generate_sketches(module: ModuleOp, target: Target, rules: Sequence[SketchRule] | None = None) -> list[Sketch]:
    """The sketches of a te-level module for a target; the first one's defaults are the default schedule.

    `rules` run in the order given, those not for the target left out; without, all there are. ValueError where a rule
    leaves nothing to go on with.
    """
    drafts = [Draft.of(module)]
    for rule in sketch_rules() if rules is None else rules:
        if rule.when(target):
            drafts = [grown for draft in drafts for grown in rule.apply(draft, target)]
            if not drafts:
                raise ValueError(f"sketch rule '{rule.name}' left no draft; return the one given where it has no use")
    distinct = {draft.template: draft for draft in drafts}
    return sorted(map(_finished, distinct.values()), key=_default_cost)


def _default_cost(sketch: Sketch) -> float:
    if sketch.prior is None:
        return 0.0
    return float(sketch.prior(sketch.columns(sketch.default.reshape(1, -1)))[0])


def _finished(draft: Draft) -> Sketch:
    sketch = Sketch(
        name="_".join(draft.names) or "plain",
        template=draft.template,
        holes=tuple(draft.holes),
        derived=tuple(draft.derived),
        limits=tuple(draft.limits),
        describe=_describe(draft.models),
        prior=_prior(draft.models) if draft.models else None,
    )
    return sketch if sketch.legal(sketch.default[None])[0] else _with_legal_defaults(sketch)


def _with_legal_defaults(sketch: Sketch) -> Sketch:
    """The sketch with the defaults that the prior likes best, where small extents put the usual ones out of limits."""
    rows = sketch.sample(np.random.default_rng(0), 512)
    rows = rows[sketch.legal(rows)]
    if not len(rows):
        return sketch
    assert sketch.prior is not None
    best = rows[int(np.argmin(sketch.prior(sketch.columns(rows))))]
    holes = tuple(replace(h, default=h.choices[i]) for h, i in zip(sketch.holes, best, strict=True))
    return replace(sketch, holes=holes)


def _describe(models: list[CostEstimate]) -> Callable[[Columns], npt.NDArray[np.float32]]:
    def features(columns: Columns) -> npt.NDArray[np.float32]:
        if not models:
            values = list(columns.values())
            logs = [np.log2(np.maximum(1, v)) for v in values][:FEATURES]
            padding = [np.zeros(len(values[0]) if values else 1)] * (FEATURES - len(logs))
            return np.stack([*logs, *padding], axis=1).astype(np.float32)
        total = models[0].features(columns)
        for model in models[1:]:
            total = np.concatenate([total, model.features(columns)], axis=1)
        return total

    return features


def _prior(models: list[CostEstimate]) -> Callable[[Columns], npt.NDArray[np.float64]]:
    def seconds(columns: Columns) -> npt.NDArray[np.float64]:
        return np.asarray(np.sum([m.seconds(columns) for m in models], axis=0))

    return seconds
