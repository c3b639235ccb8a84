"""Kinds of targets that other packages add: the fields that a target of one has by default, and its backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .plugins import TARGETS, PluginError, load_plugin, plugins, shown_plugin


@dataclass(frozen=True)
class TargetKind:
    """A kind of target of another package, which an entry point of the group `loopwright.targets` names.

    The entry point's name is the word that a target's text begins with; it is letters, digits, `_` and `-`.
    """

    backend: str
    """The dotted path of the backend's module (`lw.Backend`), which is imported when a kernel is built or run."""
    is_gpu: bool = False
    """True where kernels are launches of blocks of threads; else they are loops, vectors and parallel loops."""
    options: Mapping[str, int | str] = field(default_factory=dict)
    """Fields of `lw.Target` that are not at their defaults, as `{"vector_bytes": 16}`."""


def installed_kinds() -> tuple[str, ...]:
    """The names of the kinds that packages add; none is imported."""
    return tuple(sorted(plugins(TARGETS)))


def installed_kind(name: str) -> TargetKind | None:
    """The kind of a name, None where no package adds it; PluginError where the package is broken."""
    point = plugins(TARGETS).get(name)
    if point is None:
        return None
    found = load_plugin(point)
    if not isinstance(found, TargetKind):
        raise PluginError(f"{shown_plugin(point)} must be a lw.TargetKind, it is a {type(found).__name__}")
    return found
