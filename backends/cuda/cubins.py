"""Cubins of one function as one binary: that of a compiled module itself, or several behind each other."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeVar

_MAGIC = b"loopwright-cubins-1\n"
_NUMBER = struct.Struct("<Q")
T = TypeVar("T")


def joined_cubins(cubins: Sequence[bytes]) -> bytes:
    """Return cubins as one binary; one alone is that itself."""
    if len(cubins) == 1:
        return cubins[0]
    numbers = (len(cubins), *map(len, cubins))
    return b"".join([_MAGIC, *map(_NUMBER.pack, numbers), *cubins])


def separate_cubins(binary: bytes) -> list[bytes]:
    """Return the cubins of a binary: of each launch its own where there are several; ValueError where it is cut off."""
    if not binary.startswith(_MAGIC):
        return [binary]
    try:
        start = len(_MAGIC) + _NUMBER.size
        (count,) = _NUMBER.unpack_from(binary, len(_MAGIC))
        sizes = [_NUMBER.unpack_from(binary, start + n * _NUMBER.size)[0] for n in range(count)]
    except struct.error:
        raise ValueError("a binary of several cubins is cut off") from None
    start += count * _NUMBER.size
    if start + sum(sizes) != len(binary):
        raise ValueError("a binary of several cubins is cut off")
    found = []
    for size in sizes:
        found.append(binary[start : start + size])
        start += size
    return found


def of_each_launch(loaded: Sequence[T], launches: int) -> list[T]:
    """Return for each launch which of the loaded cubins it is in; ValueError where they are not as many."""
    if len(loaded) not in (1, launches):
        raise ValueError(f"a kernel of {launches} launches has {len(loaded)} cubins")
    return [*loaded] * launches if len(loaded) == 1 else [*loaded]
