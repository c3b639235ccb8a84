"""Calls of kernels bound to the memory of their arrays; it is here without the compiler, for what only runs kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Slot:
    """Memory for an array: a constant, an argument from its byte `start` on, or the workspace from a byte on."""

    kind: Literal["argument", "constant", "workspace"]
    number: int
    start: int = 0


@dataclass(frozen=True)
class Call:
    """A call of a kernel, by number, on its arguments and then its workspace, if it has one."""

    kernel: int
    slots: tuple[Slot, ...]


@dataclass(frozen=True)
class Copy:
    """A copy of so many bytes."""

    source: Slot
    target: Slot
    nbytes: int
