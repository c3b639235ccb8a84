"""The pass that computes several products of one tensor as one, whose parts lie one behind the other in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects.graph import ApplyOp
from ...dialects.numpy_types import FLOATS
from ..operator import is_view
from ..runtime.plan import ALIGNMENT
from ..types import dtype_of, shape_of
from ._rewrite import (
    Before,
    applied,
    is_constant,
    is_elementwise,
    networks,
    put_in_order,
    readers,
    replace,
    used_once,
    users,
)
from ._units import is_on_units
from .split_products import MOST_ROWS, chain_behind, parts_read

_TILE = 128
"""Rows, and columns, of the largest tile of a product that a block of threads computes. A choice: tiles of warp groups
are 64 to 128 rows of 64 to 256 columns."""


@dataclass(frozen=True)
class JoinProducts(ModulePass):
    """dense(x, w), dense(x, v) -> parts of transpose(dense(x, w and v)), and so slices of the columns of a product.

    Queries, keys and values of attention are one product then, its parts ahead of its rows, as
    `lw-graph-fold-transposes` writes them on matrix units and `lw-graph-place-slices` reads them, without a kernel. In
    float32 on other lanes it is a batch of products of one tensor, as their sums in registers tile each axis that they
    write. For products of more rows than `lw-graph-split-products` takes, joined where one has not a tile for each of
    the `cores`: 128 rows of 768 columns have 6 for the 132 of an H200. Not joined are those that an elementwise
    operator reads, which shares a kernel with one, and such as have constants added to some.

    Products of one row, of any floats and of any columns, are slices of one where these start on multiples of ALIGNMENT
    bytes: of a token, queries, keys and values. Not joined are those that elementwise operators alone read.
    """

    name: ClassVar[str] = "lw-graph-join-products"
    cores: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in applied(op):
            if _is_one(found):
                _put_parts_ahead(found)
        alike: dict[object, list[ApplyOp]] = {}
        for found in applied(op):
            rows, columns = (*shape_of(found.outputs[0]), 0, 0)[:2]
            tiles = -(-rows // _TILE) * -(-columns // _TILE)
            if found.operator.data == "dense" and _is_one(found) and tiles < self.cores and _is_joined(found):
                weight, biased = found.inputs[1], _bias_of(found) is not None
                alike.setdefault((found.inputs[0], shape_of(weight), biased), []).append(found)
        for products in alike.values():
            if len(products) > 1 and _is_aligned(products[0].outputs[0], 1):
                _join(products)
        for tokens in _of_one_row(applied(op)):
            _join_row(tokens)
        for function in networks(op):
            put_in_order(function.body.block)


def _is_one(op: ApplyOp) -> bool:
    """True for a product with constant weights that may be joined, or told apart, by its type and its rows."""
    if op.operator.data not in ("dense", "matmul") or not is_constant(op.inputs[1]):
        return False
    fits = is_on_units(op) or dtype_of(op.outputs[0]) == "float32"
    return fits and shape_of(op.outputs[0])[0] > MOST_ROWS


def _is_aligned(value: SSAValue, parts: int) -> bool:
    return prod(shape_of(value)) // parts * np.dtype(dtype_of(value)).itemsize % ALIGNMENT == 0


def _put_parts_ahead(product: ApplyOp) -> None:
    """Have slices of a product's columns read the first axis of a transpose of it."""
    last = chain_behind(product)[-1]
    value, slices = last.outputs[0], list(users(last.outputs[0]))
    numbers = parts_read(slices, shape_of(value)[-1])
    parts = max(numbers, default=0) + 1
    if numbers and _is_aligned(value, parts):
        if is_on_units(product):
            turned = _turned(value, parts)
        elif _is_biased_alone(product):
            turned = _batch(Before(slices[0]), product, product.inputs[1], _added_to(product), parts)
        else:
            return
        for reader, number in zip(slices, numbers, strict=True):
            _replace_by_part(reader, turned, number)


def _is_biased_alone(product: ApplyOp) -> bool:
    """True where nothing is done with a product, but that a bias is added, before its columns are told apart."""
    return all(op in (product, _bias_of(product)) or is_view(op) for op in chain_behind(product))


