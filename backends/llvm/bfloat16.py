"""bfloat16 on CPUs: held as 16-bit integers, the upper half of a single; arithmetic is done in single precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import BFloat16Type, Float64Type, VectorType, f32
from xdsl.ir import Attribute, Block, Operation

from ...dialects import kernel
from .function import Function
from .types import lanes_of, shape_text, splat_text

Handler = Callable[[Function, Operation], None]

RoundToOdd = Callable[[Function, str, str], str]

_MOVES = (
    *(arith.ConstantOp, arith.SelectOp, kernel.SelectOp, vector.BroadcastOp, vector.ExtractOp, vector.InsertOp),
    *(vector.ShuffleOp, arith.BitcastOp, vector.BitcastOp),
)
"""Operations that move values and compute none."""
_EXACT = (arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp, arith.NegfOp)
"""Operations whose results are one of the operands, or its negative, and need no rounding."""


def with_bfloat16(
    handlers: Mapping[type[Operation], Handler], round_to_odd: RoundToOdd
) -> dict[type[Operation], Handler]:
    """Return the handlers of arithmetic, each for bfloat16 as well; `round_to_odd` takes doubles to singles."""

    def also(handler: Handler) -> Handler:
        def emit(f: Function, op: Operation) -> None:
            if _is_brief(op.results[0].type) or any(_is_brief(operand.type) for operand in op.operands):
                _in_single(f, op, handler, round_to_odd)
            else:
                handler(f, op)

        return emit

    return {op: handler if op in _MOVES else also(handler) for op, handler in handlers.items()}


def _in_single(f: Function, op: Operation, handler: Handler, round_to_odd: RoundToOdd) -> None:
    """Print an operation on bfloat16 by its handler on single precision, and round what it gives."""
    single = Block(arg_types=[_widened(operand.type) for operand in op.operands])
    for operand, argument in zip(op.operands, single.args, strict=True):
        name = f.names[operand]
        f.names[argument] = _extend(f, name, operand.type) if _is_brief(operand.type) else name
    (result,) = op.results
    if isinstance(op, arith.TruncFOp) and isinstance(kernel.element_of(op.operands[0].type), Float64Type):
        name = round_to_odd(f, f.names[op.operands[0]], f.type(op.operands[0].type))
    else:
        clone = type(op).create(operands=single.args, result_types=[_widened(result.type)], properties=op.properties)
        handler(f, clone)
        name = f.names[clone.results[0]]
    if _is_brief(result.type):
        name = (_cut if isinstance(op, _EXACT) else _round)(f, name, result.type)
    f.names[result] = name


def _is_brief(value_type: Attribute) -> bool:
    return type(kernel.element_of(value_type)) is BFloat16Type


def _widened(value_type: Attribute) -> Attribute:
    if not _is_brief(value_type):
        return value_type
    return kernel.vector_of(f32, kernel.lanes_of(value_type)) if isinstance(value_type, VectorType) else f32


def _shapes(value_type: Attribute) -> tuple[str, str, str, str]:
    lanes = kernel.lanes_of(value_type) if isinstance(value_type, VectorType) else 1
    short, integer, single, truth = (shape_text(lanes, element) for element in ("i16", "i32", "float", "i1"))
    return short, integer, single, truth


def _extend(f: Function, value: str, value_type: Attribute) -> str:
    """Take a value to single precision, which what has been rounded to it is in already."""
    if value in f.singles:
        return f.singles[value]
    short, integer, single, _ = _shapes(value_type)
    sixteen = splat_text("16", "i32", lanes_of(value_type))
    bits = f.put(f"shl {integer} {f.put(f'zext {short} {value} to {integer}')}, {sixteen}")
    return f.put(f"bitcast {integer} {bits} to {single}")


def _round(f: Function, value: str, value_type: Attribute) -> str:
    """Round single precision to nearest even; NaN stays one."""
    _, integer, single, truth = _shapes(value_type)
    lanes = lanes_of(value_type)

    def number(n: int) -> str:
        return splat_text(str(n), "i32", lanes)

    bits = f.put(f"bitcast {single} {value} to {integer}")
    even = f.put(f"and {integer} {f.put(f'lshr {integer} {bits}, {number(16)}')}, {number(1)}")
    raised = f.put(f"add {integer} {f.put(f'add {integer} {bits}, {number(0x7FFF)}')}, {even}")
    is_nan = f.put(f"fcmp uno {single} {value}, {value}")
    near = f.put(f"select {truth} {is_nan}, {integer} {number(0x7FC00000)}, {integer} {raised}")
    rounded = f.put(f"and {integer} {near}, {number(-0x10000)}")
    return _cut(f, f.put(f"bitcast {integer} {rounded} to {single}"), value_type)


def _cut(f: Function, value: str, value_type: Attribute) -> str:
    """The upper half of a value in single precision whose lower half is zero."""
    short, integer, single, _ = _shapes(value_type)
    bits = f.put(f"bitcast {single} {value} to {integer}")
    upper = f.put(f"lshr {integer} {bits}, {splat_text('16', 'i32', lanes_of(value_type))}")
    name = f.put(f"trunc {integer} {upper} to {short}")
    f.singles[name] = value
    return name
