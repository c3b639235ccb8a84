"""A loop over launches in machine code: a caller in Python makes one call for all of them."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from ..llvm.function_text import FunctionText
from ..llvm.jit import kept_function

_SYMBOL = "lw_start"
DRIVER_CALLS = (
    "cuCtxGetCurrent",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cuMemcpyDtoDAsync_v2",
    "cuGraphExecKernelNodeSetParams_v2",
    "cuGraphLaunch",
)
"""Functions of the driver's library by their places in a table of addresses."""


class Launch(ctypes.Structure):
    """A launch: CUDA_KERNEL_NODE_PARAMS_v2 of cuda.h, its node in a graph, and whether that has other parameters.

    With a `config` it may begin before the launch ahead has ended, for which it waits.
    """

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
        ("config", ctypes.c_void_p),
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
%launch = type { ptr, [3 x i32], [3 x i32], i32, ptr, ptr, ptr, ptr, ptr, i64, ptr }
%config = type { [3 x i32], [3 x i32], i32, ptr, ptr, i32 }
%parameter = type { i64, i64, i64 }
%copy = type { i64, i64, i64, i64, i64 }
%program = type { ptr, ptr, i64, ptr, ptr, i64, ptr, i64, ptr }
"""


class _Text(FunctionText):
    """The text of the function, which calls the driver's."""

    def function(self, name: str) -> str:
        """Load a function of the driver's."""
        return self.put(f"load ptr, ptr {self.element('ptr', '%driver', str(DRIVER_CALLS.index(name)))}")

    def call(self, name: str, arguments: str, good: str, failed: str = "leave") -> None:
        """Call a function of the driver's; go on in one block or another, with its status."""
        status = self.put(f"call i32 {self.function(name)}({arguments})")
        self.do(f"store i32 {status}, ptr %status")
        self.branch(self.put(f"icmp eq i32 {status}, 0"), good, failed)


def _source() -> str:
    """Return `int lw_start(program, bases, stream, graph)`: a status of the driver's; no graph is direct launches."""
    text = _Text()
    text.allocas += ["  %status = alloca i32", "  %other = alloca ptr"]
    text.do("store i32 0, ptr %status")
    text.do("store ptr null, ptr %other")
    names = ("driver", "context", "parameter_count", "parameters", "values", "launch_count", "launches", "copy_count")
    for number, name in enumerate((*names, "copies")):
        kind = "i64" if name.endswith("count") else "ptr"
        text.do(f"%{name}.at = getelementptr %program, ptr %program, i32 0, i32 {number}")
        text.do(f"%{name} = load {kind}, ptr %{name}.at")
    _write_addresses(text)
    _enter(text)
    _replay(text)
    _launch(text)
    _copy(text)
    _leave(text)
    head = f"define i32 @{_SYMBOL}(ptr %program, ptr %bases, ptr %stream, ptr %graph)"
    return f"{_TYPES}{text.text(head)}\n"


def _address(text: _Text, kind: str, pointer: str, number: int) -> str:
    """Return the address that two fields of a structure, a base and an offset, stand for."""
    base = text.field(kind, pointer, number, of="i64")
    at = text.put(f"load i64, ptr {text.element('i64', '%bases', base)}")
    return text.put(f"add i64 {at}, {text.field(kind, pointer, number + 1, of='i64')}")


def _write_addresses(text: _Text) -> None:
    """Write the addresses that are others than in the run before, and mark their launches."""
    number = text.loop("write", "entry", "%parameter_count", "enter")
    parameter = text.element("%parameter", "%parameters", number)
    address = _address(text, "%parameter", parameter, 0)
    place = text.element("i64", "%values", number)
    old = text.put(f"load i64, ptr {place}")
    text.branch(text.put(f"icmp eq i64 {old}, {address}"), "write.next", "write.new")
    text.start_block("write.new")
    text.do(f"store i64 {address}, ptr {place}")
    launch = text.element("%launch", "%launches", text.field("%parameter", parameter, 2, of="i64"))
    text.do(f"store i64 1, ptr {text.at('%launch', launch, 9)}")
    text.do("br label %write.next")


