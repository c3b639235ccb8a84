"""Permutation importance of decisions and features: how much worse a model predicts when one is shuffled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cost_model.threads import at_most
from ..features.of_records import means
from ..records.file import Record
from .group import RecordGroup

FEWEST = 16
"""Trials below which nothing can be said."""

Importance = list[tuple[str, float]]


def decision_importance(group: RecordGroup) -> tuple[str, Importance]:
    """The sketch with the most trials, and its decisions by how much they mattered; empty with too few trials."""
    counts = Counter(r.sketch for r in group.right if r.decisions)
    if not counts:
        return "", []
    sketch = counts.most_common(1)[0][0]
    chosen = [r for r in group.right if r.sketch == sketch and r.decisions]
    width = Counter(len(r.decisions) for r in chosen).most_common(1)[0][0]
    chosen = [r for r in chosen if len(r.decisions) == width]
    rows = np.array([r.decisions for r in chosen], dtype=np.float64)
    return sketch, _importance(rows, decision_names(group, chosen[0]), chosen)


def feature_importance(group: RecordGroup) -> Importance:
    """The cost model's features by how much they mattered; empty where they, or their names, are not at hand."""
    if group.task is None:
        return []
    sketches = {s.name: s for s in group.task.sketches}
    rows: list[npt.NDArray[np.float64]] = []
    chosen: list[Record] = []
    names: list[str] = []
    for record in group.right:
        sketch = sketches.get(record.sketch)
        names = names or list(getattr(sketch, "feature_names", None) or ())
        if sketch is None or not names or not means(sketch, record):
            continue
        row = np.array([record.decisions], dtype=np.int64)
        if sketch.legal(row)[0]:
            rows.append(np.asarray(sketch.features(row)[0], dtype=np.float64))
            chosen.append(record)
    if not rows or any(len(row) != len(names) for row in rows):
        return []
    return _importance(np.stack(rows), names, chosen)


def decision_names(group: RecordGroup, record: Record) -> list[str]:
    """The names of the decisions of a record: knobs of its template, holes of its sketch, else numbers."""
    knobs = record.template.get("config") if record.template else None
    if isinstance(knobs, dict) and len(knobs) == len(record.decisions):
        return list(knobs)
    if group.task is not None:
        for sketch in group.task.sketches:
            if sketch.name == record.sketch and sketch.n_decisions == len(record.decisions):
                return [hole.name for hole in sketch.holes]
    return [f"decision {n}" for n in range(len(record.decisions))]


def _importance(rows: npt.NDArray[np.float64], names: Sequence[str], records: Sequence[Record]) -> Importance:
    """Names with their share of the whole, the largest first; those without any are left out."""
    if len(rows) < FEWEST:
        return []
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.inspection import permutation_importance

    rows = np.nan_to_num(rows, nan=0.0, posinf=1e30, neginf=-1e30)
    values = np.log2([r.time_s for r in records])
    with at_most(1):
        model = HistGradientBoostingRegressor(max_iter=40, min_samples_leaf=2, max_leaf_nodes=8, random_state=0)
        model.fit(rows, values)
        varying = [n for n in range(rows.shape[1]) if np.ptp(rows[:, n]) > 0]
        found: Any = permutation_importance(model, rows, values, n_repeats=3, random_state=0)
    means = {names[n]: max(0.0, float(found.importances_mean[n])) for n in varying}
    total = sum(means.values())
    ranked = sorted(means.items(), key=lambda item: -item[1])
    return [(name, value / total) for name, value in ranked if total and value / total >= 0.005]
