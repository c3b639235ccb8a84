"""A function of the kernel dialect as a source file: one C function a launch, and what launching them takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import Pure

from ...dialects import kernel
from ...dialects.walk import operations_in
from ..function_arguments import arguments_of
from ..unsupported import UnsupportedError
from .control import CONTROL
from .kernel_source import KernelSource, Launch, TensorMap
from .language import Language
from .memory import MEMORY, scope_of
from .names import Names, identifier
from .operations import OPERATIONS
from .printer import INDENT, Buffer, Handler, KernelPrinter
from .types import bytes_of, element_name

_DIVISIONS = (arith.DivUIOp, arith.RemUIOp)
"""Operations that may stand ahead of launches though they are not pure: numbers of lanes by constants."""
_INT_ELEMENTS = 1 << 31


Handlers = Mapping[type[Operation], Handler]


def print_module(module: ModuleOp, language: Language, own: Handlers, static_shared_limit: int) -> KernelSource:
    """Print the one kernel function of a module; `own` prints operations that the language has its own forms for.

    A block's shared buffers above `static_shared_limit` bytes in all are memory that is sized at the launch.
    UnsupportedError names an operation or a type without a form in the language.
    """
    return _function_of(module, language, own, static_shared_limit).print()


def print_apart(
    module: ModuleOp, language: Language, own: Handlers, static_shared_limit: int
) -> tuple[KernelSource, tuple[str, ...]]:
    """Print a module as `print_module` does; returns also the source of each launch with what it needs alone."""
    function = _function_of(module, language, own, static_shared_limit)
    return function.print(), tuple(function.source([part]) for part in function.parts)


def _function_of(module: ModuleOp, language: Language, own: Handlers, static_shared_limit: int) -> _Function:
    functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    if len(functions) != 1:
        raise UnsupportedError(f"a kernel module holds one function, got {len(functions)}")
    return _Function(functions[0], language, own, static_shared_limit)


class _Function:
    """One function on its way to source."""

    def __init__(self, function: func.FuncOp, language: Language, own: Handlers, static_shared_limit: int) -> None:
        self.name = identifier(function.sym_name.data)
        self.function = function
        self.language = language
        self.static_shared_limit = static_shared_limit
        self.operations: Handlers = {**OPERATIONS, **MEMORY, **CONTROL, **own}
        self.block = function.body.block
        self.numbers: dict[SSAValue, int] = {a: n for n, a in enumerate(self.block.args)}
        self.labels = [a.name_hint or f"a{n}" for n, a in enumerate(self.block.args)]
        self.outside: list[Operation] = []
        self.parts: list[tuple[KernelPrinter, str]] = []
        """Of each launch what has printed it, and its text."""
        self.long_index = any(
            math.prod(cast(MemRefType[Attribute], buffer.type).get_shape()) >= _INT_ELEMENTS
            for buffer in _buffers(function)
        )

    def print(self) -> KernelSource:
        workspaces: list[int] = []
        launches: list[Launch] = []
        for op in self.block.ops:
            if isinstance(op, kernel.AllocOp):
                workspaces.append(self._workspace(op))
            elif isinstance(op, kernel.LaunchOp):
                printer, launch, lines = self._launch(op, len(launches))
                launches.append(launch)
                self.parts.append((printer, "\n".join(lines)))
            elif op.has_trait(Pure) or isinstance(op, _DIVISIONS):
                self.outside.append(op)
            elif not isinstance(op, func.ReturnOp):
                raise UnsupportedError(f"a kernel for {self.language.title} is launches only, got {op.name}")
        name, arguments = self.function.sym_name.data, arguments_of(self.function)
        return KernelSource(name, arguments, tuple(workspaces), tuple(launches), self.source(self.parts))

    def source(self, parts: Sequence[tuple[KernelPrinter, str]]) -> str:
        """Some launches as one source, with what they need of the preamble."""
        kinds = {kind for printer, _ in parts for kind in printer.kinds}
        vectors = {vector for printer, _ in parts for vector in printer.vectors}
        helpers = {helper for printer, _ in parts for helper in printer.helpers}
        preamble = "\n".join(self.language.preamble(kinds, vectors, helpers))
        return "\n\n".join([text for text in (preamble, *(text for _, text in parts)) if text]) + "\n"

    def _workspace(self, op: kernel.AllocOp) -> int:
        if scope_of(op) != "global":
            raise UnsupportedError(f"buffer '{op.label.data}' of scope {scope_of(op)} is outside of a launch")
        self.numbers[op.buffer] = len(self.numbers)
        self.labels.append(op.buffer.name_hint or op.label.data)
        return _elements(op.buffer) * bytes_of(element_name(op.buffer.type))

    def _launch(self, op: kernel.LaunchOp, number: int) -> tuple[KernelPrinter, Launch, list[str]]:
        name = f"{self.name}_k{number}"
        names = Names([name, *self.language.reserved])
        p = KernelPrinter(self.language, self.operations, self.long_index, op, names)
        for buffer, label in zip(self.numbers, self.labels, strict=True):
            p.buffers[buffer] = Buffer(label, element_name(buffer.type), "global", _elements(buffer))
        inside = list(operations_in(op))
        self._name_buffers(p, inside)
        maps = self._maps(p, inside)
        static, dynamic, declarations = self._shared(p, inside)
        counters = self._counters(p, inside, name)
        self._print_outside(p, inside)
        p.block(op.body.block)
        parameters = [self.language.tensor_map_parameter(each) for each in p.maps.values()]
        parameters += [
            self.language.parameter(
                p.buffers[buffer].kind, p.buffers[buffer].name, buffer not in p.stored, buffer not in p.passed
            )
            for buffer in self.numbers
            if buffer in p.used
        ]
        shuffles = any(isinstance(inner, kernel.ShuffleOp) for inner in inside)
        used = tuple(number for buffer, number in self.numbers.items() if buffer in p.used)
        waits = self.language.launch_wait
        launch = Launch(
            name, op.grid_size, op.block_size, used, static, dynamic, shuffles, maps, bool(counters), bool(waits)
        )
        head = [f"{INDENT}{line}" for line in (*declarations, *([waits] if waits else ()), *p.head)]
        opening = self.language.kernel_head(name, parameters, op.block_size, op.blocks_per_sm, op.cluster_size)
        return p, launch, [*counters, opening, *head, *p.lines, "}"]

    def _name_buffers(self, p: KernelPrinter, inside: Sequence[Operation]) -> None:
        """Give the buffers that this launch uses their names, arguments first."""
        used = {operand for inner in inside for operand in inner.operands if operand in self.numbers}
        for buffer in self.numbers:
            if buffer in used:
                old = p.buffers[buffer]
                p.buffers[buffer] = Buffer(p.names.fresh(old.name), old.kind, old.scope, old.size)

    def _maps(self, p: KernelPrinter, inside: Sequence[Operation]) -> tuple[TensorMap, ...]:
        """Name the tensor maps of a launch, one for each array and box."""
        keys = dict.fromkeys(inner.map_key for inner in inside if isinstance(inner, kernel.BulkCopyOp))
        found = []
        for key in keys:
            buffer, shape, box, swizzle, rounds, walk = key
            p.maps[key] = p.names.fresh(f"{p.buffers[buffer].name}_boxes")
            element = "tf32" if rounds else p.buffers[buffer].kind
            found.append(TensorMap(self.numbers[buffer], element, shape, box, swizzle, walk))
        if found:
            p.helpers.add("tensor_map -")
        return tuple(found)

    def _shared(self, p: KernelPrinter, inside: Sequence[Operation]) -> tuple[int, int, list[str]]:
        """Declare the shared buffers of a launch; returns their bytes, fixed and sized at the launch."""
        allocations = [a for a in inside if isinstance(a, kernel.AllocOp) and scope_of(a) == "shared"]
        offsets, end = kernel.shared_offsets(allocations)
        is_dynamic = end > self.static_shared_limit
        if is_dynamic:
            p.helpers.add(f"dynamic {max(a.align_bytes for a in allocations)}")
        lines = []
        for allocation, offset in offsets.items():
            kind, size = element_name(allocation.buffer.type), _elements(allocation.buffer)
            name = p.names.fresh(allocation.buffer.name_hint or allocation.label.data)
            p.buffers[allocation.buffer] = Buffer(name, kind, "shared", size)
            place = offset if is_dynamic else None
            lines.append(self.language.shared_declaration(kind, name, size, place, allocation.align_bytes))
        return (0, end, lines) if is_dynamic else (end, 0, lines)

    def _counters(self, p: KernelPrinter, inside: Sequence[Operation], kernel_name: str) -> list[str]:
        """Declare the counters of a launch, which belong to the program."""
        lines = []
        for op in inside:
            if isinstance(op, kernel.AllocOp) and scope_of(op) == kernel.COUNTERS:
                name, size = p.names.fresh(f"{kernel_name}_{identifier(op.label.data)}"), _elements(op.buffer)
                p.buffers[op.buffer] = Buffer(name, element_name(op.buffer.type), "global", size)
                lines.append(self.language.counters_declaration(name, size))
        return lines

    def _print_outside(self, p: KernelPrinter, inside: Sequence[Operation]) -> None:
        """Print the arithmetic before the launches that this one uses, each value where it is used."""
        needed: set[Operation] = set()
        waiting: list[SSAValue] = [operand for inner in inside for operand in inner.operands]
        while waiting:
            owner = waiting.pop().owner
            if isinstance(owner, Operation) and owner.parent is self.block and owner not in needed:
                needed.add(owner)
                waiting += owner.operands
        for op in self.outside:
            if op in needed:
                self.operations[type(op)](p, op)


def _buffers(function: func.FuncOp) -> Sequence[SSAValue]:
    allocations = [op.buffer for op in operations_in(function) if type(op) is kernel.AllocOp]
    return [*function.body.block.args, *allocations]


def _elements(buffer: SSAValue) -> int:
    return math.prod(cast(MemRefType[Attribute], buffer.type).get_shape())
