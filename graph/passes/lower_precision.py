"""The pass that brings a network of single precision into a 16-bit float, and keeps in float32 what needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ...dialects.graph import ApplyOp, ConstantOp
from ...dialects.numpy_types import PRECISIONS, ROUNDED_FLOATS, teach_numpy
from ..operator import operator
from ..types import dtype_of, infer, shape_of, tensor_type
from ._rewrite import Before, erase, is_constant, networks

_SINGLE = "float32"
_EXACT = ("bool", "int8", "uint8")
"""Types whose every value is one of float16 and of bfloat16, which count to 2048 and to 256."""
PRODUCTS = (
    "conv1d",
    "conv2d",
    "conv3d",
    "depthwise_conv2d",
    "conv2d_transpose",
    "conv2d_winograd",
    "conv3d_winograd",
    "dense",
    "dense_parts",
    "chosen_dense",
    "matmul",
    "batch_matmul",
    "einsum",
)
"""Operators that always read and write the half type; their sums are float32 in it."""
FACTORS = "lw_graph.factors"
"""The attribute of a function whose products may round their factors of float32: to which type."""
_KEPT = {
    "its results leave the range of 16-bit floats": (
        "exp",
        "exp2",
        "power",
        "square",
        "reciprocal",
        "rsqrt",
        "sinh",
        "cosh",
        "tan",
        "softplus",
    ),
    "its results need more digits than 16-bit floats have": (
        "log",
        "log2",
        "log1p",
        "acosh",
        "atanh",
    ),
    "its results say which elements are read, and how much of each": ("sampling_places", "sampling_weights"),
    "its scale is of float32": ("quantize", "dequantize", "saturate", "scaled_sum"),
    "its results are sums or products of many elements": ("sum", "prod", "mean", "cumsum", "cumprod"),
    "its options say which types it computes in": ("formula", "map_formula", "reduce_formula", "bitcast"),
}
"""Reason -> operators that are computed in float32, and whose results are kept so, for it."""
_NO_UNITS = "no matrix unit multiplies its factors"
_WIDE = {name: reason for reason, names in _KEPT.items() for name in names}
_INSIDE = (
    "softmax",
    "log_softmax",
    "layer_norm",
    "rms_norm",
    "batch_norm",
    "lrn",
    "avg_pool",
    "global_avg_pool",
    "adaptive_avg_pool",
)
"""Operators that read and write the half type, and compute in float32 between."""


@dataclass(frozen=True)
class LowerPrecision(ModulePass):
    """f(x: f32) -> f(cast x to `dtype`), float16 or bfloat16, where f may be computed in it.

    With tf32 nothing is cast: the function is given an attribute by which `lw-graph-round-products` has its products
    round their factors.

    Products of matrices and convolutions always are. Exponentials, logarithms, powers, sums and what has a constant
    that is no number of the type stay float32; so do the operators that read their results, up to the next product.
    All else takes the half type. Inputs and outputs keep their types: casts stand behind and before them. Constants are
    cast by operators that `lw-graph-fold-constants` computes. `beyond` are the constants outside the type's range, by
    their places among all: whoever holds their values knows. What depends on constants only stays as it is, and so does
    what is not float32.
    """

    name: ClassVar[str] = "lw-graph-lower-precision"
    dtype: str = "float16"
    beyond: tuple[int, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.dtype not in PRECISIONS:
            raise PassFailedException(f"{self}: dtype is {' or '.join(PRECISIONS)}, got '{self.dtype}'")
        for function in networks(op):
            if self.dtype in ROUNDED_FLOATS:
                function.attributes[FACTORS] = StringAttr(self.dtype)
                continue
            _Lowering(function, self.dtype, plan_precision(function, self.dtype, self.beyond)).run()


@dataclass(frozen=True)
class PrecisionPlan:
    """The operators that read the half type, and for each that computes in float32 the reason, in order."""

    narrow: frozenset[ApplyOp]
    reasons: dict[ApplyOp, str]


def plan_precision(function: FuncOp, dtype: str, beyond: Sequence[int]) -> PrecisionPlan:
    """Decide in which type each operator of a network computes; nothing is changed."""
    if dtype in ROUNDED_FLOATS:
        exact = [op for op in _of_single(function) if op.operator.data in PRODUCTS and not may_round(op)]
        return PrecisionPlan(frozenset(), dict.fromkeys(exact, _NO_UNITS))
    teach_numpy(dtype)
    constants = [op for op in function.body.block.ops if isinstance(op, ConstantOp)]
    outside: set[SSAValue] = {op.result for n, op in enumerate(constants) if n in beyond or _is_outside(op, dtype)}
    narrow: list[ApplyOp] = []
    reasons: dict[ApplyOp, str] = {}
    wide: set[SSAValue] = set()
    for op in _of_single(function):
        reason = _reason(op, dtype, outside, wide)
        if reason is None:
            narrow.append(op)
            if op.operator.data in _INSIDE:
                reasons[op] = f"computed in float32, its result rounded to {dtype} once"
            continue
        reasons[op] = reason
        wide.update(op.outputs)
    return PrecisionPlan(frozenset(narrow), reasons)


def may_round(op: ApplyOp) -> bool:
    """True for products that have rounded factors: depthwise convolutions and Winograd's have no unit for theirs."""
    return "rounds" in operator(op.operator.data).defaults


