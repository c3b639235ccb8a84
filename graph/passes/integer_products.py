"""The pass that computes quantised networks on integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, ClassVar, TypeAlias

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.transforms.dead_code_elimination import DeadCodeElimination
from xdsl.utils.exceptions import PassFailedException

from ...dialects.graph import ApplyOp
from ..operator import Kind, is_view, operator
from ..types import dtype_of, shape_of
from ._channels import CHANNELS, channel_axis
from ._linear import Integers, Linear, computed, linear, scaled
from ._rewrite import Before, applied, is_constant, networks, number_of, option, with_options
from ._rewrite import replace as put
from .sink_views import SinkViews

WORDS = ("int16", "uint8", "int8")
"""Integers that data are kept in, for products with weights: with int16 ones, or with those of int8."""
Zero: TypeAlias = "int | SSAValue"
"""A zero point: a number, or a tensor of one element, int32."""
GROUP = 4
"""Channels that instructions take at a time at most: dot products of bytes take 4, those of int16 take 2."""
_QUANTISED = ("dequantize", "center")
_BYTES = ("int8", "uint8")
_PADDED = ("conv2d", "conv3d", "depthwise_conv2d")
_PRODUCTS = (*_PADDED, "dense", "matmul", "batch_matmul")
_MOVING = ("transpose", "strided_slice", "concatenate", "flip", "max_pool", "global_max_pool")
"""Operators whose results are elements of their inputs, beside views."""


@dataclass(frozen=True)
class IntegerProducts(ModulePass):
    """product(dequantize(x), dequantize(w)) -> dequantize(product(x, w)), quantize(...) -> saturate(sum of integers).

    Products are convolutions and matrix products of bytes that have one scale, the weights' also one for each output
    channel; their sums are int32, and exact. What lies between them and the next `quantize`, or between that and
    quantised tensors (factors, summands, relu, limits), becomes a sum of integers times constants that is rounded once,
    where the tools that quantised the network round before and after each operator: results differ by one quantisation
    step at most. Moves of elements and maxima are of integers. `words` are the integers of data in between: int16 less
    their zero points, or bytes with zero points, which convolutions pad with and which products subtract, times
    the sums of the weights, from theirs. Products of bytes that no such weights go with are of int16.
    """

    name: ClassVar[str] = "lw-graph-integer-products"
    words: str = "int16"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.words not in WORDS:
            raise PassFailedException(f"{self}: words are one of {', '.join(WORDS)}, got '{self.words}'")
        if not any(found.operator.data in _QUANTISED for found in applied(op)):
            return
        SinkViews().apply(ctx, op)
        DeadCodeElimination().apply(ctx, op)  # or what is left of those views would read values, too
        for function in networks(op):
            _Conversion(function, self.words).run()


@dataclass
class _Conversion:
    """Tensors of one function as integers.

    `wide` has the integers that stand for values of single precision, `whole` words with their zero point in the place
    of bytes with theirs, `centred` words with their zero point whose differences values of int16 are.
    """

    function: FuncOp
    words: str
    wide: dict[SSAValue, Integers] = field(default_factory=dict)
    whole: dict[SSAValue, tuple[SSAValue, int, int]] = field(default_factory=dict)
    centred: dict[SSAValue, tuple[SSAValue, Zero]] = field(default_factory=dict)

    def run(self) -> None:
        """Convert operators in order."""
        rules: dict[str, Callable[[ApplyOp], None]] = {
            "quantize": self._quantize,
            "dequantize": self._dequantize,
            "center": self._center,
            **dict.fromkeys(_PRODUCTS, self._product),
            **dict.fromkeys(_MOVING, self._move),
            "add": self._add,
        }
        for op in [op for op in self.function.body.block.ops if isinstance(op, ApplyOp)]:
            rule = rules.get(op.operator.data)
            if rule is not None:
                rule(op)
            elif is_view(op):
                self._move(op)

    def _quantize(self, op: ApplyOp) -> None:
        """Keep quantised numbers in words; the bytes themselves are made of them for whoever reads these."""
        dtype, point = dtype_of(op.outputs[0]), _point(op, 2)
        if dtype not in _BYTES or point is None or not is_constant(op.inputs[1]):
            return
        before, limits = Before(op), np.iinfo(dtype)
        zero = self._zero(dtype, point)
        same = self.wide.get(op.inputs[0])
        if same is not None and _is_like(same, Integers(same.value, op.inputs[1], zero, dtype)):
            return self._keep(op, same.value, zero, point)
        shift = point - zero
        low, high = limits.min - shift, limits.max - shift
        data, scale = op.inputs[:2]
        form = linear(before, data, self.wide) if dtype_of(data) == "float32" else None
        bounds = None if form is None else _bounds(form, number_of(scale), zero, low, high)
        if form is None or bounds is None:
            rounded = before.apply("divide", data, scale)
        else:
            rounded, (low, high) = computed(before, scaled(before, form, _reciprocal(before, scale))), bounds
        made = before.apply("saturate", rounded, zero=zero, dtype=self.words, low=low, high=high)
        self._keep(op, made, zero, point)

    def _keep(self, op: ApplyOp, made: SSAValue, zero: int, point: int) -> None:
        """Put words in the place of bytes, which are made of them where something reads these."""
        before, dtype, shift = Before(op), dtype_of(op.outputs[0]), point - zero
        result = made
        if shift or dtype != self.words:
            sums = before.apply("add", before.apply("cast", made, dtype="int16"), Before(op).number(shift, "int16"))
            result = before.apply("cast", sums, dtype=dtype)
        self.whole[result] = made, zero, point
        put(op, [result])

    def _zero(self, dtype: str, point: int) -> int:
        """Return the zero point in words of bytes that have another one."""
        return 0 if self.words == "int16" else point - np.iinfo(dtype).min + np.iinfo(self.words).min

    def _dequantize(self, op: ApplyOp) -> None:
        data, scale = op.inputs[:2]
        point = _point(op, 2)
        if dtype_of(data) not in _BYTES or not is_constant(scale):
            return
        if point is None:  # one of each channel
            if is_constant(data) and is_constant(op.inputs[2]):
                value = Before(op).apply("center", data, op.inputs[2])
                self.wide[op.outputs[0]] = Integers(value, scale)
            return
        found = self._words(op, data, point)
        if is_constant(data):
            self.wide[op.outputs[0]] = Integers(found[0], scale, found[1], dtype_of(data))
        else:
            self._stand_for(op, Integers(found[0], scale, found[1], dtype_of(data)))

    def _words(self, op: ApplyOp, data: SSAValue, point: int) -> tuple[SSAValue, int]:
        """Return bytes as words, those of constants as weights, and their zero point."""
        value, zero, known = self.whole.get(data, (data, 0, None))
        if known == point:
            return value, zero
        before, dtype = Before(op), dtype_of(data)
        words = "int8" if is_constant(data) and self.words != "int16" else self.words
        if words == "int16":
            return before.apply("center", data, *([Before(op).number(point, dtype)] if point else [])), 0
        shift = int(np.iinfo(dtype).min) - int(np.iinfo(words).min)
        return self._shifted(op, data, shift, words), point - shift

    def _stand_for(self, op: ApplyOp, made: Integers) -> None:
        """Put integers, as what they stand for, in the place of an operator's result."""
        before = Before(op)
        zeros = [Before(op).number(made.zero, dtype_of(made.value))] if made.zero else []
        value = before.apply("dequantize", made.value, made.scale, *zeros)
        self.wide[value] = made
        put(op, [value])

    def _center(self, op: ApplyOp) -> None:
        """Read words in the place of bytes less their zero point."""
        point = _point(op, 1)
        if point is None:
            return self._center_later(op)
        value, zero = self._words(op, op.inputs[0], point)
        result = self._int16(op, value, zero)
        self.centred[result] = value, zero
        put(op, [result])

    def _center_later(self, op: ApplyOp) -> None:
        """Keep bytes of a zero point that each run has anew, for products that subtract it from their sums."""
        data, point = op.inputs
        dtype = dtype_of(data)
        if self.words == "int16" or is_constant(data) or shape_of(point) not in ((), (1,)):
            return
        before, shift = Before(op), int(np.iinfo(dtype).min) - int(np.iinfo(self.words).min)
        zero = before.apply("cast", before.reshape(point, ()), dtype="int32")
        if shift:
            zero = before.apply("subtract", zero, Before(op).number(shift, "int32"))
        self.centred[op.outputs[0]] = self._shifted(op, data, shift), zero

    def _shifted(self, op: ApplyOp, data: SSAValue, shift: int, words: str | None = None) -> SSAValue:
        """Return bytes less a number, which are other bytes."""
        if not shift:
            return data
        before = Before(op)
        moved = before.apply("subtract", before.apply("cast", data, dtype="int16"), Before(op).number(shift, "int16"))
        return before.apply("cast", moved, dtype=words or self.words)

    def _int16(self, op: ApplyOp, value: SSAValue, zero: int) -> SSAValue:
        """Return words less their zero point."""
        if dtype_of(value) == "int16":
            return value
        return Before(op).apply("center", value, *([Before(op).number(zero, dtype_of(value))] if zero else []))

    def _move(self, op: ApplyOp) -> None:
        """Move integers in the place of what they stand for, or words in that of bytes."""
        if len(op.outputs) != 1:
            return
        if len(op.inputs) == 1 and op.inputs[0] in self.whole:
            value, zero, point = self.whole[op.inputs[0]]
            return self._keep(op, _again(op, value), zero, point)
        found = [self.wide.get(v) for v in op.inputs]
        first = found[0] if found else None
        if first is None:
            return
        scale = _moved_scale(op, first) if len(found) == 1 else first.scale
        if scale is None or any(not _is_like(first, x) for x in found[1:]):
            return
        value = _again(op, *[x.value for x in found if x])
        made = Integers(value, scale, first.zero, first.dtype)
        if is_constant(value):
            self.wide[op.outputs[0]] = made
        else:
            self._stand_for(op, made)

    def _add(self, op: ApplyOp) -> None:
        """Add several tensors of integers at once."""
        if op.outputs[0].type == op.inputs[0].type == op.inputs[1].type and all(v in self.wide for v in op.inputs):
            form = linear(Before(op), op.outputs[0], self.wide)
            if form is not None:
                put(op, [computed(Before(op), form)])

    def _product(self, op: ApplyOp) -> None:
        if all(v in self.centred for v in op.inputs):
            (a, zero_a), (b, zero_b) = (self.centred[v] for v in op.inputs)
            if self.words != "int16":
                sums = self._of_bytes(op, a, zero_a, b, zero_b)
                if sums is not None:
                    put(op, [sums])
            return
        first, second = (self.wide.get(v) for v in op.inputs)
        scale = None if first is None or second is None else _product_scale(op, first, second)
        if first is None or second is None or scale is None:
            return
        before = Before(op)
        sums = self._of_bytes(op, first.value, first.zero, second.value, second.zero)
        if sums is None:
            factors = (self._int16(op, x.value, x.zero) for x in (first, second))
            sums = _again(op, *_of_groups(op, *factors))
        put(op, [before.apply("multiply", before.apply("cast", sums, dtype="float32"), scale)])

    def _of_bytes(self, op: ApplyOp, a: SSAValue, zero: Zero, b: SSAValue, zero_b: Zero) -> SSAValue | None:
        """Return the sums of a product of words with weights of int8; None where these are others.

        A zero point that is not known is no padding either.

        sum((a - zero) * b) = sum(a * b) - zero * sum(b)
        """
        if self.words == "int16" or (dtype_of(a), dtype_of(b), zero_b) != (self.words, "int8", 0):
            return None
        name, before = op.operator.data, Before(op)
        shape = CHANNELS[name](op) if name in CHANNELS else None
        if zero != 0 and (shape is None or not is_constant(b)):
            return None
        options: dict[str, Any] = dict(op.options.values)
        if name in _PADDED and zero != 0:
            if not isinstance(zero, int) and option(op, "padding") != 0:
                return None
            options = dict(with_options(op, pad_value=zero if isinstance(zero, int) else 0))
        sums = before.apply(name, *_of_groups(op, a, b), **options)
        if zero == 0:
            return sums
        assert shape is not None
        full = (1,) * (len(shape_of(b)) - len(shape)) + shape
        axes = tuple(axis for axis, n in enumerate(full) if n == 1)
        weights = before.apply("sum", before.apply("cast", b, dtype="int32"), axis=axes)
        point = Before(op).number(zero, "int32") if isinstance(zero, int) else zero
        less = before.apply("multiply", weights, point)
        return before.apply("subtract", sums, _beside(before, op, less))


