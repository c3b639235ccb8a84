"""Cost models that files can hold: a kind, and a state as plain data."""

from __future__ import annotations

import os
from typing import ClassVar, Self

from ..features.catalogue import PRIOR, names
from .plain_file import Fields, Plain, write_plain
from .protocol import CostModel

MAGIC = "loopwright-cost-model-2"
"""Format 1 was a pickle, which runs what it names; it is not read."""


class SavedCostModel(CostModel):
    """A cost model that files can hold: its kind, its state as plain data, and the model that a state stands for."""

    kind: ClassVar[str] = ""

    @classmethod
    def seeded(cls, seed: int) -> Self:
        """A new model; where it draws nothing at random, the seed does not matter."""
        return cls()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model, trained or not, for `load_cost_model`; OSError where it cannot be written.

        TypeError for a subclass that has no kind of its own: it would come back as what it derives from.
        """
        write_plain(path, MAGIC, {"features": known_features(), **as_state(self)})

    def state(self) -> dict[str, Plain]:
        """Return the model's state as plain data; nothing where it is made of constants."""
        return {}

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """The model in a file; PlainFileError names a value that no saved model has."""
        return cls()


def as_state(model: CostModel) -> dict[str, Plain]:
    """A model of a known kind as plain data, which `make.model_of` reads."""
    if not isinstance(model, SavedCostModel) or "kind" not in vars(type(model)):
        raise TypeError(f"files hold the cost models of loopwright, not {type(model).__name__}")
    return {"kind": model.kind, "state": model.state()}


def known_features() -> list[str]:
    """The meaning of each feature; a model is of no use for others."""
    return [*names(), PRIOR.name]
