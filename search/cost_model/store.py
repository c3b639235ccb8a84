"""Cost models in files: scikit-learn's own way of keeping estimators (joblib), with what they were made with."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..features.catalogue import PRIOR, names
from .protocol import CostModel

FORMAT = 1


class CostModelError(Exception):
    """A file of a cost model cannot be used; the sentence says why."""


@dataclass(frozen=True)
class _Origin:
    """What a model depends on: another scikit-learn may read its trees wrongly, other features mean other things."""

    format: int
    sklearn: str
    features: tuple[str, ...]


def _origin() -> _Origin:
    import sklearn

    return _Origin(FORMAT, sklearn.__version__, (*names(), PRIOR.name))


class Saved:
    """A cost model that can be written to a file."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model, trained or not, for `load_cost_model`; OSError where it cannot be written."""
        save_cost_model(self, path)


def save_cost_model(model: object, path: str | os.PathLike[str]) -> None:
    """Write a model, trained or not, to a file; OSError where it cannot be written."""
    import joblib  # type: ignore[import-untyped, unused-ignore]

    part = Path(f"{os.fspath(path)}.part")
    joblib.dump({"origin": asdict(_origin()), "model": model}, part, compress=3)
    part.replace(path)


def load_cost_model(path: str | os.PathLike[str]) -> CostModel:
    """Read a model that `save_cost_model` wrote, for `TuningOptions(cost_model=...)`.

    Loading runs code that the file names, so load only files of your own. CostModelError where the file is none, or is
    from another scikit-learn or for other features; OSError where it cannot be read.
    """
    import joblib  # type: ignore[import-untyped, unused-ignore]

    shown = os.fspath(path)
    with open(path, "rb"):
        pass
    try:
        found: Any = joblib.load(path)
    except Exception as error:  # what unpickling strange bytes raises is anything
        raise CostModelError(f"{shown} is no cost model: {type(error).__name__}: {error}") from error
    if not isinstance(found, dict) or found.keys() != {"origin", "model"}:
        raise CostModelError(f"{shown} is no cost model")
    known, own = found["origin"], asdict(_origin())
    for key, what in (("format", "file format"), ("sklearn", "scikit-learn"), ("features", "features")):
        if known.get(key) != own[key]:
            detail = "" if key == "features" else f" {known.get(key)}, here is {own[key]}"
            raise CostModelError(f"{shown} was made with other {what}{detail}; train it again from the records")
    model: CostModel = found["model"]
    return model
