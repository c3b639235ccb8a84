"""Cost models by name: new ones, and those whose state a file holds."""

from __future__ import annotations

from ...dialects.classic_words import instead_of
from .linear import Linear
from .plain_file import Fields, PlainFileError
from .rank import RankTrees
from .roofline import Roofline
from .saved import Saved
from .trees import BoostedTrees
from .unknowing import Unknowing

_KINDS: tuple[type[Saved], ...] = (BoostedTrees, RankTrees, Linear, Roofline, Unknowing)
MODELS = {kind.kind: kind for kind in _KINDS}


def make_model(name: str, seed: int = 0) -> Saved:
    """Return a new cost model `name`, one of `MODELS`; ValueError for another name."""
    if name not in MODELS:
        raise ValueError(f"unknown cost model {name!r}; there are: {', '.join(MODELS)}{instead_of(name)}")
    return MODELS[name].seeded(seed)


def model_of(fields: Fields, *more: type[Saved]) -> Saved:
    """The model that `as_state` made plain, of `MODELS` or `more` kinds; PlainFileError where it is none."""
    kinds = MODELS | {kind.kind: kind for kind in more}
    name = fields.text("kind")
    if name not in kinds:
        raise PlainFileError(f"'kind' must be one of {', '.join(kinds)}")
    return kinds[name].read(fields.part("state"))
