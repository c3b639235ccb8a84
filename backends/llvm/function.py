"""A kernel's functions as they are written: buffers they need, functions they call, what is in registers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue

from ..arrays import CACHE_LINE_BYTES
from .function_text import FunctionText
from .outside import CheckedAccess
from .types import buffer_bytes, element_text, intrinsic_suffix, stored_text, type_text

_MOST_STACK_BYTES = 256 * 1024
"""OpenMP's threads have stacks of a few MiB; local buffers beyond this go to the workspace."""
_MOST_TRIPS = 1 << 30
"""Of a loop, as LLVM is told: weights of branches have 32 bits."""


@dataclass(frozen=True)
class WorkspacePart:
    """A block of the workspace: where it starts, its size, and the name of the pointer parameter it becomes."""

    name: str
    offset: int
    bytes: int


class Workspace:
    """Memory that a kernel needs besides its arguments, laid out as it is asked for."""

    def __init__(self) -> None:
        self.bytes = 0
        self.buffers: list[WorkspacePart] = []

    def reserve(self, name: str, size: int) -> WorkspacePart:
        buffer = WorkspacePart(name, self.bytes, size)
        self.bytes += -(-size // CACHE_LINE_BYTES) * CACHE_LINE_BYTES
        self.buffers.append(buffer)
        return buffer


@dataclass
class Module:
    """The whole text: functions, declarations and loop metadata; `accesses` are those whose addresses are tested."""

    threads: int
    name: str
    check_addresses: bool = False
    has_avx512: bool = False
    """The processor has AVX-512 for vectors of any width."""
    symbols: dict[str, str] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    metadata: list[str] = field(default_factory=list)
    regions: int = 0
    accesses: list[CheckedAccess] = field(default_factory=list)
    features: set[str] = field(default_factory=set)
    """Of a CPU, those that its matrix instructions need."""
    _often: dict[int, int] = field(default_factory=dict)
    """The numbers of such metadata, by trips."""

    def loop_metadata(self) -> str:
        """Return a new loop's metadata: the schedule has decided about vectors and unrolling."""
        number = len(self.metadata) + 2
        self.metadata.append(f"!{number} = distinct !{{!{number}, !0, !1}}")
        return f"!{number}"

    def often(self, trips: int) -> str:
        """Return the metadata of the branch at the end of a loop that runs so many times.

        LLVM takes each loop for one of some 32 iterations else, and the deepest for those that run most: where gelu
        stands behind a sum of 514 terms in 28 vectors, in loops over these, its constants were in registers and the
        sums in memory, loaded and stored in each step (1039x514 to 384 in tiles of 14 x 2 vectors: 3.06 ms, and 1.77).
        """
        if trips not in self._often:
            self._often[trips] = len(self.metadata) + 2
            weights = f"i32 {min(trips, _MOST_TRIPS) - 1}, i32 1"
            self.metadata.append(f'!{self._often[trips]} = !{{!"branch_weights", {weights}}}')
        return f"!{self._often[trips]}"


class Function(FunctionText):
    """One function of a kernel being written."""

    def __init__(self, module: Module, in_thread: bool = False) -> None:
        super().__init__()
        self.module = module
        self.in_thread = in_thread
        self.names: dict[SSAValue, str] = {}
        self.addresses: dict[tuple[str, str], str] = {}
        self.tiles: dict[object, str] = {}
        """The tiles of sums that are in registers here, by where they are in memory."""
        self.singles: dict[str, str] = {}
        """The values of bfloat16 that are here in single precision as well, by name."""
        self.workspace = Workspace()
        self._stack_bytes = 0
        self._types: dict[int, str] = {}

    def type(self, value_type: Attribute) -> str:
        """Return the LLVM type, remembered for as long as this function is written."""
        text = self._types.get(id(value_type))
        if text is None:
            text = self._types[id(value_type)] = type_text(value_type)
        return text

    def intrinsic(self, name: str, result: str, overloads: list[str], *arguments: tuple[str, str]) -> str:
        """Call `llvm.<name>.<suffixes of overloads>` on (type, value) pairs; a type may carry attributes."""
        symbol = f"@llvm.{name}.{'.'.join(map(intrinsic_suffix, overloads))}"
        return self.call(result, symbol, *arguments)

    def call(self, result: str, symbol: str, *arguments: tuple[str, str]) -> str:
        """Call a function, declaring it; return its value, or nothing for `void`."""
        if symbol not in self.module.symbols:
            parameters = ", ".join(kind for kind, _ in arguments)
            self.module.symbols[symbol] = f"declare {result} {symbol}({parameters})"
        text = f"call {result} {symbol}({', '.join(f'{kind} {value}' for kind, value in arguments)})"
        if result != "void":
            return self.put(text)
        self.do(text)
        return ""

    def declared(self, name: str, result: str, *parameters: str, overloads: list[str] | None = None) -> str:
        """Return the symbol of an intrinsic, declared; overloaded on its result unless told otherwise."""
        symbol = f"@llvm.{name}.{'.'.join(map(intrinsic_suffix, overloads or [result]))}"
        self.module.symbols.setdefault(symbol, f"declare {result} {symbol}({', '.join(parameters)})")
        return symbol

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Addresses computed inside are forgotten outside."""
        outer = self.addresses
        self.addresses = dict(outer)
        yield
        self.addresses = outer

    def allocate(self, label: str, buffer_type: MemRefType[Attribute], local: bool) -> str:
        """Return the pointer to a new buffer: on the stack where it is local and small, else in the workspace."""
        size = buffer_bytes(buffer_type)
        if local and self._stack_bytes + size <= _MOST_STACK_BYTES:
            self._stack_bytes += size
            name = f"%{label}.{len(self.allocas)}"
            element = stored_text(element_text(buffer_type.element_type))
            count = buffer_type.get_shape()[0]
            self.allocas.append(f"  {name} = alloca [{count} x {element}], align {CACHE_LINE_BYTES}")
            return name
        return self.allocate_bytes(label, size)

    def allocate_bytes(self, label: str, size: int) -> str:
        """Return the pointer to a new stretch of the workspace, a parameter of this function."""
        name = f"%{label}.w{len(self.workspace.buffers)}"
        self.workspace.reserve(name, size)
        return name
