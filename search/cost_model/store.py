"""Cost models in files of plain data: what each kind keeps, and what must hold of it before it is used."""

from __future__ import annotations

import os
from typing import ClassVar, Self, cast

from ..features.catalogue import PRIOR, names
from .plain_file import Fields, Plain, PlainFileError, read_plain, write_plain
from .protocol import CostModel

MAGIC = "loopwright-cost-model-2"
"""Format 1 was a pickle, which runs what it names; it is not read."""
_PICKLES = (b"\x80", b"x\x01", b"x\x5e", b"x\x9c", b"x\xda", b"\x1f\x8b", b"ZF0x")
"""How pickles begin, plain and in joblib's wrappings."""


class CostModelError(Exception):
    """A file of a cost model cannot be used; the sentence says why."""


class Saved:
    """A cost model that files can hold: its kind, its state as plain data, and the model that a state stands for."""

    kind: ClassVar[str] = ""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model, trained or not, for `load_cost_model`; OSError where it cannot be written."""
        save_cost_model(self, path)

    def state(self) -> dict[str, Plain]:
        """Return the model's state as plain data; nothing where it is made of constants."""
        return {}

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """The model in a file; PlainFileError names a value that no saved model has."""
        return cls()


def save_cost_model(model: object, path: str | os.PathLike[str]) -> None:
    """Write a model, trained or not, to a file; OSError where it cannot be written, TypeError for a model of others."""
    write_plain(path, MAGIC, {"features": _features(), **as_state(model)})


def as_state(model: object) -> dict[str, Plain]:
    """A model of one of the known kinds as plain data."""
    if not isinstance(model, Saved) or _kinds().get(model.kind) is not type(model):
        raise TypeError(f"files hold the cost models of loopwright ({', '.join(_kinds())}), not {type(model).__name__}")
    return {"kind": model.kind, "state": model.state()}


def load_cost_model(path: str | os.PathLike[str]) -> CostModel:
    """Read a model that `save_cost_model` wrote, for `TuningOptions(cost_model=...)`; it predicts the same.

    A file holds numbers only, and all are checked, so it may come from anybody. CostModelError where it is none, is
    damaged, or is for other features; OSError where it cannot be read.
    """
    shown = os.fspath(path)
    try:
        fields = read_plain(path, MAGIC)
        features = fields.texts("features")
        if features == tuple(_features()):
            return model_of(fields)
    except PlainFileError as error:
        if _is_pickle(path):
            raise CostModelError(
                f"{shown} is a pickle, as earlier versions wrote, which could run anything: train the model again from "
                "the records (lw.train_cost_model)"
            ) from None
        raise CostModelError(f"{shown} is no cost model: {error}") from None
    raise CostModelError(f"{shown} was made with other features; train it again from the records")


def model_of(fields: Fields) -> CostModel:
    """The model that `as_state` made plain; PlainFileError where it is none."""
    kinds = _kinds()
    kind = fields.text("kind")
    if kind not in kinds:
        raise PlainFileError(f"'kind' must be one of {', '.join(kinds)}")
    return cast(CostModel, kinds[kind].read(fields.part("state")))


def _features() -> list[str]:
    """The meaning of each feature; a model is of no use for others."""
    return [*names(), PRIOR.name]


def _kinds() -> dict[str, type[Saved]]:
    from .linear import Linear
    from .pretrained import Pretrained
    from .rank import RankTrees
    from .roofline import Roofline
    from .trees import BoostedTrees
    from .unknowing import Unknowing

    known: tuple[type[Saved], ...] = (BoostedTrees, RankTrees, Linear, Roofline, Unknowing, Pretrained)
    return {each.kind: each for each in known}


def _is_pickle(path: str | os.PathLike[str]) -> bool:
    with open(path, "rb") as file:
        return file.read(4).startswith(_PICKLES)
