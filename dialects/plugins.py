"""Additions of installed packages: entry points by name, loaded when asked for, and named where they are broken."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

from .caller import warn_caller
from .errors import Error
from .shown_text import one_line

UNIVERSES = "xdsl.universe"
"""The group of xDSL's universes, whose passes that are primitives are primitives here."""
SKETCH_RULES = "loopwright.sketch_rules"
"""Each a `lw.SketchRule`, or a class of one."""
COST_MODELS = "loopwright.cost_models"
"""Each a class of a cost model, by the name that `TuningOptions(cost_model=...)` takes."""
TARGETS = "loopwright.targets"
"""Each a `lw.TargetKind`, by the word that a target's text begins with."""

_OWN = __name__.partition(".")[0]
_LONGEST_REASON = 200


class PluginError(Error, ValueError):
    """An addition of an installed package is broken; the sentence names the package and the reason."""


class PluginWarning(UserWarning):
    """An addition of an installed package is broken, and left out."""


def plugins(group: str) -> Mapping[str, EntryPoint]:
    """The entry points of a group by name, without our own and xDSL's; nothing is imported.

    Of two of one name the one on the earlier entry of `sys.path` counts, as of modules.
    """
    return _found(group, tuple(sys.path))


@lru_cache(maxsize=32)
def _found(group: str, path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        if point.module.partition(".")[0] not in (_OWN, "xdsl"):
            found.setdefault(point.name, point)
    return found


@lru_cache(maxsize=256)
def load_plugin(point: EntryPoint) -> object:
    """Import what an entry point names; PluginError where its package cannot be imported, or has no such name."""
    try:
        return point.load()
    except Exception as error:  # code of others
        reason = one_line(f"{type(error).__name__}: {error}", _LONGEST_REASON)
        raise PluginError(f"{shown_plugin(point)} cannot be loaded ({reason}): repair or uninstall it") from None


def shown_plugin(point: EntryPoint) -> str:
    """An entry point in words, with its package, for a sentence."""
    package = f" of package {point.dist.name} {point.dist.version}" if point.dist is not None else ""
    return f"'{point.name}' in '{point.group}'{package}"


def leave_out(error: PluginError) -> None:
    """Warn, once a process, that what a package adds is left out, as the error says."""
    _warn(str(error))


@lru_cache(maxsize=256)
def _warn(text: str) -> None:
    warn_caller(f"{text}; it is left out", PluginWarning)
