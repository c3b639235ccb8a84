"""Files of plain data: numbers, texts and arrays under names, with a checksum; reading one runs nothing.

A magic line, the SHA-256 of what follows, one line of JSON, and the bytes of the arrays that it names by number.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ForwardRef, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from ...storage.ownership import require_ours
from ...storage.whole_file import write_whole

Array: TypeAlias = npt.NDArray[Any]
if TYPE_CHECKING:
    Plain: TypeAlias = "bool | int | float | str | Array | Sequence[Plain] | Mapping[str, Plain] | None"
else:  # hints in other modules find what it is of here
    _PLAIN = ForwardRef("Plain", module=__name__)
    Plain = bool | int | float | str | Array | Sequence[_PLAIN] | Mapping[str, _PLAIN] | None
"""Values that can be kept: arrays are of one of `_DTYPES`."""

_DTYPES = ("<f4", "<f8", "<i8")
_DIGEST_BYTES = 64
"""Hexadecimal digits of SHA-256."""
_LONGEST_HEADER = 1 << 24
"""Bytes: 16 MiB, of which columns of `MOST_COLUMNS` take a tenth."""
_LARGEST = 1 << 53
"""Whole numbers that any reader of JSON holds exactly."""


class PlainFileError(ValueError):
    """Bytes are no such file, or a value in it is not what it must be; the text says which."""


def write_plain(path: str | os.PathLike[str], magic: str, values: Mapping[str, Plain]) -> None:
    """Write values under a format's name, whole or not at all; OSError where that cannot be."""
    arrays: list[Array] = []
    header = json.dumps(_header(values, arrays), separators=(",", ":"), allow_nan=False)
    body = b"".join([header.encode(), b"\n", *(a.tobytes() for a in arrays)])
    digest = hashlib.sha256(body).hexdigest()
    require_ours(path, "file of its kind", [magic.encode()])
    write_whole(path, b"".join([f"{magic}\n{digest}\n".encode(), body]))


def _header(value: Plain, arrays: list[Array]) -> Any:
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        arrays.append(array)
        return {"array": len(arrays) - 1, "dtype": array.dtype.str, "shape": list(array.shape)}
    if isinstance(value, Mapping):
        return {name: _header(part, arrays) for name, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_header(part, arrays) for part in value]
    return value


def read_plain(path: str | os.PathLike[str], magic: str) -> Fields:
    """Read the values of a file of a format; PlainFileError where it is damaged, OSError where it cannot be read."""
    with open(path, "rb") as file:
        if file.read(len(magic) + 1) != f"{magic}\n".encode():
            raise PlainFileError("it does not begin as one")
        digest, rest = file.read(_DIGEST_BYTES + 1), file.read()
    if digest != f"{hashlib.sha256(rest).hexdigest()}\n".encode():
        raise PlainFileError("its checksum is another one: it is damaged or cut off")
    line, _, data = rest.partition(b"\n")
    if len(line) > _LONGEST_HEADER:
        raise PlainFileError(f"its header has {len(line):,} bytes, at most {_LONGEST_HEADER:,} are read")
    try:
        values = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise PlainFileError(f"its header is no JSON: {error}") from None
    if not isinstance(values, dict):
        raise PlainFileError("its header is no JSON object")
    return Fields(values, _Arrays(data))


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


class _Arrays:
    """The bytes behind the header, handed out from front to back."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self._taken = 0

    def take(self, number: int, dtype: str, count: int) -> Array:
        size = count * int(dtype[2:])
        if number != self._taken or size > len(self._data) - self._position:
            raise PlainFileError("its arrays are not those of its header")
        array = np.frombuffer(self._data, dtype, count, self._position)
        self._position += size
        self._taken += 1
        return array.astype(array.dtype.newbyteorder("="))  # a copy, in place in memory as any array is


class Fields:
    """Values by name; each is asked for with what it must be, in the order in which they were written."""

    def __init__(self, values: dict[str, Any], arrays: _Arrays) -> None:
        self._values = values
        self._arrays = arrays

    def _get(self, name: str) -> Any:
        if name not in self._values:
            raise PlainFileError(f"it has no '{name}'")
        return self._values[name]

    def _wrong(self, name: str, wanted: str) -> PlainFileError:
        return PlainFileError(f"'{name}' must be {wanted}")

    def has(self, name: str) -> bool:
        """True where there is a value of this name that is not null."""
        return self._values.get(name) is not None

    def text(self, name: str) -> str:
        value = self._get(name)
        if not isinstance(value, str):
            raise self._wrong(name, "a text")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._get(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(name, "a list of texts")
        return tuple(value)

    def whole(self, name: str, low: int = 0, high: int = _LARGEST) -> int:
        value = self._get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self._wrong(name, f"a whole number from {low} to {high}")
        return value

    def number(self, name: str) -> float:
        value = self._get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(float_of(value)):
            raise self._wrong(name, "a finite number")
        return float(value)

    def part(self, name: str) -> Fields:
        value = self._get(name)
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return Fields(value, self._arrays)

    def parts(self, name: str, most: int) -> list[Fields]:
        value = self._get(name)
        if not isinstance(value, list) or len(value) > most or not all(isinstance(item, dict) for item in value):
            raise self._wrong(name, f"a list of at most {most} objects")
        return [Fields(item, self._arrays) for item in value]

    def array(self, name: str, dtype: str, shape: tuple[int, ...], finite: bool = True) -> Array:
        """An array of a type and a shape, in which -1 stands for any extent."""
        value = self._get(name)
        shown = f"an array of {dtype}, {list(shape)}"
        match value:
            case {"array": int(number), "dtype": str(kind), "shape": list(extents)}:
                pass
            case _:
                raise self._wrong(name, shown)
        if kind != dtype or kind not in _DTYPES or len(extents) != len(shape):
            raise self._wrong(name, shown)
        for extent, wanted in zip(extents, shape, strict=True):
            if isinstance(extent, bool) or not isinstance(extent, int) or extent < 0 or wanted not in (-1, extent):
                raise self._wrong(name, shown)
        array = self._arrays.take(number, kind, math.prod(extents)).reshape(extents)
        if finite and not np.isfinite(array).all():
            raise self._wrong(name, f"{shown}, all finite")
        return array


def float_of(value: int | float) -> float:
    """A number as a float; infinity where it is too large."""
    try:
        return float(value)
    except OverflowError:
        return math.inf
