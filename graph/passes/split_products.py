"""The pass that takes a product of few rows apart where its columns are read in equal parts, as gates of a cell are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp
from ..operator import is_view, operator
from ..types import infer, shape_of
from ._rewrite import Before, applied, is_elementwise, replace, used_once, users
from ._slices import Range, ranges_of

MOST_ROWS = 16
"""Rows of a product up to which it is taken apart: each result is a dot product of a warp then, which reads a row of
the weight for each row. A choice: 4 rows of 128 terms are measured (benchmarks/results/models-h200-2026-11-23.md)."""
MOST_PARTS = 8
"""Parts of a product, at most: each is a sum that a thread keeps. A choice: gates of recurrent cells are three or
four."""


@dataclass(frozen=True)
class SplitProducts(ModulePass):
    """`slice_g(f(dense(x, w), y))` -> `f(part_g of dense_parts(x, w), slice_g(y))` for elementwise f.

    Sums for the gates of a recurrent cell, or for both halves of a gated linear unit, come to be in one place then: all
    that is computed of them is a kernel. All that reads the product, by way of elementwise operators and views that
    keep its columns, are slices of equal parts of the columns. For GPUs: on CPUs a product of all columns is faster.
    """

    name: ClassVar[str] = "lw-graph-split-products"
    rows: int = MOST_ROWS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in applied(op):
            if found.operator.data == "dense" and shape_of(found.outputs[0])[0] <= self.rows:
                _split(found)


def _split(product: ApplyOp) -> None:
    chain = chain_behind(product)
    last = chain[-1].outputs[0]
    readers = list(users(last))
    numbers = parts_read(readers, shape_of(product.outputs[0])[1])
    if not numbers:
        return
    before, parts = Before(chain[-1]), max(numbers) + 1
    kept = operator("dense_parts").options("dense_parts", {"parts": parts})
    kinds = infer("dense_parts", [v.type for v in product.inputs], kept)
    made = ApplyOp("dense_parts", product.inputs, kept, kinds)
    block = chain[-1].parent
    assert block is not None
    block.insert_op_before(made, chain[-1])
    values = [_through(before, chain, value, number) for number, value in enumerate(made.outputs)]
    for each, number in zip(readers, numbers, strict=True):
        replace(each, [Before(each).reshape(values[number], shape_of(each.results[0]))])


def chain_behind(product: ApplyOp) -> list[ApplyOp]:
    """Return a product, and what is done with it before its columns are told apart."""
    chain, size = [product], prod(shape_of(product.outputs[0]))
    while used_once(chain[-1].outputs[0]):
        (step,) = users(chain[-1].outputs[0])
        if not isinstance(step, ApplyOp) or not (is_view(step) or is_elementwise(step)):
            break
        shape = shape_of(step.outputs[0])
        if prod(shape) != size or shape[-1:] != shape_of(product.outputs[0])[-1:]:
            break
        given = [shape_of(v) for v in step.inputs if v is not chain[-1].outputs[0]]
        if not all(prod(s[:-1]) == 1 or s[:-1] == shape[:-1] for s in given):
            break  # one that is stretched along some of what are rows here
        chain.append(step)
    return chain


def parts_read(readers: Sequence[Operation], columns: int) -> list[int]:
    """Return which part of the columns each reader takes; none where they are not slices of all of several parts."""
    numbers: list[int] = []
    for op in readers:
        if not isinstance(op, ApplyOp) or op.operator.data != "strided_slice" or (ranges := ranges_of(op)) is None:
            return []
        *others, own = ranges
        shape = shape_of(op.inputs[0])
        whole = all(r == Range(0, 1, n) for r, n in zip(others, shape, strict=False))
        if not whole or own.step != 1 or columns % own.taken or own.start % own.taken:
            return []
        if own.taken != shape_of(readers[0].results[0])[-1]:
            return []
        numbers.append(own.start // own.taken)
    width = shape_of(readers[0].results[0])[-1] if readers else columns
    parts = columns // width
    return numbers if 1 < parts <= MOST_PARTS and set(numbers) == set(range(parts)) else []


def _through(before: Before, chain: Sequence[ApplyOp], value: SSAValue, number: int) -> SSAValue:
    """Return what a chain makes of the product, of one of its parts."""
    product, *steps = chain
    columns, width = shape_of(product.outputs[0])[1], shape_of(value)[1]

    def operand(given: SSAValue) -> SSAValue:
        shape = shape_of(given)
        if prod(shape) == 1:
            return given
        rows = before.reshape(given, (prod(shape[:-1]), shape[-1]))
        if shape[-1] != columns:
            return rows
        start = number * width
        return before.apply("strided_slice", rows, begin=[start], end=[start + width], strides=[1], axes=[1])

    for previous, step in zip(chain, steps, strict=False):
        if not is_view(step):
            inputs = [value if v is previous.outputs[0] else operand(v) for v in step.inputs]
            options: dict[str, Any] = dict(step.options.values)
            value = before.apply(step.operator.data, *inputs, **options)
    return value
