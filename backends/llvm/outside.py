"""Reports of kernels with bounds checks: their accesses, and the error for one outside of its buffer."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from ...dialects.errors import Error


@dataclass(frozen=True)
class CheckedAccess:
    """One operation of a kernel that touches memory: `kind` is load, store, gather or scatter."""

    kind: str
    buffer: str
    extent: int
    lanes: int

    def __str__(self) -> str:
        return self.kind if self.lanes == 1 else f"{self.kind} of {self.lanes} lanes"


class OutsideBufferError(Error):
    """A kernel that checks its addresses was about to touch an element that a buffer does not have; it stopped there.

    `access` says which operation, `number` its position among the kernel's accesses from 1, `index` the element.
    """

    def __init__(self, kernel: str, access: CheckedAccess, number: int, index: int) -> None:
        self.access = access
        self.number = number
        self.index = index
        super().__init__(
            f"kernel {kernel}: access {number}, a {access}, touches element {index} of buffer '{access.buffer}', "
            f"which has {access.extent} elements"
        )


class TrapRecord:
    """The place where a loaded kernel writes its first access out of bounds: its number, then the element."""

    def __init__(self, kernel: str, accesses: Sequence[CheckedAccess], address: int) -> None:
        self._kernel = kernel
        self._accesses = accesses
        self._values = (ctypes.c_int64 * 2).from_address(address)

    def check(self) -> None:
        """Raise OutsideBufferError for what the run that just ended recorded, and forget it."""
        number, index = self._values
        if number:
            self._values[0] = 0
            raise OutsideBufferError(self._kernel, self._accesses[number - 1], number, index)
