"""Functions of one front end's dialects as functions of the graph dialect, where they stand."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    f32,
    f64,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ....dialects.graph import ConstantOp
from ....graph.module import dense_values
from ....graph.network import Network
from ..errors import MlirImportError
from ..importer import import_function
from ..reader import Program, name_of
from ..values import symbol

_COMMON = {"func", "arith", "builtin"}


@dataclass(frozen=True)
class ConvertToGraph(ModulePass):
    """Functions of the dialects `dialects` alone (and func, arith) -> functions of lw_graph; the others stay.

    What such a function calls becomes part of it. Constants keep their values in the IR. A function that has an
    operation which is not supported fails the pass, or is left as it is where `skip` is set.
    """

    skip: bool = False
    dialects: ClassVar[frozenset[str]]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        program = Program(op)
        known = program.functions
        owned = {name: f for name, f in known.items() if f.body.blocks and _dialects(f) & self.dialects}
        owned = {name: f for name, f in owned.items() if _dialects(f) <= self.dialects | _COMMON}
        owned = {name: f for name, f in owned.items() if not _has_buffers(f)}
        owned = {name: f for name, f in owned.items() if all(_is_plain(c, known, self.dialects) for c in _callees(f))}
        made: dict[str, Network] = {}
        for function in known.values():
            if function.body.blocks and _dialects(function) <= self.dialects | _COMMON:
                _mend_bits(function)
        for name, function in owned.items():
            try:
                made[name] = import_function(program, function, name)
            except MlirImportError as error:
                if not self.skip:
                    raise PassFailedException(f"{self.name}: {error}") from error
        taken: set[str] = {c.label.data for c in op.walk() if isinstance(c, ConstantOp)}
        for name, network in made.items():
            _replace_body(known[name], network, taken)


def _dialects(function: FuncOp) -> set[str]:
    return {name_of(op).partition(".")[0] for block in function.body.blocks for op in block.walk()}


def _has_buffers(function: FuncOp) -> bool:
    return any(isinstance(v.type, MemRefType) for op in function.walk() for v in (*op.operands, *op.results))


def _callees(function: FuncOp) -> set[str]:
    return {symbol(op.callee) for op in function.walk() if isinstance(op, CallOp)}


def _is_plain(name: str, known: Mapping[str, FuncOp], dialects: Collection[str]) -> bool:
    """True for a function that can become part of its caller."""
    function = known.get(name)
    return function is not None and bool(function.body.blocks) and _dialects(function) <= {*dialects, *_COMMON}


_BITS: dict[Attribute, dict[float, float]] = {
    f32: {float(0x7F800000): math.inf, float(0xFF800000): -math.inf, float(0x7FC00000): math.nan},
    f64: {float(0x7FF0000000000000): math.inf, float(0xFFF0000000000000): -math.inf},
}
"""The value that xDSL 0.74 reads for the bits of infinities and NaN, `dense<0xFF800000>`: the integer of those bits."""


def _mend_bits(function: FuncOp) -> None:
    """Make infinities of splat constants that xDSL's parser took for integers."""
    for op in function.walk():
        for held in (op.attributes, op.properties):
            for key, given in held.items():
                if not isinstance(given, DenseIntOrFPElementsAttr) or not given.is_splat():
                    continue
                kind: Any = given.type
                number: Any = next(iter(given.iter_values()))
                meant = _BITS.get(kind.get_element_type(), {}).get(number)
                if meant is not None:
                    held[key] = DenseIntOrFPElementsAttr.from_list(kind, [meant] * len(given))


def _replace_body(function: FuncOp, network: Network, taken: set[str]) -> None:
    """Give a function the body of a network, whose constants get names of their own and their values."""
    for op in network.module.walk():
        if not isinstance(op, ConstantOp):
            continue
        array = network.params.get(op.label.data)
        if array is not None:
            op.values = dense_values(op.result.type, array)
        label, count = op.label.data, 0
        while label in taken:
            count += 1
            label = f"{op.label.data}_{count}"
        taken.add(label)
        op.label = StringAttr(label)
    body = network.function.body
    block = body.block
    body.detach_block(block)
    function.body.erase_block(function.body.block)
    function.body.add_block(block)
    function.function_type = network.function.function_type
    function.arg_attrs = _merged(function.arg_attrs, network.function.arg_attrs)
    function.res_attrs = _merged(function.res_attrs, network.function.res_attrs)


def _merged(
    own: ArrayAttr[DictionaryAttr] | None, added: ArrayAttr[DictionaryAttr] | None
) -> ArrayAttr[DictionaryAttr] | None:
    """Return attributes of arguments or results with those that name them."""
    if own is None or added is None:
        return added
    return ArrayAttr([DictionaryAttr({**a.data, **b.data}) for a, b in zip(own.data, added.data, strict=True)])
