"""Warnings that point at the program that calls this package."""

from __future__ import annotations

import sys
import warnings

_PACKAGE = __name__.partition(".")[0] + "."


def warn_caller(text: str, category: type[Warning]) -> None:
    """Warn at the innermost line outside of the package: the one that whoever reads the warning can change.

    A count of frames, as `warnings.warn` takes it, is wrong as soon as a function comes between.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and f"{frame.f_globals.get('__name__', '')}.".startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
