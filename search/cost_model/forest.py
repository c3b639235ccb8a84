"""Boosted trees as plain arrays: what a saved cost model keeps, and predicts with until it learns again.

A walk through the arrays adds the same numbers in the same order as scikit-learn's predictor, so predictions are equal
to the last bit, with any version of it. That predictor reads node arrays without looking at their bounds: it is never
given nodes from a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .plain_file import Fields, Plain, PlainFileError
from .protocol import Floats

Integers = npt.NDArray[np.int64]

_ROWS = 4096
"""Rows that are walked at once: 4096 rows and 50 trees are 1.6 MB of positions."""
_MOST_TREES = 1000
_MOST_NODES = 256
"""Of a tree in a file; those of a cost model have 39."""


@dataclass(frozen=True)
class Forest:
    """Nodes of all trees in a row: `feature`, `threshold`, `left`, `right`, `value`; `starts` has each tree's first.

    A row goes left where its feature is at most the threshold. A leaf is its own left and right.
    """

    baseline: float
    starts: Integers
    feature: Integers
    threshold: Floats
    left: Integers
    right: Integers
    value: Floats

    @classmethod
    def of(cls, model: Any) -> Forest:
        """The trees of a fitted `HistGradientBoostingRegressor`, or the forest itself."""
        if isinstance(model, Forest):
            return model
        trees = [predictor.nodes for stage in model._predictors for predictor in stage]
        starts = np.cumsum([0, *(len(t) for t in trees)])[:-1].astype(np.int64)
        nodes = np.concatenate(trees)
        first = np.repeat(starts, [len(t) for t in trees])
        own = np.arange(len(nodes), dtype=np.int64)
        leaf = nodes["is_leaf"].astype(bool)
        return cls(
            float(np.asarray(model._baseline_prediction).reshape(())),
            starts,
            np.where(leaf, 0, nodes["feature_idx"]).astype(np.int64),
            np.where(leaf, 0.0, nodes["num_threshold"]),
            np.where(leaf, own, first + nodes["left"]).astype(np.int64),
            np.where(leaf, own, first + nodes["right"]).astype(np.int64),
            np.where(leaf, nodes["value"], 0.0),
        )

    @classmethod
    def mean(cls, forests: Sequence[Forest]) -> Forest:
        """One forest that predicts the mean of some."""
        starts = np.cumsum([0, *(len(forest.feature) for forest in forests)])

        def joined(name: str, shifted: bool = False) -> npt.NDArray[Any]:
            parts = [getattr(forest, name) for forest in forests]
            return np.concatenate([part + start * shifted for part, start in zip(parts, starts, strict=False)])

        return cls(
            float(np.mean([forest.baseline for forest in forests])),
            joined("starts", shifted=True),
            joined("feature"),
            joined("threshold"),
            joined("left", shifted=True),
            joined("right", shifted=True),
            joined("value") / len(forests),
        )

    def predict(self, features: Floats) -> npt.NDArray[np.float64]:
        """Return the sum of all trees for features `(n, f)`, `(n,)`."""
        result = np.full(len(features), self.baseline)
        for start in range(0, len(features), _ROWS):
            rows = slice(start, start + _ROWS)
            for values in self._leaves(features[rows]).T:
                result[rows] += values
        return result

    def _leaves(self, features: Floats) -> npt.NDArray[np.float64]:
        """The value of the leaf that each row reaches in each tree, `(n, trees)`."""
        at = np.broadcast_to(self.starts, (len(features), len(self.starts)))
        row = np.arange(len(features))[:, None]
        while True:
            goes_left = features[row, self.feature[at]] <= self.threshold[at]
            following = np.where(goes_left, self.left[at], self.right[at])
            if np.array_equal(following, at):
                return np.asarray(self.value[at])
            at = following

    def state(self) -> dict[str, Plain]:
        """The arrays, for a file."""
        return {
            "baseline": self.baseline,
            "starts": self.starts,
            "feature": self.feature,
            "threshold": self.threshold,
            "left": self.left,
            "right": self.right,
            "value": self.value,
        }

    @classmethod
    def read(cls, fields: Fields, width: int) -> Forest:
        """The forest in a file, over `width` features; PlainFileError where a walk through it could leave it."""
        baseline = fields.number("baseline")
        starts = fields.array("starts", "<i8", (-1,))
        feature = fields.array("feature", "<i8", (-1,))
        count = len(feature)
        threshold = fields.array("threshold", "<f8", (count,), finite=False)
        left, right = (fields.array(name, "<i8", (count,)) for name in ("left", "right"))
        value = fields.array("value", "<f8", (count,))
        forest = cls(baseline, starts, feature, threshold, left, right, value)
        forest._check(width)
        return forest

    def _check(self, width: int) -> None:
        count, own = len(self.feature), np.arange(len(self.feature))
        sizes = np.diff(self.starts, append=count)
        if len(sizes) > _MOST_TREES or (len(sizes) and self.starts[0] != 0) or (count and not len(sizes)):
            raise PlainFileError(f"its trees are at most {_MOST_TREES}, and begin with the first node")
        if ((sizes < 1) | (sizes > _MOST_NODES)).any():
            raise PlainFileError(f"each of its trees has from 1 to {_MOST_NODES} nodes")
        end = np.repeat(self.starts + sizes, sizes)
        leaf = (self.left == own) & (self.right == own)
        inner = (self.left > own) & (self.left < end) & (self.right > own) & (self.right < end)
        if not (leaf | inner).all():
            raise PlainFileError("a node of its trees is no leaf, and its branches are not behind it in its tree")
        if ((self.feature < 0) | (self.feature >= width)).any() or np.isnan(self.threshold).any():
            raise PlainFileError(f"a node of its trees asks for none of its {width} features, or is not a number")
