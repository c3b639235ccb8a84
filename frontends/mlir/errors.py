"""Errors of the import of MLIR: what cannot be imported, where it stands, and why."""

from __future__ import annotations

from ..errors import ProgramImportError


class MlirImportError(ProgramImportError):
    """A program cannot be imported; the text lists everything that stands in the way, with lines and operations."""


class UnsupportedOperation(Exception):
    """An operation cannot be converted; the text says why, without the operation."""
