"""Ensembles of trees as plain arrays: what a saved cost model keeps, and predicts with until it learns again.

A walk through the arrays of boosted trees adds the same numbers in the same order as scikit-learn's predictor, so
predictions are equal to the last bit, with any version of it. That predictor reads node arrays without looking at their
bounds: it is never given nodes from a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...dialects.cached_property import cached_property
from .plain_file import Fields, Plain, PlainFileError
from .protocol import Floats
from .tree_walk import add_leaves

Integers = npt.NDArray[np.int64]

BINS = 63
"""Values of a column that splits tell apart: a quarter of scikit-learn's usual 255, which take longer to learn from. A
choice: holes have some ten choices each."""

_MOST_TREES = 1000
"""Of a forest in a file; those of cost models have 480 at most."""
_MOST_NODES = 1024
"""Of a tree in a file; those of a cost model have 39, and of randomised ones twice as many as samples, 600 at most."""


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
        nodes = np.concatenate(trees)
        return cls._of_parts(
            float(np.asarray(model._baseline_prediction).reshape(())),
            [len(tree) for tree in trees],
            nodes["is_leaf"].astype(bool),
            nodes["feature_idx"],
            nodes["num_threshold"],
            nodes["left"],
            nodes["right"],
            nodes["value"],
        )

    @classmethod
    def of_mean(cls, trees: Sequence[Any]) -> Forest:
        """The mean of trees of scikit-learn's (`sklearn.tree`)."""
        feature, left, right, threshold, value = (
            np.concatenate([getattr(tree, name) for tree in trees])
            for name in ("feature", "children_left", "children_right", "threshold", "value")
        )
        sizes = [tree.node_count for tree in trees]
        return cls._of_parts(0.0, sizes, left < 0, feature, threshold, left, right, value[:, 0, 0] / len(trees))

    @classmethod
    def _of_parts(
        cls,
        baseline: float,
        sizes: list[int],
        leaf: Any,
        feature: Any,
        threshold: Any,
        left: Any,
        right: Any,
        value: Any,
    ) -> Forest:
        """Put the trees of so many nodes in a row, whose branches are counted from each tree's first node."""
        starts = np.cumsum([0, *sizes])[:-1].astype(np.int64)
        first, own = np.repeat(starts, sizes), np.arange(sum(sizes), dtype=np.int64)
        return cls(
            baseline,
            starts,
            np.where(leaf, 0, feature).astype(np.int64),
            np.where(leaf, 0.0, threshold),
            np.where(leaf, own, first + left).astype(np.int64),
            np.where(leaf, own, first + right).astype(np.int64),
            np.where(leaf, value, 0.0),
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
        sums = np.full(len(features), self.baseline)
        add_leaves(sums, features, self.starts, self.feature, self.threshold, self._children, self.value)
        return sums

    @cached_property
    def _children(self) -> Integers:
        """The right one and the left one of each node, in a row."""
        return np.stack([self.right, self.left], axis=1).ravel()

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
