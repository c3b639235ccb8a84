"""Objects on machine code of this process, or memory of a device: not pickled, and shared by their copies."""

from __future__ import annotations

from typing import Any, NoReturn, Self


class OfThisProcess:
    """Refused by pickle, and by copy, in a sentence."""

    _refused = "pickled or copied"

    def __reduce__(self) -> NoReturn:
        what = f"{self!r} runs code that this process has loaded, and cannot be {self._refused}"
        raise TypeError(f"{what}: save and load what it was made from, or make it again")


class SharedInProcess(OfThisProcess):
    """A copy is the object itself, a deep one too, as nothing in it changes."""

    _refused = "pickled"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self