def _of_single(function: FuncOp) -> Iterator[ApplyOp]:
    """Iterate over the operators of a network that compute in float32; casts from it compute nothing."""
    for op in function.body.block.ops:
        if not isinstance(op, ApplyOp) or all(map(is_constant, op.inputs)):
            continue
        values = op.outputs if op.operator.data == "cast" else (*op.inputs, *op.outputs)
        if any(map(_is_single, values)):
            yield op


def _reason(op: ApplyOp, dtype: str, outside: set[SSAValue], wide: set[SSAValue]) -> str | None:
    """Return why an operator stays in float32; None where it does not."""
    name = op.operator.data
    if name == "cast":
        source = dtype_of(op.inputs[0])
        return None if source in (dtype, *_EXACT) else f"not every number of {source} is one of {dtype}"
    constant = next((v for v in op.inputs if v in outside), None)
    if constant is not None:
        return f"its constant '{constant.name_hint}' is no number of {dtype}"
    if name in PRODUCTS:
        return None
    if name in _WIDE:
        return _WIDE[name]
    read = next((v for v in op.inputs if v in wide), None)
    return None if read is None else f"it reads '{read.name_hint}', which is float32"


def _is_single(value: SSAValue) -> bool:
    return dtype_of(value) == _SINGLE


def _is_outside(op: ConstantOp, dtype: str) -> bool:
    """True for a known number of float32 that becomes infinite, or 0, in a type."""
    if op.value is None or not _is_single(op.result):
        return False
    rounded = _rounded(dtype, op.value)
    return bool(np.isfinite(rounded)) != bool(np.isfinite(op.value)) or (rounded == 0) != (op.value == 0)


def _rounded(dtype: str, value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.asarray(value, _SINGLE).astype(dtype))


@dataclass
class _Lowering:
    """Tensors of one function in the half type, beside those in float32."""

    function: FuncOp
    dtype: str
    plan: PrecisionPlan
    narrow: dict[SSAValue, SSAValue] = field(default_factory=dict)
    wide: dict[SSAValue, SSAValue] = field(default_factory=dict)

    def run(self) -> None:
        done: list[ApplyOp] = []
        for op in list(self.function.body.block.ops):
            if op in self.plan.narrow:
                assert isinstance(op, ApplyOp)
                self._narrow_operator(op)
                done.append(op)
            elif op in self.plan.reasons or isinstance(op, ReturnOp):
                self._read(op, self._as_wide)
            elif isinstance(op, ApplyOp) and op.operator.data == "cast":
                self._read(op, self._as_it_is)
        for op in reversed(done):
            erase(op)

    def _narrow_operator(self, op: ApplyOp) -> None:
        """Add an operator in the half type beside the one in float32."""
        name, options = op.operator.data, op.options.values
        if name == "cast":
            options = {**options, "dtype": self.dtype}
        inputs = [self._as_narrow(v) if _is_single(v) else v for v in op.inputs]
        made = ApplyOp(name, inputs, options, infer(name, [v.type for v in inputs], options), op.outputs[0].name_hint)
        assert op.parent is not None
        op.parent.insert_op_before(made, op)
        for before, after in zip(op.outputs, made.outputs, strict=True):
            if _is_single(before):
                self.narrow[before] = after
            else:
                before.replace_all_uses_with(after)

    def _read(self, op: Operation, how: Callable[[SSAValue], SSAValue]) -> None:
        for place, value in enumerate(op.operands):
            if _is_single(value):
                op.operands[place] = how(value)

    def _as_it_is(self, value: SSAValue) -> SSAValue:
        return self.narrow[value] if self._is_narrow(value) else value

    def _is_narrow(self, value: SSAValue) -> bool:
        """True for the result of an operator that is computed in the half type."""
        return value.owner in self.plan.narrow

    def _as_wide(self, value: SSAValue) -> SSAValue:
        if not self._is_narrow(value):
            return value
        if value not in self.wide:
            self.wide[value] = _cast_behind(self.narrow[value], _SINGLE)
        return self.wide[value]

    def _as_narrow(self, value: SSAValue) -> SSAValue:
        if value not in self.narrow:
            owner = value.owner
            number = owner.value if isinstance(owner, ConstantOp) else None
            self.narrow[value] = _cast_behind(value, self.dtype) if number is None else self._number(value, number)
        return self.narrow[value]

    def _number(self, value: SSAValue, number: float) -> SSAValue:
        """Return a number as one of the half type, for rules that look at numbers."""
        owner = value.owner
        assert isinstance(owner, ConstantOp) and owner.parent is not None
        made = ConstantOp(owner.label.data, tensor_type(shape_of(value), self.dtype), _rounded(self.dtype, number))
        owner.parent.insert_op_after(made, owner)
        return made.result


def _cast_behind(value: SSAValue, dtype: str) -> SSAValue:
    """Add a cast right behind what a value comes from."""
    owner = value.owner
    place = owner.next_op if isinstance(owner, Operation) else owner.first_op
    assert place is not None, "a network ends with what it returns"
    return Before(place).apply("cast", value, dtype=dtype)
