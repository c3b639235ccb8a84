"""Scalar expressions over axes and tensor elements: a small immutable tree that Python operators build."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ForwardRef, TypeAlias

import numpy as np

from ..dialects.element import DTYPES, element_type
from ..dialects.numpy_types import FLOATS, INTEGERS, NARROW_FLOATS, SIGNED, UNSIGNED
from .errors import ExpressionError, format_shape

if TYPE_CHECKING:
    from .tensor import Tensor

    Operand: TypeAlias = "Expr | Tensor | int | float | bool"
else:  # the hints of other modules' functions are of the types of these two
    Operand = ForwardRef("Expr", module=__name__) | ForwardRef("Tensor", module=f"{__package__}.tensor")
    Operand = Operand | int | float | bool

Number: TypeAlias = int | float | bool
DType: TypeAlias = str | type[np.generic] | np.dtype[Any]
"""An element type by name, or as NumPy has it."""

NARROW = ("int8", "int16", "uint8", "uint16")
"""Integers that are summed in int32."""
_RANK = {name: k for k, name in enumerate(("bool", *UNSIGNED, *SIGNED, *FLOATS))}


class Expr:
    """A scalar expression with an element type; `+ - * / // % **`, comparisons, `&`, `|` and `~` build larger ones."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: str) -> None:
        if dtype not in DTYPES:
            raise ExpressionError(f"element type '{dtype}' is not one of {', '.join(DTYPES)}")
        self.dtype = dtype

    def astype(self, dtype: DType) -> Expr:
        """Convert the value to `dtype`; floats become integers by dropping the fraction."""
        return cast(self, element_type(dtype))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's functions, and its numbers on the left of an operator; TypeError for those that te does not have."""
        from .functions import function_of, plain  # functions make expressions: the import would go round

        return function_of(ufunc, method, options)(*(convert(plain(value)) for value in inputs))

    def __array__(self, *_: object, **__: object) -> Any:
        raise TypeError(
            "a te expression is no array, and no index of one: index te tensors, and use te.exp, te.sum and so on"
        )

    def __float__(self) -> float:
        raise TypeError("a te expression has no value while the program is written: use te.exp, not math.exp")

    def __abs__(self) -> Expr:
        from .functions import abs  # functions make expressions: the import would go round

        return abs(self)

    def __add__(self, other: Operand) -> Expr:
        return binary("add", self, other)

    def __radd__(self, other: Operand) -> Expr:
        return binary("add", other, self)

    def __sub__(self, other: Operand) -> Expr:
        return binary("sub", self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return binary("sub", other, self)

    def __mul__(self, other: Operand) -> Expr:
        return binary("mul", self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return binary("mul", other, self)

    def __truediv__(self, other: Operand) -> Expr:
        return binary("div", self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return binary("div", other, self)

    def __floordiv__(self, other: Operand) -> Expr:
        return binary("floordiv", self, other)

    def __rfloordiv__(self, other: Operand) -> Expr:
        return binary("floordiv", other, self)

    def __mod__(self, other: Operand) -> Expr:
        return binary("mod", self, other)

    def __rmod__(self, other: Operand) -> Expr:
        return binary("mod", other, self)

    def __pow__(self, other: Operand) -> Expr:
        return binary("pow", self, other)

    def __rpow__(self, other: Operand) -> Expr:
        return binary("pow", other, self)

    def __neg__(self) -> Expr:
        if isinstance(self, Const):
            return Const(-self.value, self.dtype)
        return Call("neg", self) if self.dtype in FLOATS else binary("sub", zero(self.dtype), self)

    def __lt__(self, other: Operand) -> Expr:
        return compare("lt", self, other)

    def __le__(self, other: Operand) -> Expr:
        return compare("le", self, other)

    def __gt__(self, other: Operand) -> Expr:
        return compare("gt", self, other)

    def __ge__(self, other: Operand) -> Expr:
        return compare("ge", self, other)

    def __eq__(self, other: Operand) -> Expr:  # type: ignore[override]
        return compare("eq", self, other)

    def __ne__(self, other: Operand) -> Expr:  # type: ignore[override]
        return compare("ne", self, other)

    __hash__ = object.__hash__

    def __and__(self, other: Operand) -> Expr:
        return Logic("and", self, convert(other))

    def __or__(self, other: Operand) -> Expr:
        return Logic("or", self, convert(other))

    def __invert__(self) -> Expr:
        return Not(self)

    def __bool__(self) -> bool:
        raise TypeError(
            "a te expression has no truth value while the program is written: "
            "use te.all(a, b), te.any(a, b) and te.select instead of and, or, if and chained comparisons"
        )


def bits_of(dtype: str) -> int:
    """Return the width of an integer type."""
    return int(dtype.removeprefix("u").removeprefix("int"))


def width_of(dtype: str) -> int:
    """Return the bits of a number."""
    return bits_of(dtype) if dtype in INTEGERS else int(dtype.removeprefix("b").removeprefix("float"))


def integer_range(dtype: str) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type."""
    bits = bits_of(dtype)
    return (0, (1 << bits) - 1) if dtype in UNSIGNED else (-(1 << bits - 1), (1 << bits - 1) - 1)


class Const(Expr):
    """A constant of an element type."""

    __slots__ = ("value",)

    def __init__(self, value: Number, dtype: str) -> None:
        super().__init__(dtype)
        self.value: int | float = float(value) if dtype in FLOATS else int(value)
        if dtype in INTEGERS:
            low, high = integer_range(dtype)
            if not low <= self.value <= high:
                raise ExpressionError(f"the number {self.value} does not fit {dtype}: cast the other operand first")


class IterVar(Expr):
    """An axis: its values run over `[lower, lower + extent)`; compared by identity with `is`."""

    __slots__ = ("extent", "lower", "name", "reduce")

    def __init__(self, name: str, extent: int, reduce: bool = False, lower: int = 0) -> None:
        super().__init__("int32")
        self.name = name
        self.extent = extent
        self.reduce = reduce
        self.lower = lower

    def __repr__(self) -> str:
        return f"{'reduce ' if self.reduce else ''}{self.name} = {self.extent}"


class Param(Expr):
    """One argument of a custom combiner."""

    __slots__ = ("position",)

    def __init__(self, position: int, dtype: str) -> None:
        super().__init__(dtype)
        self.position = position


class Binary(Expr):
    """`add sub mul div floordiv mod pow max min` of two values of one type; of integers `and or xor shl shr` too."""

    __slots__ = ("left", "op", "right")

    def __init__(self, op: str, left: Expr, right: Expr) -> None:
        super().__init__(left.dtype)
        self.op = op
        self.left = left
        self.right = right


class Call(Expr):
    """A function of one float (or, for `abs`, integer) value."""

    __slots__ = ("function", "operand")

    def __init__(self, function: str, operand: Expr) -> None:
        super().__init__(operand.dtype)
        self.function = function
        self.operand = operand


class Cast(Expr):
    """A value converted to another element type."""

    __slots__ = ("operand",)

    def __init__(self, operand: Expr, dtype: str) -> None:
        super().__init__(dtype)
        self.operand = operand


class Bitcast(Expr):
    """The bits of a number reinterpreted as another type of the same width."""

    __slots__ = ("operand",)

    def __init__(self, operand: Expr, dtype: str) -> None:
        super().__init__(dtype)
        if "bool" in (operand.dtype, dtype) or width_of(operand.dtype) != width_of(dtype):
            raise ExpressionError(f"numbers of type {operand.dtype} and {dtype} differ in their bits")
        self.operand = operand


class Compare(Expr):
    """`lt le gt ge eq ne` of two values of one type."""

    __slots__ = ("left", "op", "right")

    def __init__(self, op: str, left: Expr, right: Expr) -> None:
        super().__init__("bool")
        self.op = op
        self.left = left
        self.right = right


class Logic(Expr):
    """`and`, `or` of two conditions."""

    __slots__ = ("left", "op", "right")

    def __init__(self, op: str, left: Expr, right: Expr) -> None:
        super().__init__("bool")
        for side in (left, right):
            if side.dtype != "bool":
                raise ExpressionError(f"'{op}' joins conditions, got a value of type {side.dtype}")
        self.op = op
        self.left = left
        self.right = right


class Not(Expr):
    """The negation of a condition."""

    __slots__ = ("operand",)

    def __init__(self, operand: Expr) -> None:
        super().__init__("bool")
        if operand.dtype != "bool":
            raise ExpressionError(f"'not' takes a condition, got a value of type {operand.dtype}")
        self.operand = operand


class Select(Expr):
    """One of two values; reads in the branch not taken do not happen."""

    __slots__ = ("condition", "no", "yes")

    def __init__(self, condition: Expr, yes: Expr, no: Expr) -> None:
        super().__init__(yes.dtype)
        self.condition = condition
        self.yes = yes
        self.no = no


class Read(Expr):
    """One element of a tensor."""

    __slots__ = ("indices", "tensor")

    def __init__(self, tensor: Tensor, indices: tuple[Expr, ...]) -> None:
        super().__init__(tensor.dtype)
        self.tensor = tensor
        self.indices = indices


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the expressions that `expr` is made of."""
    if isinstance(expr, Binary | Compare | Logic):
        return (expr.left, expr.right)
    if isinstance(expr, Call | Cast | Bitcast | Not):
        return (expr.operand,)
    if isinstance(expr, Select):
        return (expr.condition, expr.yes, expr.no)
    return expr.indices if isinstance(expr, Read) else ()


def zero(dtype: str) -> Const:
    """Return the zero of a type."""
    return Const(0, dtype)


def const(value: Number, dtype: str | None = None) -> Const:
    """Return a number as an expression; the type is float32 or int32 unless given."""
    if dtype is None:
        dtype = "bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else "float32"
    return Const(value, dtype)


def convert(value: Operand, like: str | None = None) -> Expr:
    """Convert an operand to an expression: numbers take the type `like` where they fit it, rank-0 tensors are read."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool | int | float):
        return _number(value, like)
    from .tensor import Tensor  # a tensor holds expressions: the import would go round

    if isinstance(value, Tensor):
        if value.shape:
            shape = format_shape(value.shape)
            raise TypeError(f"tensor '{value.name}' of shape {shape} is used as a scalar: index it, {value.name}[...]")
        return Read(value, ())
    if getattr(value, "shape", None) == ():
        return _number(value.item(), like)
    raise TypeError(f"a te expression takes numbers, expressions and tensor elements, got {type(value).__name__}")


def _number(value: Number, like: str | None) -> Const:
    if like in FLOATS or (like in INTEGERS and not isinstance(value, float)):
        return Const(value, like)
    return const(value)


def promote(left: str, right: str) -> str:
    """Return the type of arithmetic on two types: the wider, where floats are wider than integers.

    Types of which none holds the other meet, as in NumPy, in one that holds both: float16 and bfloat16 in float32, an
    unsigned integer and a signed one in a wider signed one. ExpressionError for uint64, which has none.
    """
    if {left, right} == set(NARROW_FLOATS):
        return "float32"
    small, large = sorted((left, right), key=_RANK.__getitem__)
    if small in UNSIGNED and large in SIGNED:
        if small == "uint64":
            raise ExpressionError(f"no integer type holds both {left} and {right}: cast one of them first")
        return f"int{max(2 * bits_of(small), bits_of(large))}"
    return max(left, right, key=_RANK.__getitem__)


def match(left: Operand, right: Operand) -> tuple[Expr, Expr]:
    """Convert both operands to one type."""
    a = convert(left, getattr(right, "dtype", None))
    b = convert(right, a.dtype)
    dtype = promote(a.dtype, b.dtype)
    return cast(a, dtype), cast(b, dtype)


def cast(value: Operand, dtype: str) -> Expr:
    """Convert a value to `dtype`; nothing to do where it already has that type."""
    expr = convert(value, dtype)
    if expr.dtype == dtype:
        return expr
    if isinstance(expr, Const):
        return Const(expr.value, dtype)
    return Cast(expr, dtype)


def binary(op: str, left: Operand, right: Operand) -> Expr:
    """Build the arithmetic operation `op` after both operands were brought to one type."""
    a, b = match(left, right)
    if a.dtype == "bool":
        raise ExpressionError(f"'{op}' is arithmetic, got two conditions: use te.all, te.any or cast them")
    if op in ("div", "pow") and a.dtype not in FLOATS:
        instead = "write a // b, or cast to a float first" if op == "div" else "cast to a float first"
        raise ExpressionError(f"'{op}' is defined on floats, got {a.dtype}: {instead}")
    if op in ("floordiv", "mod") and a.dtype in FLOATS:
        raise ExpressionError(f"'{op}' is defined on integers, got {a.dtype}: use te.floor(a / b)")
    return Binary(op, a, b)


def compare(op: str, left: Operand, right: Operand) -> Expr:
    """Build the comparison `op` after both operands were brought to one type; conditions compare by == and != only."""
    a, b = match(left, right)
    if a.dtype == "bool" and op not in ("eq", "ne"):
        raise ExpressionError(f"'{op}' compares numbers, got two conditions: cast them to int32 first")
    return Compare(op, a, b)
