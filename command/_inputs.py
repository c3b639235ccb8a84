"""Numbers and arrays that a command is given or draws."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._errors import UserError

if TYPE_CHECKING:
    from ..graph.runtime.plan import Port


def whole_from(least: int) -> Callable[[str], int]:
    """Return what parses a whole number of at least so many, for argparse."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit()) or int(text) < least:
            raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, got '{text}'")
        return int(text)

    return parse


positive = whole_from(1)


def file_name(text: str) -> Path:
    """Parse the name of a file, for argparse."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"must name a file, got '{text}'")
    return Path(text)


def from_zero(text: str) -> float:
    """Parse a length of time of at least 0, for argparse."""
    value = _number(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number of at least 0, got '{text}'")
    return value


def seconds(text: str) -> float:
    """Parse seconds above 0, for argparse."""
    value = _number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be seconds above 0, got '{text}'")
    return value


def _number(text: str) -> float:
    """The number that a text is; not a number where it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def cost_model(text: str) -> str:
    """Parse the name of a cost model, for argparse."""
    from ..search.cost_model.make import make_model

    return _known_to(make_model, text)


def strategy(text: str) -> str:
    """Parse the name of a search strategy, for argparse."""
    from ..search.strategies.make import strategy_maker

    return _known_to(strategy_maker, text)


def tuner(text: str) -> str:
    """Parse the name of a tuner, for argparse."""
    from ..search.tuners.names import tuner_class

    return _known_to(tuner_class, text)


def _known_to(find: Callable[[str], object], text: str) -> str:
    """The name, where `find` knows it; its ValueError as argparse's otherwise."""
    try:
        find(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def read_arrays(texts: Sequence[str], flag: str) -> dict[str, Any]:
    """Read the arrays of a flag's `NAME=FILE.npy`, by name; UserError where one cannot be read."""
    import numpy as np

    found = {}
    for text in texts:
        name, equals, path = text.rpartition("=")
        if not equals or not name:
            raise UserError(f"{flag} takes NAME=FILE.npy, got '{text}'")
        try:
            found[name] = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            why = getattr(error, "strerror", None) or "it holds no array that NumPy saved (.npy)"
            raise UserError(f"cannot read {path}: {why}") from None
    return found


def drawn(ports: Iterable[Port], seed: int) -> dict[str, Any]:
    """Random values for inputs: normal for floating point, 0 and 1 for others."""
    import numpy as np

    rng: Any = np.random.default_rng(seed)
    found = {}
    for port in ports:
        values = rng.standard_normal(port.shape) if "float" in port.dtype else rng.integers(0, 2, port.shape)
        found[port.name] = np.asarray(values).astype(port.dtype)
    return found
