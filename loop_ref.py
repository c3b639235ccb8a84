"""Loops as a schedule hands them out: a name that knows a block below the loop."""

from __future__ import annotations


class LoopRef(str):
    """The name of a loop that also knows a block below it, so that `sch.parallel(loop)` is enough, and its extent."""

    block: str
    extent: int

    def __new__(cls, name: str, block: str, extent: int) -> LoopRef:
        self = super().__new__(cls, name)
        self.block = block
        self.extent = extent
        return self