def _enter(text: _Text) -> None:
    """Make the context the thread's current one, unless it is: threads that only use memory at hand have none yet."""
    text.start_block("enter")
    text.call("cuCtxGetCurrent", "ptr %other", "compare", "end")
    text.start_block("compare")
    current = text.put("load ptr, ptr %other")
    text.do(f"%is_current = icmp eq ptr {current}, %context")
    text.branch("%is_current", "choose", "push")
    text.start_block("push")
    text.call("cuCtxPushCurrent_v2", "ptr %context", "choose", "end")
    text.start_block("choose")
    text.branch(text.put("icmp eq ptr %graph, null"), "direct", "replay")


def _replay(text: _Text) -> None:
    """Have the graph's nodes take the parameters that changed, and launch it."""
    text.start_block("replay")
    number = text.loop("update", "replay", "%launch_count", "start")
    launch = text.element("%launch", "%launches", number)
    changed = text.at("%launch", launch, 9)
    text.branch(text.put(f"icmp eq i64 {text.put(f'load i64, ptr {changed}')}, 0"), "update.next", "update.new")
    text.start_block("update.new")
    node = text.field("%launch", launch, 8)
    text.call("cuGraphExecKernelNodeSetParams_v2", f"ptr %graph, ptr {node}, ptr {launch}", "update.done")
    text.start_block("update.done")
    text.do(f"store i64 0, ptr {changed}")
    text.do("br label %update.next")
    text.start_block("start")
    text.call("cuGraphLaunch", "ptr %graph, ptr %stream", "copying")


def _launch(text: _Text) -> None:
    """Launch one kernel after the other."""
    text.start_block("direct")
    number = text.loop("each", "direct", "%launch_count", "copying")
    launch = text.element("%launch", "%launches", number)
    function, parameters = text.field("%launch", launch, 0), text.field("%launch", launch, 4)
    config = text.field("%launch", launch, 10)
    text.branch(text.put(f"icmp eq ptr {config}, null"), "each.after", "each.behind")
    text.start_block("each.behind")
    text.do(f"store ptr %stream, ptr {text.at('%config', config, 3)}")
    text.call("cuLaunchKernelEx", f"ptr {config}, ptr {function}, ptr {parameters}, ptr null", "each.next")
    text.start_block("each.after")
    sizes = [text.field("%launch", launch, place, axis, of="i32") for place in (1, 2) for axis in range(3)]
    sizes.append(text.field("%launch", launch, 3, of="i32"))
    given = ", ".join(f"i32 {size}" for size in sizes)
    text.call("cuLaunchKernel", f"ptr {function}, {given}, ptr %stream, ptr {parameters}, ptr null", "each.next")


def _copy(text: _Text) -> None:
    text.start_block("copying")
    number = text.loop("copy", "copying", "%copy_count", "leave")
    copy = text.element("%copy", "%copies", number)
    target, source = _address(text, "%copy", copy, 0), _address(text, "%copy", copy, 2)
    nbytes = text.field("%copy", copy, 4, of="i64")
    text.call("cuMemcpyDtoDAsync_v2", f"i64 {target}, i64 {source}, i64 {nbytes}, ptr %stream", "copy.next")


def _leave(text: _Text) -> None:
    """Give back the context that was current before, and return the status of what failed, or 0."""
    text.start_block("leave")
    text.branch("%is_current", "end", "pop")
    text.start_block("pop")
    text.do(f"%popped = call i32 {text.function('cuCtxPopCurrent_v2')}(ptr %other)")
    text.do("br label %end")
    text.start_block("end")
    text.do(f"ret i32 {text.put('load i32, ptr %status')}")


@cache
def starter() -> Any:
    """Return the function: it takes a Program, bases (64-bit addresses), a stream and a graph or None by their handles.

    Parameters are written from the bases; then the graph is launched, its nodes brought up to date, or each kernel is,
    where there is no graph; then come the copies. It returns the driver's status.
    """
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return kept_function(_source(), _SYMBOL, kind)
