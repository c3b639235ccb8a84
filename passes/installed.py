"""Primitives of installed packages: the passes of their xDSL universes that are `lw.Primitive`s, found by pass name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from importlib.metadata import EntryPoint
from typing import Any

from xdsl.passes import ModulePass

from ..dialects.plugins import UNIVERSES, PluginError, leave_out, load_plugin, plugins, shown_plugin
from .discovery import Factories, pass_factories
from .primitive import Primitive


def installed_passes() -> Factories:
    """The passes of other packages, by name; asking for one that is no primitive is a PluginError.

    A package that is broken is left out with a warning. Names of ours are ours, and of two packages with one name the
    first in their order counts, though stock `xdsl-opt` then refuses both.
    """
    found: dict[str, Callable[[], type[ModulePass]]] = {}
    for _, point in sorted(plugins(UNIVERSES).items()):
        for name, factory in _passes_of(point).items():
            if name not in pass_factories():
                found.setdefault(name, partial(_primitive, point, name, factory))
    return found


def installed_primitive(name: str) -> type[Primitive[Any]] | None:
    """The primitive that a pass of another package is, by its name in a pipeline; None where no package has one."""
    factory = installed_passes().get(name)
    found = None if factory is None else factory()
    return found if found is not None and issubclass(found, Primitive) else None


def installed_primitives() -> dict[str, type[Primitive[Any]]]:
    """All primitives of other packages, by name; their other passes are none of a schedule's."""
    found: dict[str, type[Primitive[Any]]] = {}
    for name in installed_passes():
        try:
            kind = installed_primitive(name)
        except NotPrimitive:
            continue
        except PluginError as error:
            leave_out(error)
            continue
        if kind is not None:
            found[name] = kind
    return found


class NotPrimitive(PluginError):
    """A pass of another package rewrites something, but is no step of a schedule."""


def _passes_of(point: EntryPoint) -> Mapping[str, Callable[[], object]]:
    try:
        found = getattr(load_plugin(point), "all_passes", None)
        if isinstance(found, Mapping):
            return found
        raise PluginError(f"{shown_plugin(point)} must be an xdsl.universe.Universe")
    except PluginError as error:
        leave_out(error)
        return {}


@lru_cache(maxsize=256)
def _primitive(point: EntryPoint, name: str, factory: Callable[[], object]) -> type[Primitive[Any]]:
    """Import a pass; PluginError where that fails, NotPrimitive where it is another kind of pass."""
    try:
        found = factory()
    except Exception as error:  # code of others
        raise PluginError(f"pass '{name}' of {shown_plugin(point)} cannot be loaded: {error}") from None
    if not (isinstance(found, type) and issubclass(found, Primitive)):
        raise NotPrimitive(f"pass '{name}' of {shown_plugin(point)} is no schedule primitive (lw.Primitive)")
    if found.name != name:
        raise PluginError(f"pass '{name}' of {shown_plugin(point)} calls itself '{found.name}': a schedule prints that")
    return found
