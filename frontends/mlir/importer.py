"""From a function of MLIR to a network, operation by operation."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.graph import ApplyOp, ConstantOp
from ...graph.network import Network, Value
from .artifact import text_of
from .discovery import converters
from .errors import MlirImportError, UnsupportedOperation
from .node import Builder, Inline, Node
from .reader import Program, name_of, read_text
from .values import attributes, is_empty, symbol, tensor_dtype, tensor_shape

_DEEPEST = 64
"""Calls of functions within each other."""


def from_mlir(source: Any, function: str | None = None, name: str | None = None) -> Network:
    """Import a function of an MLIR program as a network: StableHLO (with CHLO), linalg on tensors, TOSA.

    `source` is text in the generic or the pretty form, a path, the bytes of a portable artifact, or a module, of xDSL
    or of MLIR's Python bindings. `function` names one of several; else it is `main`, or the first that is public.
    Functions that it calls become part of it. MlirImportError lists, with lines, all that is not supported.
    """
    program = _program(source)
    found = _function(program, function)
    return import_function(program, found, name or found.sym_name.data)


def _program(source: Any) -> Program:
    if isinstance(source, ModuleOp):
        return Program(source)
    if isinstance(source, os.PathLike) or (isinstance(source, str) and source.endswith(".mlir") and "\n" not in source):
        path = Path(source)
        return read_text(text_of(path.read_bytes(), f"'{path}'"), f"'{path}'")
    if isinstance(source, bytes | bytearray):
        return read_text(text_of(bytes(source), "the program"), "the program")
    if isinstance(source, str):
        return read_text(source, "the program")
    operation = getattr(source, "operation", None)
    if operation is not None and hasattr(operation, "get_asm"):  # a module of MLIR's bindings, whatever they belong to
        return read_text(operation.get_asm(print_generic_op_form=True), "the program")
    raise TypeError(f"from_mlir takes text, a path, bytes or a module, got {type(source).__name__}")


def _function(program: Program, wanted: str | None) -> FuncOp:
    known = program.functions
    if wanted is not None and wanted not in known:
        raise MlirImportError("the program", [f"there is no function '{wanted}'; there are {', '.join(known)}"])
    bodies = {n: f for n, f in known.items() if f.body.blocks}
    public = [f for f in bodies.values() if f.sym_visibility is None or f.sym_visibility.data != "private"]
    found = known.get(wanted) if wanted is not None else bodies.get("main", next(iter(public), None))
    if found is None or not found.body.blocks:
        raise MlirImportError("the program", [f"function '{wanted}' has no body" if wanted else "there is no function"])
    return found


def import_function(program: Program, function: FuncOp, name: str) -> Network:
    """Return a function as a network; MlirImportError lists what is in the way."""
    importer = _Importer(program, Network(re.sub(r"\W", "_", name) or "main"))
    importer.run(function)
    if importer.reasons:
        raise MlirImportError(f"function '{function.sym_name.data}'", list(importer.reasons))
    return importer.net


class _RefusedError(Exception):
    """An operation cannot be converted for reasons that are known already."""


@dataclass
class _Importer:
    """One import: a value of MLIR is a value of the network, or missing where its operation was refused."""

    program: Program
    net: Network
    reasons: dict[str, None] = field(default_factory=dict)
    depth: int = 0
    indices: Sequence[Value] = ()

    def run(self, function: FuncOp) -> None:
        arguments = self._inputs(function)
        results = self.block(function.body.block, arguments) if len(function.body.blocks) == 1 else None
        if results is None:
            self.reasons.setdefault(f"function '{function.sym_name.data}' has several blocks: control flow is not read")
        if results is None or self.reasons:
            return
        if any(value is None for value in results):
            self.reasons.setdefault("a result was not computed")
            return
        self._outputs(function, [value for value in results if value is not None])
        drop_unused(self.net)

    def _inputs(self, function: FuncOp) -> list[Value | None]:
        found: list[Value | None] = []
        for number, argument in enumerate(function.body.block.args):
            wanted = _marked(function.arg_attrs, number) or argument.name_hint or f"arg{number}"
            name, count = wanted, 0
            while name in self.net.input_names:
                count += 1
                name = f"{wanted}_{count}"
            try:
                found.append(self.net.input(name, tensor_shape(argument.type), tensor_dtype(argument.type)))
            except (UnsupportedOperation, ValueError) as error:
                place = self.program.place(function)
                self.reasons.setdefault(f"{place}: argument {number} of '{function.sym_name.data}': {error}")
                found.append(None)
        return found

    def _outputs(self, function: FuncOp, results: Sequence[Value]) -> None:
        if not results:
            self.reasons.setdefault(f"function '{function.sym_name.data}' returns nothing")
            return
        alone = len(results) == 1
        names = [_marked(function.res_attrs, k) or ("output" if alone else f"output{k}") for k in range(len(results))]
        taken: list[Value] = []
        for value in results:
            plain = isinstance(value.ssa.owner, ApplyOp) and all(value.ssa is not t.ssa for t in taken)
            taken.append(value if plain else self.net.apply("identity", value))
        self.net.output(*taken, names=names)

    def block(self, block: Block, arguments: Sequence[Value | None]) -> list[Value | None] | None:
        """Convert the operations of a block; returns what its last operation returns."""
        values: dict[SSAValue, Value | None] = dict(zip(block.args, arguments, strict=True))
        return self._operations(block, values)

    def _operations(self, block: Block, values: dict[SSAValue, Value | None]) -> list[Value | None] | None:
        for op in block.ops:
            if isinstance(op, ReturnOp) or name_of(op) in _RETURNS:
                return [values.get(v) for v in op.operands]
            results = self._results(op, values)
            for position, result in enumerate(op.results):
                values[result] = results[position] if results is not None and position < len(results) else None
        return []

    def _results(self, op: Operation, values: dict[SSAValue, Value | None]) -> Sequence[Value | None] | None:
        if op.results and all(is_empty(r.type) for r in op.results):
            return None  # concatenations leave it out
        kept = [v for v in op.operands if name_of(op) not in _JOINS or not is_empty(v.type)]
        operands = [values.get(v) for v in kept]
        missing = any(value is None for value in operands)
        try:
            if (empty := next((v for v in kept if is_empty(v.type)), None)) is not None:
                raise UnsupportedOperation(f"it reads {empty.type}, which has no elements")
            if isinstance(op, CallOp) or name_of(op) == "func.call":
                return None if missing else self._call(op, [v for v in operands if v is not None])
            converter = converters().get(name_of(op))
            if converter is None:
                raise UnsupportedOperation("it is not supported")
            if missing:
                return None
            label = next((r.name_hint for r in op.results if r.name_hint), "") or ""
            node = Node(
                op,
                Builder(self.net, label),
                self.program,
                [v for v in operands if v is not None],
                partial(self._inlined, op, values),
                self.indices,
                partial(self._with_indices, op, values),
            )
            made = converter(node)
        except _RefusedError:
            return None
        except (UnsupportedOperation, ValueError, OverflowError) as error:
            self.reasons.setdefault(f"{self.program.place(op)}: {error}")
            return None
        except (IndexError, KeyError):  # an attribute names an axis or a place that is not there
            self.reasons.setdefault(f"{self.program.place(op)}: it is malformed: attributes do not fit its operands")
            return None
        results = [made] if isinstance(made, Value) else list(made or ())
        if not self.indices:  # within a body on whole tensors, types say what one element is
            self._check(op, results)
        return results

    def _check(self, op: Operation, results: Sequence[Value]) -> None:
        for result, value in zip(op.results, results, strict=False):
            try:
                wanted = tensor_dtype(result.type), tensor_shape(result.type)
            except UnsupportedOperation:
                continue
            if (value.dtype, value.shape) != wanted:
                self.reasons.setdefault(
                    f"{self.program.place(op)}: its type says {wanted[0]}{list(wanted[1])}, what it computes is "
                    f"{value.dtype}{list(value.shape)}"
                )

    def _call(self, op: Operation, operands: Sequence[Value]) -> Sequence[Value | None] | None:
        callee = attributes(op).get("callee")
        name = symbol(callee) if isinstance(callee, SymbolRefAttr) else str(callee)
        return self._inlined_function(op, name, operands)

    def _inlined_function(self, op: Operation, name: str, operands: Sequence[Value]) -> Sequence[Value | None] | None:
        function = self.program.functions.get(name)
        if function is None or len(function.body.blocks) != 1:
            raise UnsupportedOperation(f"function '{name}' has no body of one block")
        if self.depth >= _DEEPEST:
            raise UnsupportedOperation(f"calls are nested more than {_DEEPEST} deep at '{name}'")
        self.depth += 1
        try:
            return self.block(function.body.block, operands)
        finally:
            self.depth -= 1

    def _inlined(
        self, op: Operation, around: Mapping[SSAValue, Value | None], where: Block | str, operands: Sequence[Value]
    ) -> Sequence[Value]:
        """Convert a block that may read the values around it, or a function by name, on tensors; for converters."""
        before = len(self.reasons)
        if isinstance(where, str):
            made = self._inlined_function(op, where, operands)
        else:
            made = self._operations(where, {**around, **dict(zip(where.args, operands, strict=True))})
        if made is None or any(v is None for v in made):
            if len(self.reasons) > before:
                raise _RefusedError
            raise UnsupportedOperation("its region cannot be converted")
        return [v for v in made if v is not None]

    def _with_indices(self, op: Operation, around: Mapping[SSAValue, Value | None], indices: Sequence[Value]) -> Inline:
        """Return what converts blocks in which places of a space can be asked for."""

        def inline(where: Block | str, operands: Sequence[Value]) -> Sequence[Value]:
            before, self.indices = self.indices, indices
            try:
                return self._inlined(op, around, where, operands)
            finally:
                self.indices = before

        return inline


_RETURNS = {"func.return", "stablehlo.return", "linalg.yield", "tensor.yield", "tosa.yield", "mhlo.return"}


_JOINS = {"stablehlo.concatenate", "tensor.concat", "tosa.concat"}


def _marked(given: ArrayAttr[DictionaryAttr] | None, number: int) -> str | None:
    """Return the name that an attribute of an argument or a result gives it."""
    if given is None or number >= len(given.data):
        return None
    label = given.data[number].data.get("lw.name")
    return label.data if isinstance(label, StringAttr) else None


def drop_unused(net: Network) -> None:
    """Erase operators and constants that nothing reads, with their values."""
    block = net.function.body.block
    for op in reversed(list(block.ops)):
        if isinstance(op, ApplyOp | ConstantOp) and not any(result.uses for result in op.results):
            if isinstance(op, ConstantOp):
                net.params.pop(op.label.data, None)
            block.erase_op(op)
