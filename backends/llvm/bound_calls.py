"""Calls of kernels bound to the memory of their arrays; it is here without the compiler, for what only runs kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Slot:
    """Memory for an array: an argument or a constant, by number, or the workspace from a byte on."""

    kind: Literal["argument", "constant", "workspace"]
    number: int


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
