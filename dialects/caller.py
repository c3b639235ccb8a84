"""Warnings that point at the program that calls this package."""

from __future__ import annotations

import functools
import sys
import warnings

_PACKAGE = __name__.partition(".")[0] + "."
_BETWEEN = (_PACKAGE, f"{functools.__name__}.")
"""Modules of no caller: a cached property of the package is called by the standard library."""


def warn_caller(text: str, category: type[Warning]) -> None:
    """Warn at the innermost line outside of the package: the one that whoever reads the warning can change.

    A count of frames, as `warnings.warn` takes it, is wrong as soon as a function comes between.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and f"{frame.f_globals.get('__name__', '')}.".startswith(_BETWEEN):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
