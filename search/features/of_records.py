"""Features of measured candidates, from what a record says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp

from ...dialects.target import Target
from ...passes.parametric.read import nest_of_candidate
from ...passes.pipeline_text import apply_schedule
from .catalogue import names
from .extract import features_of

Features = npt.NDArray[np.float32]


class FeatureSpace(Protocol):
    """The candidates of a sketch, as the search has them."""

    @property
    def name(self) -> str: ...

    @property
    def n_decisions(self) -> int: ...

    def features(self, rows: npt.NDArray[np.int64], /) -> npt.NDArray[np.float32]: ...

    def schedule(self, row: npt.NDArray[np.int64], /) -> str: ...


class Measured(Protocol):
    """The fields of a record that features are computed from."""

    @property
    def sketch(self) -> str: ...

    @property
    def decisions(self) -> Sequence[int]: ...

    @property
    def schedule(self) -> str: ...


def features_of_schedule(module: ModuleOp, target: Target, schedule: str) -> Features:
    """The features `(len(catalogue()) + 1,)` of a schedule, read from the IR it makes; the prior is missing (NaN).

    ScheduleError where the workload does not allow the schedule, ValueError where it is none.
    """
    copy = module.clone()
    apply_schedule(copy, schedule)
    sizes = features_of(nest_of_candidate(copy, target))
    values = [size for size in sizes if isinstance(size, int | float)]
    assert len(values) == len(sizes), "the IR of one candidate has numbers only"
    return np.array([*values, np.nan], dtype=np.float32)


class RecordFeatures:
    """Features of a workload's records: of a sketch's candidates many at once, of others one by one from their IR.

    What was computed is kept.
    """

    def __init__(self, module: ModuleOp, target: Target, spaces: Sequence[FeatureSpace]) -> None:
        self._module = module
        self._target = target
        self._spaces: Mapping[str, FeatureSpace] = {space.name: space for space in spaces}
        self._known: dict[str, Features] = {}

    def __call__(self, records: Sequence[Measured]) -> Features:
        """The features `(n, len(catalogue()) + 1)` of records; ScheduleError for a schedule that is not legal here."""
        groups: dict[str, list[Measured]] = {}
        for record in records:
            if record.schedule not in self._known:
                groups.setdefault(record.sketch, []).append(record)
        for sketch, group in groups.items():
            self._add(self._spaces.get(sketch), group)
        if not records:
            return np.zeros((0, len(names()) + 1), dtype=np.float32)
        return np.stack([self._known[r.schedule] for r in records])

    def is_current(self, record: Measured) -> bool:
        """True where a record's decisions still say what its schedule says: then its features cost next to nothing."""
        space = self._spaces.get(record.sketch)
        return space is not None and means(space, record)

    def _add(self, space: FeatureSpace | None, records: Sequence[Measured]) -> None:
        alike = [r for r in records if space is not None and means(space, r)]
        if space is not None and alike:
            rows = np.array([r.decisions for r in alike], dtype=np.int64).reshape(len(alike), -1)
            for record, features in zip(alike, space.features(rows), strict=True):
                self._known[record.schedule] = features
        for record in records:
            if record.schedule not in self._known:
                self._known[record.schedule] = features_of_schedule(self._module, self._target, record.schedule)


def means(space: FeatureSpace, record: Measured) -> bool:
    """True where the decisions still say what the schedule says."""
    if len(record.decisions) != space.n_decisions:
        return False
    try:
        return space.schedule(np.array(record.decisions, dtype=np.int64)) == record.schedule
    except IndexError:
        return False
