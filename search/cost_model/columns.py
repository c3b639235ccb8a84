"""Selection of the columns of a feature matrix in which samples differ; learners skip the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .protocol import Floats

ENOUGH = 2000
"""Samples that tell whether two columns are alike. A choice: columns that differ in one sample of a thousand are told
apart mostly."""


def distinct_columns(features: Floats) -> npt.NDArray[np.int64]:
    """Return the columns that vary, one of those that order the samples alike, first ones first.

    Trees see the order of values only. Of a single task's features, more than half are constant or such copies.
    """
    features = features[:: -(-len(features) // ENOUGH) or 1]
    kept: dict[bytes, int] = {}
    for column in range(features.shape[1]):
        values, ranks = np.unique(features[:, column], return_inverse=True)
        if len(values) < 2:
            continue
        ranks = ranks.astype(np.int32)
        if ranks[0] * 2 > len(values) - 1 or (ranks[0] * 2 == len(values) - 1 and _falls(ranks)):
            ranks = len(values) - 1 - ranks  # the same order backwards splits the samples in the same ways
        kept.setdefault(ranks.tobytes(), column)
    return np.array(sorted(kept.values()), dtype=np.int64)


def _falls(ranks: npt.NDArray[np.signedinteger[Any]]) -> bool:
    """True where the first sample that is not in the middle is above it."""
    off = ranks[ranks * 2 != ranks.max()]
    return bool(len(off)) and bool(off[0] * 2 > ranks.max())
