"""DLPack capsules of CUDA arrays: made and read through ctypes (DLPack 0.8, the unversioned capsule)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...dialects.numpy_types import teach_numpy

CUDA = 2
"""kDLCUDA in dlpack.h."""
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_BFLOAT = 4
"""kDLBfloat in dlpack.h."""
_NAME, _USED = b"dltensor", b"used_dltensor"


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    """DLManagedTensor."""


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))
_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Holder:
    """Keeps an exported array and what describes it alive until the reader has done with them."""

    def __init__(self, owner: Any, managed: _Managed, numbers: Any) -> None:
        self.owner = owner
        self.managed = managed
        self.numbers = numbers


def _delete(managed: Any) -> None:
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(ctypes.cast(managed.contents.context, ctypes.py_object).value))


def _destroy(capsule: int) -> None:
    """Free what a capsule holds that nobody has taken over."""
    if _api("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(capsule, _NAME):
        get = _api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
        managed = ctypes.cast(get(capsule, _NAME), ctypes.POINTER(_Managed))
        managed.contents.deleter(managed)


_DELETE, _DESTROY = _Deleter(_delete), _Destructor(_destroy)


def exported(owner: Any, address: int, shape: Sequence[int], dtype: np.dtype[Any], index: int) -> Any:
    """Return a capsule for contiguous memory on CUDA device `index`; `owner` lives until the reader is done."""
    count = len(shape)
    numbers = (ctypes.c_int64 * max(1, count))(*shape)
    code = _BFLOAT if dtype.name == "bfloat16" else _CODES[dtype.kind]
    tensor = _Tensor(address, CUDA, index, count, code, 8 * dtype.itemsize, 1, ctypes.cast(numbers, _POINTER), None, 0)
    managed = _Managed(tensor, None, _DELETE)
    holder = _Holder(owner, managed, numbers)
    managed.context = id(holder)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(holder))
    new = _api("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _Destructor)
    return new(ctypes.addressof(managed), _NAME, _DESTROY)


@dataclass(frozen=True)
class Borrowed:
    """Memory that a capsule describes, strides in elements; valid while the capsule lives."""

    capsule: Any
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: npt.DTypeLike


def borrowed(capsule: Any) -> Borrowed:
    """Read a capsule without taking its memory over; TypeError for an element type without kernels."""
    get = _api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    tensor = ctypes.cast(get(capsule, _NAME), ctypes.POINTER(_Managed)).contents.tensor
    letters = {code: letter for letter, code in _CODES.items()}
    if tensor.lanes != 1 or tensor.code not in (*letters, _BFLOAT):
        raise TypeError(f"arrays on the device are of integers or floats, got DLPack type {tensor.code}")
    if tensor.code == _BFLOAT:
        teach_numpy(kind := "bfloat16")
    else:
        kind = "bool" if letters[tensor.code] == "b" else f"{letters[tensor.code]}{tensor.bits // 8}"
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
    return Borrowed(capsule, (tensor.data or 0) + tensor.byte_offset, shape, strides, np.dtype(kind))


_POINTER = ctypes.POINTER(ctypes.c_int64)


def _api(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(ctypes.PyDLL(None), name)
    function.restype, function.argtypes = result, arguments
    return function
