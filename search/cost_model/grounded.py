"""A cost model that learns on top of what another one predicts."""

from __future__ import annotations

from typing import Self

import numpy as np

from .general import General
from .make import model_of
from .plain_file import Fields, Plain
from .protocol import CostModel, Floats, Tasks
from .saved import SavedCostModel, as_state


class Grounded(SavedCostModel):
    """A model for which the prediction of a general one is a feature more; before it has learned, that prediction.

    So a search is led from its first batch, and learns where the general model is wrong about its task.
    """

    kind = "grounded"
    ready = True

    def __init__(self, model: CostModel, ground: General) -> None:
        self.model = model
        self.ground = ground

    @property
    def learned(self) -> bool:
        """True where it predicts by what it was taught, and not as the general one."""
        return self.model.ready

    def fit(self, features: Floats, scores: Floats, tasks: Tasks | None = None) -> None:
        """Fit the model to the features and the prediction."""
        self.model.fit(self._wider(features), scores, tasks)

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return the model's prediction and spread, or the general one's while there is none."""
        return self.model.predict(self._wider(features)) if self.learned else self.ground.predict(features)

    def _wider(self, features: Floats) -> Floats:
        return np.column_stack([features, self.ground.predict(features)[0].astype(features.dtype)])

    def state(self) -> dict[str, Plain]:
        """Return the model's state as plain data, for a file."""
        return {"model": as_state(self.model), "ground": as_state(self.ground)}

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """The model in a file; PlainFileError where it is none."""
        return cls(model_of(fields.part("model")), General.read(fields.part("ground").part("state")))
