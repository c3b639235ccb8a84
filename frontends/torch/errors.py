"""Errors of the import from PyTorch: what cannot be imported, and why."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ProgramImportError


class TorchImportError(ProgramImportError):
    """A program cannot be imported; the text lists everything that stands in the way, a line each where it is more."""

    def __init__(self, program: str, reasons: Sequence[str]) -> None:
        super().__init__(f"program '{program}'", reasons)


class UnsupportedNode(Exception):
    """A node cannot be converted; the text says why, without the node."""
