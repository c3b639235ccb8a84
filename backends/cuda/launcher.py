"""A loop over launches in machine code: a caller in Python makes one call for all of them."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from ..llvm.jit import kept_function

_SYMBOL = "lw_start"
DRIVER_CALLS = (
    "cuCtxGetCurrent",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
    "cuLaunchKernel",
    "cuMemcpyDtoDAsync_v2",
    "cuGraphExecKernelNodeSetParams_v2",
    "cuGraphLaunch",
)
"""Functions of the driver's library by their places in a table of addresses."""


class Launch(ctypes.Structure):
    """A launch: CUDA_KERNEL_NODE_PARAMS_v2 of cuda.h, its node in a graph, and whether that has other parameters."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("parameters", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("node", ctypes.c_void_p),
        ("changed", ctypes.c_int64),
    )


class Parameter(ctypes.Structure):
    """An address that a launch, by number, takes: a base, by number, and bytes from there."""

    _fields_ = (("base", ctypes.c_int64), ("offset", ctypes.c_uint64), ("launch", ctypes.c_int64))


class Copied(ctypes.Structure):
    """A copy of so many bytes between two addresses."""

    _fields_ = (
        ("target", ctypes.c_int64),
        ("target_offset", ctypes.c_uint64),
        ("source", ctypes.c_int64),
        ("source_offset", ctypes.c_uint64),
        ("nbytes", ctypes.c_uint64),
    )


class Program(ctypes.Structure):
    """Launches, then copies; `values` are the addresses of the parameters, which the launches' own pointers lead to."""

    _fields_ = (
        ("driver", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("parameter_count", ctypes.c_int64),
        ("parameters", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("launch_count", ctypes.c_int64),
        ("launches", ctypes.c_void_p),
        ("copy_count", ctypes.c_int64),
        ("copies", ctypes.c_void_p),
    )


_TYPES = """
%launch = type { ptr, [3 x i32], [3 x i32], i32, ptr, ptr, ptr, ptr, ptr, i64 }
%parameter = type { i64, i64, i64 }
%copy = type { i64, i64, i64, i64, i64 }
%program = type { ptr, ptr, i64, ptr, ptr, i64, ptr, i64, ptr }
"""


class _Text:
    """The text of the function, in blocks."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._count = 0

    def put(self, text: str) -> None:
        self._lines.append(text)

    def value(self, text: str) -> str:
        self._count += 1
        self._lines.append(f"%v{self._count} = {text}")
        return f"%v{self._count}"

    def field(self, kind: str, pointer: str, number: int, field_type: str, *places: int) -> str:
        """Load a field of a structure."""
        at = self.at(kind, pointer, number, *places)
        return self.value(f"load {field_type}, ptr {at}")

    def at(self, kind: str, pointer: str, number: int, *places: int) -> str:
        """Return the address of a field of a structure."""
        path = "".join(f", i32 {place}" for place in places)
        return self.value(f"getelementptr {kind}, ptr {pointer}, i32 0, i32 {number}{path}")

    def element(self, kind: str, pointer: str, index: str) -> str:
        return self.value(f"getelementptr {kind}, ptr {pointer}, i64 {index}")

    def function(self, name: str) -> str:
        """Load a function of the driver's."""
        at = self.value(f"getelementptr ptr, ptr %driver, i64 {DRIVER_CALLS.index(name)}")
        return self.value(f"load ptr, ptr {at}")

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        self.put(f"br i1 {condition}, label %{then}, label %{otherwise}")

    def call(self, name: str, arguments: str, good: str, failed: str = "leave") -> None:
        """Call a function of the driver's; go on in one block or another, with its status."""
        status = self.value(f"call i32 {self.function(name)}({arguments})")
        self.put(f"store i32 {status}, ptr %status")
        self.branch(self.value(f"icmp eq i32 {status}, 0"), good, failed)

    def loop(self, name: str, before: str, count: str, end: str) -> str:
        """Begin a loop, whose body ends in a branch to `{name}.next`; returns its number, which counts from 0."""
        self.put(f"br label %{name}")
        self.put(f"{name}:")
        self.put(f"%{name}.i = phi i64 [ 0, %{before} ], [ %{name}.more, %{name}.next ]")
        self.branch(self.value(f"icmp ult i64 %{name}.i, {count}"), f"{name}.body", end)
        self.put(f"{name}.next:")
        self.put(f"%{name}.more = add i64 %{name}.i, 1")
        self.put(f"br label %{name}")
        self.put(f"{name}.body:")
        return f"%{name}.i"

    def __str__(self) -> str:
        return "\n".join(self._lines)


def _source() -> str:
    """Return `int lw_start(program, bases, stream, graph)`: a status of the driver's; no graph is direct launches."""
    text = _Text()
    text.put(f"define i32 @{_SYMBOL}(ptr %program, ptr %bases, ptr %stream, ptr %graph) {{")
    text.put("entry:")
    text.put("%status = alloca i32")
    text.put("%other = alloca ptr")
    text.put("store i32 0, ptr %status")
    text.put("store ptr null, ptr %other")
    names = ("driver", "context", "parameter_count", "parameters", "values", "launch_count", "launches", "copy_count")
    for number, name in enumerate((*names, "copies")):
        kind = "i64" if name.endswith("count") else "ptr"
        text.put(f"%{name}.at = getelementptr %program, ptr %program, i32 0, i32 {number}")
        text.put(f"%{name} = load {kind}, ptr %{name}.at")
    _write_addresses(text)
    _enter(text)
    _replay(text)
    _launch(text)
    _copy(text)
    _leave(text)
    return f"{_TYPES}{text}\n"


def _address(text: _Text, kind: str, pointer: str, number: int) -> str:
    """Return the address that two fields of a structure, a base and an offset, stand for."""
    base = text.field(kind, pointer, number, "i64")
    at = text.value(f"load i64, ptr {text.element('i64', '%bases', base)}")
    return text.value(f"add i64 {at}, {text.field(kind, pointer, number + 1, 'i64')}")


def _write_addresses(text: _Text) -> None:
    """Write the addresses that are others than in the run before, and mark their launches."""
    number = text.loop("write", "entry", "%parameter_count", "enter")
    parameter = text.element("%parameter", "%parameters", number)
    address = _address(text, "%parameter", parameter, 0)
    place = text.element("i64", "%values", number)
    old = text.value(f"load i64, ptr {place}")
    text.branch(text.value(f"icmp eq i64 {old}, {address}"), "write.next", "write.new")
    text.put("write.new:")
    text.put(f"store i64 {address}, ptr {place}")
    launch = text.element("%launch", "%launches", text.field("%parameter", parameter, 2, "i64"))
    text.put(f"store i64 1, ptr {text.at('%launch', launch, 9)}")
    text.put("br label %write.next")


def _enter(text: _Text) -> None:
    """Make the context the thread's current one, unless it is: threads that only use memory at hand have none yet."""
    text.put("enter:")
    text.call("cuCtxGetCurrent", "ptr %other", "compare", "end")
    text.put("compare:")
    current = text.value("load ptr, ptr %other")
    text.put(f"%is_current = icmp eq ptr {current}, %context")
    text.branch("%is_current", "choose", "push")
    text.put("push:")
    text.call("cuCtxPushCurrent_v2", "ptr %context", "choose", "end")
    text.put("choose:")
    text.branch(text.value("icmp eq ptr %graph, null"), "direct", "replay")


def _replay(text: _Text) -> None:
    """Have the graph's nodes take the parameters that changed, and launch it."""
    text.put("replay:")
    number = text.loop("update", "replay", "%launch_count", "start")
    launch = text.element("%launch", "%launches", number)
    changed = text.at("%launch", launch, 9)
    text.branch(text.value(f"icmp eq i64 {text.value(f'load i64, ptr {changed}')}, 0"), "update.next", "update.new")
    text.put("update.new:")
    node = text.field("%launch", launch, 8, "ptr")
    text.call("cuGraphExecKernelNodeSetParams_v2", f"ptr %graph, ptr {node}, ptr {launch}", "update.done")
    text.put("update.done:")
    text.put(f"store i64 0, ptr {changed}")
    text.put("br label %update.next")
    text.put("start:")
    text.call("cuGraphLaunch", "ptr %graph, ptr %stream", "copying")


def _launch(text: _Text) -> None:
    """Launch one kernel after the other."""
    text.put("direct:")
    number = text.loop("each", "direct", "%launch_count", "copying")
    launch = text.element("%launch", "%launches", number)
    function = text.field("%launch", launch, 0, "ptr")
    sizes = [text.field("%launch", launch, place, "i32", axis) for place in (1, 2) for axis in range(3)]
    sizes.append(text.field("%launch", launch, 3, "i32"))
    parameters = text.field("%launch", launch, 4, "ptr")
    given = ", ".join(f"i32 {size}" for size in sizes)
    text.call("cuLaunchKernel", f"ptr {function}, {given}, ptr %stream, ptr {parameters}, ptr null", "each.next")


def _copy(text: _Text) -> None:
    text.put("copying:")
    number = text.loop("copy", "copying", "%copy_count", "leave")
    copy = text.element("%copy", "%copies", number)
    target, source = _address(text, "%copy", copy, 0), _address(text, "%copy", copy, 2)
    nbytes = text.field("%copy", copy, 4, "i64")
    text.call("cuMemcpyDtoDAsync_v2", f"i64 {target}, i64 {source}, i64 {nbytes}, ptr %stream", "copy.next")


def _leave(text: _Text) -> None:
    """Give back the context that was current before, and return the status of what failed, or 0."""
    text.put("leave:")
    text.branch("%is_current", "end", "pop")
    text.put("pop:")
    text.put(f"%popped = call i32 {text.function('cuCtxPopCurrent_v2')}(ptr %other)")
    text.put("br label %end")
    text.put("end:")
    text.put(f"ret i32 {text.value('load i32, ptr %status')}")
    text.put("}")


@cache
def starter() -> Any:
    """Return the function: it takes a Program, bases (64-bit addresses), a stream and a graph or None by their handles.

    Parameters are written from the bases; then the graph is launched, its nodes brought up to date, or each kernel is,
    where there is no graph; then come the copies. It returns the driver's status.
    """
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return kept_function(_source(), _SYMBOL, kind)
