"""The pass that brings feature maps into another layout."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ...dialects.graph import ApplyOp, ConstantOp
from ..operator import operator
from ..types import infer, shape_of
from ._rewrite import Before, erase, is_constant, networks, option, transposed_order

_WEIGHTS = {
    "conv2d": (2, 3, 1, 0),
    "conv3d": (2, 3, 4, 1, 0),
    "depthwise_conv2d": (2, 3, 0, 1),
    "conv2d_transpose": (2, 3, 0, 1),
}
"""Permutation of channels-first weights to channels-last ones."""


@dataclass(frozen=True)
class ConvertLayout(ModulePass):
    """Convolutions, pooling and resizing in the other layout -> the same in `layout`, NCHW or NHWC.

    What stands between them follows (elementwise operators, concatenation, padding, reductions that keep their axes),
    and what reads a tensor that the network itself brings from the new layout to the old one, and so do samples that
    are normalised as a row each, as by GroupNorm of one group; transposes are left where a layout meets one that must
    stay, and on weights, where `lw-graph-fold-constants` computes them. Inputs and outputs of the network keep their
    layout. With three spatial axes NCDHW and NDHWC are meant.
    """

    name: ClassVar[str] = "lw-graph-convert-layout"
    layout: str = "NHWC"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.layout not in ("NCHW", "NHWC"):
            raise PassFailedException(f"{self}: layout is NCHW or NHWC, got '{self.layout}'")
        for function in networks(op):
            _Conversion(function, self.layout == "NHWC").run()


@dataclass
class _Conversion:
    """Tensors of one function in the new layout, beside those in the old one."""

    function: FuncOp
    last: bool
    new: dict[SSAValue, SSAValue] = field(default_factory=dict)
    old: dict[SSAValue, SSAValue] = field(default_factory=dict)
    wide: dict[tuple[SSAValue, int], SSAValue] = field(default_factory=dict)

    def run(self) -> None:
        """Convert operators in order; what is not converted takes back what it needs."""
        done: list[Operation] = []
        for op in list(self.function.body.block.ops):
            if isinstance(op, ApplyOp) and self._convert(op):
                done.append(op)
                continue
            if isinstance(op, ApplyOp) and self._is_from_there(op):
                self.new[op.outputs[0]], self.old[op.outputs[0]] = op.inputs[0], op.outputs[0]
            for position, value in enumerate(op.operands):
                if value in self.new:
                    op.operands[position] = self._back(value, op)
        for op in reversed(done):
            erase(op)

    def _convert(self, op: ApplyOp) -> bool:
        if "layout" in operator(op.operator.data).defaults:
            wanted = self._other(str(option(op, "layout")))
            return wanted is not None and self._convert_window(op, wanted)
        rank = len(shape_of(op.outputs[0]))
        if (rows := self._normalised_rows(op, rank)) is not None:
            self._convert_rows(op, *rows)
            return True
        if rank not in (4, 5) or not any(v in self.new and len(shape_of(v)) == rank for v in op.inputs):
            return False
        return self._convert_between(op, rank)

    def _is_from_there(self, op: ApplyOp) -> bool:
        """True for a transpose that the network has itself, from the new layout to the old one."""
        rank = len(shape_of(op.outputs[0]))
        if op.operator.data != "transpose" or rank not in (4, 5) or op.inputs[0] in self.new:
            return False
        return transposed_order(op) == _inverse(self._axes(rank)) and not is_constant(op.inputs[0])

    def _other(self, layout: str) -> str | None:
        """Return the layout to convert an operator to; None where it has it."""
        spatial = layout.replace("N", "").replace("C", "")
        wanted = f"N{spatial}C" if self.last else f"NC{spatial}"
        return None if layout == wanted else wanted

    def _convert_window(self, op: ApplyOp, wanted: str) -> bool:
        """Convert a convolution, a pooling or a resize."""
        before, name = Before(op), op.operator.data
        inputs = [self._there(op.inputs[0], op)]
        for weight in op.inputs[1:]:
            axes = _WEIGHTS[name]
            inputs.append(before.apply("transpose", weight, axes=axes if self.last else _inverse(axes)))
        self._put(op, inputs, {**op.options.values, "layout": wanted})
        return True

    def _convert_between(self, op: ApplyOp, rank: int) -> bool:
        """Convert an operator that works in any layout."""
        found = operator(op.operator.data)
        if found.relayout is None or any(len(shape_of(v)) != rank for v in op.outputs):
            return False
        options = found.relayout({**found.defaults, **op.options.values}, self._axes(rank))
        vectors = "axis" in found.defaults and len(op.inputs) > 1 and op.operator.data != "concatenate"
        if options is None:
            return False
        inputs = [op.inputs[0] if vectors and k else v for k, v in enumerate(op.inputs)]
        moved = [self._there(v, op, rank) for v in (inputs[:1] if vectors else inputs)]
        self._put(op, [*moved, *op.inputs[1:]] if vectors else moved, options)
        return True

    def _normalised_rows(self, op: ApplyOp, rank: int) -> tuple[ApplyOp, SSAValue] | None:
        """Return a normalisation of whole samples, and what it is of, for the reshape that makes feature maps of it.

        The mean and the variance of a row are those of its elements in any order, but for rounding.
        """
        if op.operator.data != "reshape" or rank not in (4, 5):
            return None
        norm = op.inputs[0].owner
        if not isinstance(norm, ApplyOp) or not _is_plain_norm(norm):
            return None
        rows = norm.inputs[0].owner
        if not isinstance(rows, ApplyOp) or rows.operator.data != "reshape":
            return None
        shape, value = shape_of(op.outputs[0]), next((v for v in self.new if self.old.get(v) is rows.inputs[0]), None)
        is_whole = shape_of(rows.outputs[0])[-1] == prod(shape[1:])
        return (norm, value) if value is not None and is_whole and shape_of(value) == shape else None

    def _convert_rows(self, op: ApplyOp, norm: ApplyOp, value: SSAValue) -> None:
        """Normalise samples as rows of the new layout; those of the old one are dead where nothing else reads them."""
        before, moved = Before(op), self.new[value]
        rows = before.reshape(moved, shape_of(norm.inputs[0]))
        made = before.apply(norm.operator.data, rows, label=_hint(norm.outputs[0]), **norm.options.values)
        self.new[op.outputs[0]] = before.reshape(made, shape_of(moved))

    def _put(self, op: ApplyOp, inputs: list[SSAValue], options: dict[str, Any]) -> None:
        """Add the operator in the new layout."""
        name = op.operator.data
        kept = operator(name).options(name, options)
        kinds = infer(name, [v.type for v in inputs], kept)
        made = ApplyOp(name, inputs, kept, kinds, op.outputs[0].name_hint)
        assert op.parent is not None
        op.parent.insert_op_before(made, op)
        self.new.update(zip(op.outputs, made.outputs, strict=True))

    def _axes(self, rank: int) -> tuple[int, ...]:
        """Return the permutation from the old layout to the new one."""
        last = (0, *range(2, rank), 1)
        return last if self.last else _inverse(last)

    def _there(self, value: SSAValue, place: Operation, rank: int | None = None) -> SSAValue:
        """Return a value in the new layout, transposed where needed; lower ranks get axes of extent 1."""
        shape = shape_of(value)
        rank = len(shape) if rank is None else rank
        if len(shape) < rank:
            return self._wide(value, place, rank)
        if value in self.new:
            return self.new[value]
        moved = Before(place).apply("transpose", value, axes=self._axes(rank))
        if not isinstance(value.owner, ConstantOp):
            self.new[value] = moved
            self.old[value] = value
        return moved

    def _wide(self, value: SSAValue, place: Operation, rank: int) -> SSAValue:
        """Expand a value of lower rank in the old layout to full rank, then transpose it."""
        shape = shape_of(value)
        if len(shape) <= 1 and all(n == 1 for n in shape):
            return value
        if (value, rank) not in self.wide:
            before = Before(place)
            source = self._back(value, place) if value in self.new else value
            full = before.reshape(source, (*(1,) * (rank - len(shape)), *shape))
            self.wide[value, rank] = before.apply("transpose", full, axes=self._axes(rank))
        return self.wide[value, rank]

    def _back(self, value: SSAValue, place: Operation) -> SSAValue:
        """Return a value in the old layout, transposed back where needed."""
        if value not in self.old:
            moved = self.new[value]
            axes = _inverse(self._axes(len(shape_of(value))))
            back = Before(place).apply("transpose", moved, axes=axes, label=_hint(value))
            self.old[value] = back
        return self.old[value]


def _is_plain_norm(op: ApplyOp) -> bool:
    """True for a normalisation of the last axis without factors of its elements."""
    if op.operator.data not in ("layer_norm", "rms_norm") or len(op.inputs) != 1:
        return False
    last = len(shape_of(op.inputs[0])) - 1
    return option(op, "axis") in (-1, last, (-1,), (last,))


def _hint(value: SSAValue) -> str | None:
    return None if isinstance(value, BlockArgument) else value.name_hint


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axes.index(k) for k in range(len(axes)))
