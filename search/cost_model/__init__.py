"""Cost models: from the features of candidates to how fast they will be, learned from what was measured."""

from .linear import Linear
from .make import MODELS, make_model
from .pretrained import Pretrained
from .protocol import CostModel, Floats, Tasks, relative_speed
from .random_model import RandomModel
from .rank import RankTrees
from .roofline import Roofline
from .store import CostModelError, load_cost_model
from .trees import BoostedTrees

__all__ = [
    "MODELS",
    "BoostedTrees",
    "CostModel",
    "CostModelError",
    "Floats",
    "Linear",
    "Pretrained",
    "RandomModel",
    "RankTrees",
    "Roofline",
    "Tasks",
    "load_cost_model",
    "make_model",
    "relative_speed",
]
