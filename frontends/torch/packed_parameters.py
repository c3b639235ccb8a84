"""Parameters that kernels have packed: one call of machine code tells that nobody has moved or written them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from ...backends.llvm.jit import kept_function
from .types import Tensor

_SYMBOL = "lw_parameters_hold"
_PYTHON = ("PyTuple_GetItem", "PyObject_GetAttr", "PyLong_AsLong", "Py_DecRef")


def _field(name: str, kind: str, pointer: str, number: int, field_type: str = "ptr") -> str:
    """Load a field of a structure as a value of that name."""
    return f"""%{name}.at = getelementptr %{kind}, ptr %{pointer}, i64 0, i32 {number}
  %{name} = load {field_type}, ptr %{name}.at"""


_POINTERS = ("entries", "version.name", "address", "item", "attribute", "number", "drop")
_LOADS = "\n  ".join(_field(name, "table", "table", number) for number, name in enumerate(_POINTERS, 1))
_SOURCE = f"""
%entry = type {{ i64, ptr, ptr, ptr, i64 }}
%table = type {{ i64, ptr, ptr, ptr, ptr, ptr, ptr, ptr }}
define i32 @{_SYMBOL}(ptr %arguments, ptr %table) {{
entry:
  %count = load i64, ptr %table
  {_LOADS}
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %written ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %body, label %end
body:
  %at = getelementptr %entry, ptr %entries, i64 %k
  %place = load i64, ptr %at
  {_field("tensor", "entry", "at", 1)}
  %given = call ptr %item(ptr %arguments, i64 %place)
  %same = icmp eq ptr %given, %tensor
  br i1 %same, label %moved, label %end
moved:
  {_field("data", "entry", "at", 2)}
  %now = call ptr %address(ptr %given)
  %there = icmp eq ptr %now, %data
  br i1 %there, label %count.writes, label %end
count.writes:
  {_field("plain", "entry", "at", 3)}
  %object = call ptr %attribute(ptr %plain, ptr %version.name)
  %failed = icmp eq ptr %object, null
  br i1 %failed, label %end, label %written
written:
  %version.now = call i64 %number(ptr %object)
  call void %drop(ptr %object)
  {_field("version", "entry", "at", 4, "i64")}
  %unwritten = icmp eq i64 %version.now, %version
  %next = add i64 %k, 1
  br i1 %unwritten, label %loop, label %end
end:
  %result = phi i32 [ 1, %loop ], [ 0, %body ], [ 0, %moved ], [ 0, %count.writes ], [ 0, %written ]
  ret i32 %result
}}
"""
"""A tensor is asked for its address once it is known to be one that was packed: PyTorch's function cannot fail then."""


class Packed(NamedTuple):
    """A parameter among the arguments: its place, its address, and PyTorch's count of what was written to it."""

    place: int
    address: int
    version: int


class PackedParameters:
    """Parameters as they were when they were packed; `memory` are tensors on their memory, which stays theirs.

    A parameter's class may bring functions of its own, for which PyTorch looks whenever Python asks it for something:
    the call of a region took 0.2 us for each parameter so. Machine code asks for the address without, and the count of
    writes is that of the tensors of `memory`, which are plain and share it.
    """

    def __init__(self, arguments: Sequence[Tensor] | Mapping[int, Tensor], places: Sequence[int]) -> None:
        parameters = [arguments[place] for place in places]
        self.packed = [Packed(place, arguments[place].data_ptr(), arguments[place]._version) for place in places]
        self.memory = [tensor.detach() for tensor in parameters]
        self._unchanged: Callable[[Any, int], int] = _never
        self._table, address = 0, _address_function()
        if self.packed and address and all(map(_is_plain, (*parameters, *self.memory))):
            kept = zip(self.packed, parameters, self.memory, strict=True)
            made = [_Entry(each.place, id(own), each.address, id(plain), each.version) for each, own, plain in kept]
            self._entries = (_Entry * len(made))(*made)
            functions = (ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p) for name in _PYTHON)
            name = ctypes.c_void_p(id(_VERSION))
            self._made = _Table(len(made), ctypes.addressof(self._entries), name, ctypes.c_void_p(address), *functions)
            self._table, self._unchanged = ctypes.addressof(self._made), _function()

    def hold(self, arguments: tuple[Tensor, ...]) -> bool:
        """True where the parameters are those that were packed, and nobody has written them since.

        The tensors that were packed must still be there.
        """
        if self._unchanged(arguments, self._table):
            return True
        for place, address, version in self.packed:
            tensor = arguments[place]
            if tensor.data_ptr() != address or tensor._version != version:
                return False
        return True


_VERSION = "_version"


class _Entry(ctypes.Structure):
    """A parameter: its place, itself as Python's object, its address, a plain tensor on its memory, and its version."""

    _fields_ = (
        ("place", ctypes.c_int64),
        ("tensor", ctypes.c_void_p),
        ("address", ctypes.c_void_p),
        ("plain", ctypes.c_void_p),
        ("version", ctypes.c_int64),
    )


class _Table(ctypes.Structure):
    """Entries, the name of the version, and what the machine code calls: PyTorch's function, and Python's."""

    _fields_ = (
        ("count", ctypes.c_int64),
        ("entries", ctypes.c_void_p),
        ("version", ctypes.c_void_p),
        ("address", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in _PYTHON),
    )


def _never(arguments: Any, table: int) -> int:
    return 0


def _is_plain(tensor: Tensor) -> bool:
    """True for a tensor of PyTorch's own classes."""
    import torch

    return type(tensor) in (torch.Tensor, torch.nn.Parameter)


def _address_function() -> int | None:
    """Return PyTorch's function in C from a tensor, as Python's object, to its address, where this PyTorch has it."""
    import torch

    return getattr(torch._C._dynamo.guards, "_torchinductor_pyobject_tensor_data_ptr", None)


@cache
def _function() -> Callable[[Any, int], int]:
    """Return the function of a tuple of arguments and the address of a table."""
    return kept_function(_SOURCE, _SYMBOL, ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p))