def _turned(value: SSAValue, parts: int) -> SSAValue:
    """Return (M, P * N) as (P, M, N), right behind it."""
    owner = value.owner
    assert isinstance(owner, Operation) and owner.next_op is not None
    before, columns = Before(owner.next_op), shape_of(value)[-1]
    rows = prod(shape_of(value)) // columns
    apart = before.apply("reshape", value, shape=(rows, parts, columns // parts))
    return before.apply("transpose", apart, axes=(1, 0, 2))


def _replace_by_part(op: Operation, turned: SSAValue, number: int) -> None:
    before = Before(op)
    part = before.apply("strided_slice", turned, begin=[number], end=[number + 1], strides=[1], axes=[0])
    replace(op, [before.reshape(part, shape_of(op.results[0]))])


def _bias_of(product: ApplyOp) -> ApplyOp | None:
    """Return the operator that adds a constant of one element a column to a product."""
    value = product.outputs[0]
    if not used_once(value):
        return None
    (op,) = users(value)
    if not isinstance(op, ApplyOp) or op.operator.data != "add" or shape_of(op.outputs[0]) != shape_of(value):
        return None
    (bias,) = [v for v in op.inputs if v is not value]
    shape = shape_of(bias)
    return op if is_constant(bias) and shape and prod(shape) == shape[-1] == shape_of(value)[1] else None


def _is_joined(product: ApplyOp) -> bool:
    """True where no elementwise operator reads a product, but one that adds a bias."""
    last = _bias_of(product) or product
    return not any(map(is_elementwise, readers(last.outputs[0])))


def _join(products: Sequence[ApplyOp]) -> None:
    """Put one product in the place of several of the same tensor, and its parts in the place of their results."""
    biases, parts, first = [_bias_of(product) for product in products], len(products), products[0]
    if is_on_units(first):
        turned = _turned(_product_of_all(products), parts)
    else:
        before = Before(first)
        weight = before.apply("concatenate", *(p.inputs[1] for p in products), axis=0)
        turned = _batch(before, first, weight, _biases_of_all(before, products), parts)
    for number, (product, bias) in enumerate(zip(products, biases, strict=True)):
        _replace_by_part(bias or product, turned, number)


def _batch(before: Before, product: ApplyOp, weight: SSAValue, biases: SSAValue | None, parts: int) -> SSAValue:
    """Return a batch (P, M, N) of products as one with (P * N) columns, and biases as many."""
    factor = product.inputs[0]
    terms = shape_of(factor)[1]
    columns = prod(shape_of(weight)) // terms // parts
    if product.operator.data == "dense":  # threads side by side read columns side by side
        weight = before.apply("transpose", weight, axes=(1, 0))
    apart = before.reshape(weight, (terms, parts, columns))
    made = before.apply("einsum", factor, apart, equation="mk,kpn->pmn")
    return made if biases is None else before.apply("add", made, before.reshape(biases, (parts, 1, columns)))


def _added_to(product: ApplyOp) -> SSAValue | None:
    """Return the bias that is added to a product; None where there is none."""
    bias = _bias_of(product)
    return None if bias is None else next(v for v in bias.inputs if v is not product.outputs[0])


def _product_of_all(products: Sequence[ApplyOp]) -> SSAValue:
    """Add one product with the weights, and the biases, of several of the same tensor; its columns are theirs."""
    first, before = products[0], Before(products[0])
    made = before.apply("dense", first.inputs[0], before.apply("concatenate", *(p.inputs[1] for p in products), axis=0))
    biases = _biases_of_all(before, products)
    return made if biases is None else before.apply("add", made, biases)


def _biases_of_all(before: Before, products: Sequence[ApplyOp]) -> SSAValue | None:
    """Return what is added to several products, one behind the other; None where nothing is."""
    biases = [bias for product in products if (bias := _added_to(product)) is not None]
    flat = [before.reshape(bias, (prod(shape_of(bias)),)) for bias in biases]
    return before.apply("concatenate", *flat, axis=0) if flat else None


def _of_one_row(ops: Sequence[ApplyOp]) -> list[list[ApplyOp]]:
    """Return the products of one row that are to be one, in lists."""
    alike: dict[object, list[ApplyOp]] = {}
    for op in ops:
        if op.operator.data != "dense" or not is_constant(op.inputs[1]) or shape_of(op.outputs[0])[0] != 1:
            continue
        last = _bias_of(op) or op
        if dtype_of(op.outputs[0]) in FLOATS and _is_aligned(op.outputs[0], 1) and _is_read_otherwise(last.outputs[0]):
            alike.setdefault((op.inputs[0], last is op), []).append(op)
    return [products for products in alike.values() if len(products) > 1]


def _is_read_otherwise(value: SSAValue) -> bool:
    """True where something reads a value that shares no kernel with what gives it."""
    return not all(is_elementwise(op) for op in readers(value)) and not any(
        isinstance(op, ReturnOp) for op in readers(value)
    )


def _join_row(products: Sequence[ApplyOp]) -> None:
    """Put one product in the place of several of the same row, and slices of it in the place of their results."""
    biases, made = [_bias_of(product) for product in products], _product_of_all(products)
    start = 0
    for product, bias in zip(products, biases, strict=True):
        op, columns = bias or product, shape_of(product.outputs[0])[1]
        before = Before(op)
        part = before.apply("strided_slice", made, begin=[start], end=[start + columns], strides=[1], axes=[1])
        replace(op, [before.reshape(part, shape_of(op.outputs[0]))])
        start += columns
