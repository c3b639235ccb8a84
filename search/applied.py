"""The histories of records that are applied around a point of a program."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

APPLIED: ContextVar[tuple[Any, ...]] = ContextVar("APPLIED", default=())
"""Outermost first; each thread and task has its own."""
