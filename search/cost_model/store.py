"""Cost models read from files of plain data, which may be anybody's: all is checked before it is used."""

from __future__ import annotations

import os

from ...dialects.errors import Error
from .general import General
from .grounded import Grounded
from .make import model_of
from .plain_file import PlainFileError, read_plain
from .pretrained import Pretrained
from .saved import MAGIC, SavedCostModel, known_features

_PICKLES = (b"\x80", b"x\x01", b"x\x5e", b"x\x9c", b"x\xda", b"\x1f\x8b", b"ZF0x")
"""First bytes of pickles, plain and in joblib's wrappings."""


class CostModelError(Error):
    """A file of a cost model cannot be used; the sentence says why."""


def load_cost_model(path: str | os.PathLike[str]) -> SavedCostModel:
    """Read a model that its method `save` wrote, for `TuningOptions(cost_model=...)`; it predicts the same.

    A file holds numbers only, and all are checked, so it may come from anybody. CostModelError where it is none, is
    damaged, or is for other features; OSError where it cannot be read.
    """
    shown = os.fspath(path)
    try:
        fields = read_plain(path, MAGIC)
        by_name = fields.text("kind") == General.kind
        if by_name or fields.texts("features") == tuple(known_features()):
            return model_of(fields, Pretrained, General, Grounded)
    except PlainFileError as error:
        if _is_pickle(path):
            raise CostModelError(
                f"{shown} is a pickle, as earlier versions wrote, which could run anything: train the model again from "
                "the records (lw.train_cost_model)"
            ) from None
        raise CostModelError(f"{shown} is no cost model: {error}") from None
    raise CostModelError(f"{shown} was made with other features; train it again from the records")


def _is_pickle(path: str | os.PathLike[str]) -> bool:
    with open(path, "rb") as file:
        return file.read(4).startswith(_PICKLES)
