"""Sketch rules that do not come with loopwright, known without loading those that do: a kept kernel asks for them."""

from __future__ import annotations

from typing import Any

from ...dialects.plugins import SKETCH_RULES, plugins

_REGISTERED: dict[str, Any] = {}
"""Filled by `register_sketch_rule`, by name."""


def registered_rules() -> dict[str, Any]:
    """The rules that this process has registered, by name, to be added to."""
    return _REGISTERED


def are_own_rules() -> bool:
    """True where all rules there are come with loopwright."""
    return not _REGISTERED and not plugins(SKETCH_RULES)
