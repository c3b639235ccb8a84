"""Parameters that kernels have packed: one call of machine code tells that nobody has moved or written them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from ...backends.llvm.function_text import FunctionText
from ...backends.llvm.jit import kept_function
from .types import Tensor

_SYMBOL = "lw_parameters_hold"
_PYTHON = ("PyTuple_GetItem", "PyObject_GetAttr", "PyLong_AsLong", "Py_DecRef")


_TYPES = """
%entry = type { i64, ptr, ptr, ptr, i64 }
%table = type { i64, ptr, ptr, ptr, ptr, ptr, ptr, ptr }
"""


def _source() -> str:
    """Return `int lw_parameters_hold(arguments, table)`: 1 where all parameters are those of the table, unwritten.

    A tensor is asked for its address once it is known to be one that was packed: PyTorch's function cannot fail then.
    """
    text = FunctionText()
    count = text.field("%table", "%table", 0, of="i64")
    entries, name, address, item, attribute, number, drop = (text.field("%table", "%table", n) for n in range(1, 8))
    entry = text.element("%entry", entries, text.loop("each", "entry", count, "hold"))
    place, tensor = text.field("%entry", entry, 0, of="i64"), text.field("%entry", entry, 1)
    given = text.put(f"call ptr {item}(ptr %arguments, i64 {place})")
    text.branch(text.put(f"icmp eq ptr {given}, {tensor}"), "same", "differ")
    text.start_block("same")
    now = text.put(f"call ptr {address}(ptr {given})")
    text.branch(text.put(f"icmp eq ptr {now}, {text.field('%entry', entry, 2)}"), "there", "differ")
    text.start_block("there")
    version = text.put(f"call ptr {attribute}(ptr {text.field('%entry', entry, 3)}, ptr {name})")
    text.branch(text.put(f"icmp eq ptr {version}, null"), "differ", "counted")
    text.start_block("counted")
    writes = text.put(f"call i64 {number}(ptr {version})")
    text.do(f"call void {drop}(ptr {version})")
    text.branch(text.put(f"icmp eq i64 {writes}, {text.field('%entry', entry, 4, of='i64')}"), "each.next", "differ")
    for label, result in (("hold", 1), ("differ", 0)):
        text.start_block(label)
        text.do(f"ret i32 {result}")
    return f"{_TYPES}{text.text(f'define i32 @{_SYMBOL}(ptr %arguments, ptr %table)')}\n"


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
    return kept_function(_source(), _SYMBOL, ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p))