def _again(op: ApplyOp, *inputs: SSAValue) -> SSAValue:
    """Apply an operator to other tensors."""
    options: dict[str, Any] = dict(op.options.values)
    return Before(op).apply(op.operator.data, *inputs, **options)


def _of_groups(op: ApplyOp, data: SSAValue, weights: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Return the factors of a convolution with channels last and added ones, so that instructions take groups of them.

    The weights of those are 0.
    """
    if op.operator.data not in ("conv2d", "conv3d") or not str(option(op, "layout")).endswith("C"):
        return data, weights
    more = -shape_of(data)[-1] % GROUP
    if not more or option(op, "groups") != 1 or not is_constant(weights):
        return data, weights
    rank, before = len(shape_of(data)), Before(op)
    ends = [[more if k == axis else 0 for k in range(rank)] for axis in (rank - 1, rank - 2)]
    none = [0] * rank
    padded = [before.apply("pad", x, before=none, after=after) for x, after in zip((data, weights), ends, strict=True)]
    return padded[0], padded[1]


def _point(op: ApplyOp, position: int) -> int | None:
    """Return a zero point that is missing or a number; None for any other."""
    if len(op.inputs) <= position:
        return 0
    found = number_of(op.inputs[position])
    return None if found is None else int(found)


def _is_like(first: Integers, other: Integers | None) -> bool:
    """True where integers of two tensors stand for the same numbers."""
    if other is None or (first.zero, first.dtype) != (other.zero, other.dtype):
        return False
    known = number_of(first.scale)
    return first.scale is other.scale or (known is not None and known == number_of(other.scale))


def _bounds(form: Linear, scale: float | None, zero: int, low: int, high: int) -> tuple[int, int] | None:
    """Return the limits of what is rounded, in words; None where they cannot be said.

    To round is monotone: the limits of a number are those of what it is rounded to.
    """
    if not form.is_limited:
        return low, high
    if scale is None or not scale > 0:
        return None
    least, most = (
        int(np.clip(np.rint(np.float32(x) / np.float32(scale)) + zero, low, high)) if isfinite(x) else bound
        for x, bound in ((form.low, low), (form.high, high))
    )
    return least, most


def _reciprocal(before: Before, scale: SSAValue) -> SSAValue:
    return before.apply("divide", before.number(1.0, dtype_of(scale)), scale)


def _product_scale(op: ApplyOp, first: Integers, second: Integers) -> SSAValue | None:
    """Return the scale of a product's sums; None where there is more than one for each output channel."""
    if not first.is_uniform or not (second.is_uniform or op.operator.data in CHANNELS):
        return None
    before = Before(op)
    if second.is_uniform:
        scale = before.apply("multiply", before.reshape(first.scale, ()), before.reshape(second.scale, ()))
        if op.operator.data not in CHANNELS:
            return scale
        return _beside(
            before, op, before.apply("broadcast_to", scale, shape=(shape_of(op.outputs[0])[channel_axis(op)],))
        )
    shape = CHANNELS[op.operator.data](op)
    if shape is None or _stripped(shape) != _stripped(shape_of(second.scale)):
        return None
    if _broadcast(shape_of(second.scale), shape_of(second.value)) != _broadcast(shape, shape_of(second.value)):
        return None
    return before.apply("multiply", before.reshape(first.scale, ()), _beside(before, op, second.scale))


def _beside(before: Before, op: ApplyOp, value: SSAValue) -> SSAValue:
    """Return one number for each output channel in a shape that broadcasts with a product's result."""
    shape, axis = shape_of(op.outputs[0]), channel_axis(op)
    return before.reshape(value, (shape[axis], *(1,) * (len(shape) - axis - 1)))


def _stripped(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(n for n in shape if n > 1)


def _broadcast(own: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    return (1,) * (len(shape) - len(own)) + own


def _moved_scale(op: ApplyOp, data: Integers) -> SSAValue | None:
    """Return the scales of what an operator makes of integers; None where they are not of its axes."""
    if data.is_uniform:
        known = number_of(data.scale)
        return Before(op).reshape(data.scale, ()) if known is None else Before(op).number(known, "float32")
    before, scale, name = Before(op), data.scale, op.operator.data
    own = _broadcast(shape_of(scale), shape_of(data.value))
    if name == "transpose":
        return before.apply("transpose", before.reshape(scale, own), axes=option(op, "axes"))
    wanted = shape_of(op.outputs[0])
    if operator(name).kind is not Kind.VIEW:
        return None
    if not any(n > 1 for n in own[1:]):  # one for each slice of the first axis, which may be cut, or have a 1 before it
        return _leading(before, scale, own[0], wanted)
    return before.reshape(scale, own) if own == wanted else None


def _leading(before: Before, scale: SSAValue, count: int, shape: tuple[int, ...]) -> SSAValue | None:
    """Return one number for each slice of a tensor's first `count` ones, beside a tensor of another shape."""
    total = 1
    for axis, extent in enumerate(shape):
        total *= extent
        if total == count:
            return before.reshape(scale, (*shape[: axis + 1], *(1,) * (len(shape) - axis - 1)))
    return None
