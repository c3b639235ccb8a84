"""Tensor maps as kernels take them: 128 bytes that the driver makes of an array's address, shape and boxes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any, NamedTuple

from ..c_family.kernel_source import TensorMap
from .driver import MissingCuda, library

MAP_BYTES = 128
"""Bytes of a CUtensorMap, which starts at a multiple of 64 (CUDA driver API)."""
_ALIGNMENT = 64
_TYPES = {"i8": 0, "i16": 1, "i32": 3, "i64": 5, "f16": 6, "f32": 7, "f64": 8, "bf16": 9, "tf32": 11}
"""CUtensorMapDataType of cuda.h; for bits that are copied the sign is no matter. TF32 is what float32 is rounded to,
ties to even, on the way."""
_BYTES = {"i8": 1, "i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4, "tf32": 4, "i64": 8, "f64": 8}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
"""CUtensorMapSwizzle of cuda.h."""
PROMOTION = 2
"""CU_TENSOR_MAP_L2_PROMOTION_L2_128B: lines are asked for whole."""
ADDRESS_ALIGNMENT = 16
"""Bytes that an array that is copied in bulk starts at a multiple of (the same)."""


@cache
def _encoder(name: str) -> Any:
    try:
        return getattr(library(), name)
    except AttributeError as error:
        raise MissingCuda(f"bulk copies need the driver of CUDA 12 or later ({error}): install it") from error


class HostMap:
    """The memory of a tensor map, on the host, and `address`, that of the array it was made for, or 0."""

    def __init__(self, described: TensorMap) -> None:
        self.described = described
        self._memory = ctypes.create_string_buffer(MAP_BYTES + _ALIGNMENT)
        start = ctypes.addressof(self._memory)
        self.at = -(-start // _ALIGNMENT) * _ALIGNMENT
        self.address = 0

    def move(self, address: int) -> None:
        """Make it for an array at an address, in the array's context. ValueError where the driver makes none."""
        if address == self.address:
            return
        if address % ADDRESS_ALIGNMENT:
            rule = f"starts at a multiple of {ADDRESS_ALIGNMENT} bytes, this one is {address % ADDRESS_ALIGNMENT} off"
            raise ValueError(f"an array that is copied in bulk {rule}: pass it as a whole, or a copy")
        name, arguments = _call(self.described, address)
        status = _encoder(name)(ctypes.c_void_p(self.at), *arguments)
        if status:
            raise ValueError(f"the driver makes no tensor map of {self.described} (error {status})")
        self.address = address

    def __bytes__(self) -> bytes:
        return ctypes.string_at(self.at, MAP_BYTES)


class Encoding(NamedTuple):
    """Arguments of cuTensorMapEncodeTiled for an array, in numbers of cuda.h, the innermost dimension first.

    `strides` are bytes, of all dimensions but the innermost. With corners, of the dimensions between channels and
    batch, they are those of cuTensorMapEncodeIm2col, and `box` are channels and pixels.
    """

    element: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: int
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()


def encoding(described: TensorMap) -> Encoding:
    """Return what a tensor map is made by, but for the address."""
    size, rank, walk = _BYTES[described.element], len(described.shape), described.walk
    strides = [size * prod(described.shape[d + 1 :]) for d in range(rank - 1)]
    lower, upper = walk.corners(described.shape) if walk is not None else ((), ())
    return Encoding(
        _TYPES[described.element],
        described.shape[::-1],
        tuple(strides[::-1] or [0]),
        described.box[::-1],
        (1, *walk.steps[::-1], 1) if walk is not None else (1,) * rank,
        _SWIZZLES[described.swizzle],
        lower[::-1],
        upper[::-1],
    )


def _call(described: TensorMap, address: int) -> tuple[str, tuple[Any, ...]]:
    """The function of the driver that makes a map, and its arguments behind the map."""
    how = encoding(described)
    array = (
        ctypes.c_int(how.element),
        ctypes.c_uint32(len(how.shape)),
        ctypes.c_void_p(address),
        _array(ctypes.c_uint64, how.shape),
        _array(ctypes.c_uint64, how.strides),
    )
    steps = _array(ctypes.c_uint32, how.steps)
    last = ctypes.c_int(0), ctypes.c_int(how.swizzle), ctypes.c_int(PROMOTION), ctypes.c_int(0)
    if described.walk is None:
        return "cuTensorMapEncodeTiled", (*array, _array(ctypes.c_uint32, how.box), steps, *last)
    corners = _array(ctypes.c_int, how.lower), _array(ctypes.c_int, how.upper)
    return "cuTensorMapEncodeIm2col", (*array, *corners, *map(ctypes.c_uint32, how.box), steps, *last)


def _array(kind: Any, values: Sequence[int]) -> Any:
    return (kind * len(values))(*values)
