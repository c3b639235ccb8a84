"""Assertions of the cf dialect, which compute nothing."""

from __future__ import annotations

from ..discovery import Converter
from ..node import Node


@Converter
def _assertion(node: Node) -> None:
    return None


globals()["assert"] = _assertion
