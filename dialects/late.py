"""A module that is imported when a name of it is asked for, as whoever evaluates a type hint does."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LateModule:
    """A module in hints of types, in the place of one that type checkers alone import: `name` as in `import_module`."""

    def __init__(self, name: str, package: str | None = None) -> None:
        self._name, self._package = name, package

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name, self._package), name)
