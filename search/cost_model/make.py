"""Cost models by name: new ones, and those whose state a file holds."""

from __future__ import annotations

from ...dialects.classic_words import instead_of
from ...dialects.plugins import COST_MODELS, PluginError, load_plugin, plugins, shown_plugin
from .linear import Linear
from .plain_file import Fields, PlainFileError
from .random_model import RandomModel
from .rank import RankTrees
from .roofline import Roofline
from .saved import SavedCostModel
from .trees import BoostedTrees

_KINDS: tuple[type[SavedCostModel], ...] = (BoostedTrees, RankTrees, Linear, Roofline, RandomModel)
MODELS = {kind.kind: kind for kind in _KINDS}
"""The cost models that come with loopwright, by name."""


def model_names() -> tuple[str, ...]:
    """The names of all cost models, those of other packages last; none of theirs is imported."""
    return (*MODELS, *sorted(plugins(COST_MODELS).keys() - MODELS.keys()))


def model_kind(name: str) -> type[SavedCostModel] | None:
    """The class of a cost model by its name, ours or another package's; None for no model's.

    PluginError where the package that adds it is broken.
    """
    point = plugins(COST_MODELS).get(name)
    if name in MODELS or point is None:
        return MODELS.get(name)
    found = load_plugin(point)
    if not (isinstance(found, type) and issubclass(found, SavedCostModel) and found.kind == name):
        wanted = f"a class that derives from lw.SavedCostModel, with kind = '{name}'"
        raise PluginError(f"{shown_plugin(point)} must be {wanted}")
    return found


def make_model(name: str, seed: int = 0) -> SavedCostModel:
    """Return a new cost model `name`, one of `model_names`; ValueError for another name."""
    found = model_kind(name)
    if found is None:
        raise ValueError(f"unknown cost model {name!r}; there are: {', '.join(model_names())}{instead_of(name)}")
    return found.seeded(seed)


def model_of(fields: Fields, *more: type[SavedCostModel]) -> SavedCostModel:
    """The model that `as_state` made plain, of any name or of `more` kinds; PlainFileError where it is none."""
    name = fields.text("kind")
    try:
        found = {kind.kind: kind for kind in more}.get(name) or model_kind(name)
    except PluginError as error:
        raise PlainFileError(str(error)) from None
    if found is None:
        raise PlainFileError(f"'kind' must be one of {', '.join((*model_names(), *(kind.kind for kind in more)))}")
    return found.read(fields.part("state"))
