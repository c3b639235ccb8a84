"""Errors that front ends share: a program that cannot be imported, and all that stands in the way."""

from __future__ import annotations

from collections.abc import Sequence

from ..dialects.errors import Error


class ProgramImportError(Error, ValueError):
    """A program cannot be imported; the text lists all `reasons`, a line each where they are several."""

    def __init__(self, program: str, reasons: Sequence[str]) -> None:
        self.reasons = tuple(reasons)
        text = f"{program} cannot be imported"
        if len(reasons) == 1:
            super().__init__(f"{text}: {reasons[0]}")
        else:
            super().__init__(f"{text}, for {len(reasons)} reasons:" + "".join(f"\n  {r}" for r in reasons))
