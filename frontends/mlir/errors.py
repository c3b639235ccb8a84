"""Errors of the import of MLIR: what cannot be imported, where it stands, and why."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.errors import Error


class MlirImportError(Error, ValueError):
    """A program cannot be imported; the text lists everything that stands in the way, with lines and operations."""

    def __init__(self, program: str, reasons: Sequence[str]) -> None:
        self.reasons = tuple(reasons)
        text = f"{program} cannot be imported"
        if len(reasons) == 1:
            super().__init__(f"{text}: {reasons[0]}")
        else:
            super().__init__(f"{text}, for {len(reasons)} reasons:" + "".join(f"\n  {r}" for r in reasons))


class UnsupportedOperation(Exception):
    """An operation cannot be converted; the text says why, without the operation."""
