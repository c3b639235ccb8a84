"""Groups on blocks of the rows of their tensors: copies of each, which compute some of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.ir import Region, SSAValue

from ...dialects.graph import ApplyOp, ConstantOp, GroupOp, YieldOp, group_body
from ..runtime.plan import ALIGNMENT
from ..types import dtype_of, infer, shape_of
from ._rewrite import Before, below_views, is_elementwise, option, replace

PRODUCTS = ("dense", "matmul")
GATES = ("lstm_gates", "gru_gates")
Blocks = dict[SSAValue, list[SSAValue]]
"""Tensors -> their blocks of rows."""


def has_rows(group: GroupOp, rows: int, blocks: int) -> bool:
    """True where each row of a group's results is computed from that row of its inputs, and from constants.

    And where blocks of rows begin on multiples of ALIGNMENT bytes.
    """
    moving = set[SSAValue]()
    for argument, given in zip(group.body.block.args, group.inputs, strict=True):
        if isinstance(below_views(given).owner, ConstantOp):
            continue
        if not _is_cut(argument, rows, blocks):
            return False
        moving.add(argument)
    for op in group.body.block.ops:
        if isinstance(op, ApplyOp) and not moving.isdisjoint(op.inputs):
            if not _keeps_rows(op, moving, rows):
                return False
            moving.update(op.outputs)
    last = group.body.block.last_op
    assert isinstance(last, YieldOp)
    return all(value in moving and _is_cut(value, rows, blocks) for value in last.values)


def split_rows(group: GroupOp, rows: int, count: int, made: Blocks) -> list[GroupOp]:
    """Put a group for each block of rows in the place of one, and what they give, joined, in that of its results.

    Blocks of other results are read where `made` has them; those of this group are added to it.
    """
    before = Before(group)
    copies = []
    for number in range(count):
        given = [
            value
            if isinstance(below_views(value).owner, ConstantOp)
            else _block_of(before, value, rows, count, number, made)
            for value in group.inputs
        ]
        copies.append(_copy(group, given))
    assert group.parent is not None
    for copy in copies:
        group.parent.insert_op_before(copy, group)
    results = []
    for position, value in enumerate(group.outputs):
        parts: list[SSAValue] = [copy.outputs[position] for copy in copies]
        for part in parts:
            part.name_hint = value.name_hint
        results.append(before.apply("joined", *parts, shape=shape_of(value)))
        made[results[-1]] = parts
    replace(group, results)
    return copies


def _row_axis(value: SSAValue, rows: int) -> int | None:
    """Return the axis of so many rows, ahead of which no axis has more than one element; None where there is none."""
    shape = shape_of(value)
    axis = next((d for d, extent in enumerate(shape) if extent != 1), len(shape))
    return axis if axis < len(shape) - 1 and shape[axis] == rows else None


def _is_cut(value: SSAValue, rows: int, blocks: int) -> bool:
    """True for a tensor of so many rows whose blocks begin where tensors may."""
    nbytes = prod(shape_of(value)) // blocks * np.dtype(dtype_of(value)).itemsize
    return _row_axis(value, rows) is not None and not nbytes % ALIGNMENT


def _keeps_rows(op: ApplyOp, moving: set[SSAValue], rows: int) -> bool:
    """True where an operator computes each row from that row of what is moving, and from all of the rest."""
    name, axis = op.operator.data, _row_axis(op.outputs[0], rows)
    if axis is None or any(_row_axis(v, rows) is None for v in op.inputs if v in moving):
        return False
    if name in PRODUCTS:
        turned = name == "matmul" and option(op, "transpose_a")
        return axis == 0 and not turned and op.inputs[0] in moving and moving.isdisjoint(op.inputs[1:])
    if name in GATES:
        return all((v in moving) == (len(shape_of(v)) > 1) for v in op.inputs)
    if name == "strided_slice":
        axes = option(op, "axes")
        return axes is not None and all(int(a) % len(shape_of(op.inputs[0])) > axis for a in axes)
    behind = len(shape_of(op.outputs[0])) - axis
    return is_elementwise(op) and all(
        len(shape_of(v)) - (_row_axis(v, rows) or 0) == behind
        if v in moving
        else len(shape_of(v)) < behind or shape_of(v)[-behind] == 1
        for v in op.inputs
    )


def _block_of(before: Before, value: SSAValue, rows: int, blocks: int, number: int, made: Blocks) -> SSAValue:
    shape = [*shape_of(value)]
    axis = _row_axis(value, rows)
    assert axis is not None
    shape[axis] //= blocks
    if (base := below_views(value)) in made:
        return before.reshape(made[base][number], shape)
    return before.apply("part", value, start=number * prod(shape), shape=shape)


def _copy(group: GroupOp, given: Sequence[SSAValue]) -> GroupOp:
    """A group of the same operators on other inputs."""
    body = group_body([value.type for value in given])
    names: dict[SSAValue, SSAValue] = dict(zip(group.body.block.args, body.args, strict=True))
    results: list[SSAValue] = []
    for op in group.body.block.ops:
        if isinstance(op, ConstantOp):
            copy = op.clone()
            body.add_op(copy)
            names[op.result] = copy.result
        elif isinstance(op, ApplyOp):
            inputs, options = [names[v] for v in op.inputs], dict(op.options.values)
            kinds = infer(op.operator.data, [v.type for v in inputs], options)
            made = ApplyOp(op.operator.data, inputs, options, kinds, op.outputs[0].name_hint)
            body.add_op(made)
            names.update(zip(op.outputs, made.outputs, strict=True))
        else:
            assert isinstance(op, YieldOp)
            results = [names[v] for v in op.values]
            body.add_op(YieldOp(operands=[results]))
    return GroupOp(group.label.data, given, Region(body), [v.type for v in results])
