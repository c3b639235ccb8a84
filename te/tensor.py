"""Tensors: placeholders given from outside, and computes given by a scalar expression per element."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

from ..dialects.element import DTYPES, element_type
from .errors import ExpressionError, ShapeError, format_shape
from .expr import Binary, DType, Expr, IterVar, Operand, Read, convert
from .functions import function_of, plain, round_to
from .reduce import Reduce, Reduces


@dataclass(frozen=True)
class Placeholder:
    """The operation of a tensor that is an argument; a constant one holds the same values in every call."""

    name: str
    constant: bool = False
    axis: tuple[IterVar, ...] = ()
    reduce_axis: tuple[IterVar, ...] = ()


@dataclass(frozen=True, eq=False)
class Compute:
    """The operation of computed tensors: `axis` and `reduce_axis` over a body with one value per output."""

    name: str
    axis: tuple[IterVar, ...]
    reduce_axis: tuple[IterVar, ...]
    body: tuple[Expr, ...] | Reduce
    dtypes: tuple[str, ...]

    @property
    def values(self) -> tuple[Expr, ...]:
        """The scalar values, one per output, before any reduction."""
        return self.body.values if isinstance(self.body, Reduce) else self.body


class Tensor:
    """A named tensor: `tensor[i, j]` is one element inside te.compute, `tensor + other` broadcasts as NumPy does."""

    __slots__ = ("dtype", "name", "op", "shape", "value_index")

    def __init__(
        self, name: str, shape: tuple[int, ...], dtype: str, op: Placeholder | Compute, value_index: int = 0
    ) -> None:
        self.name = name
        self.shape = shape
        self.dtype = dtype
        self.op = op
        self.value_index = value_index

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __repr__(self) -> str:
        return f"Tensor('{self.name}', shape={format_shape(self.shape)}, dtype={self.dtype})"

    def __getitem__(self, indices: Any) -> Expr:
        given = indices if isinstance(indices, tuple) else (indices,)
        if len(given) != len(self.shape):
            raise ExpressionError(
                f"tensor '{self.name}' of shape {format_shape(self.shape)} takes {len(self.shape)} indices, "
                f"got {len(given)}"
            )
        exprs = tuple(convert(i) for i in given)
        for e in exprs:
            if e.dtype not in ("int32", "int64"):
                raise ExpressionError(
                    f"tensor '{self.name}' is indexed by a value of type {e.dtype}, not by an integer"
                )
        return Read(self, exprs)

    def __iter__(self) -> Any:
        raise TypeError(f"tensor '{self.name}' cannot be iterated: index it inside te.compute")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"tensor '{self.name}' has rank 0, and no length")
        return self.shape[0]

    def __bool__(self) -> bool:
        raise TypeError(f"tensor '{self.name}' has no truth value")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's functions element by element; TypeError for those that te does not have."""
        function = function_of(ufunc, method, options)
        values = [plain(value) for value in inputs]
        if len(values) == 1:
            return elementwise(self, function, f"T_{ufunc.__name__}")
        return _broadcast(f"T_{ufunc.__name__}", function, *values)

    def __array__(self, *_: object, **__: object) -> Any:
        raise TypeError(f"tensor '{self.name}' is no array: it has no values until a kernel of it runs")

    def __matmul__(self, other: Any) -> Tensor:
        raise TypeError(f"tensor '{self.name}': a product is topi.matmul(a, b)")

    def astype(self, dtype: DType) -> Tensor:
        """Every element converted to `dtype`."""
        return elementwise(self, lambda value: value.astype(dtype), "T_cast")

    def __add__(self, other: Any) -> Tensor:
        return _broadcast("T_add", lambda a, b: a + b, self, other)

    def __radd__(self, other: Any) -> Tensor:
        return _broadcast("T_add", lambda a, b: a + b, other, self)

    def __sub__(self, other: Any) -> Tensor:
        return _broadcast("T_subtract", lambda a, b: a - b, self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return _broadcast("T_subtract", lambda a, b: a - b, other, self)

    def __mul__(self, other: Any) -> Tensor:
        return _broadcast("T_multiply", lambda a, b: a * b, self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return _broadcast("T_multiply", lambda a, b: a * b, other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return _broadcast("T_divide", lambda a, b: a / b, self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return _broadcast("T_divide", lambda a, b: a / b, other, self)

    def __pow__(self, other: Any) -> Tensor:
        return _broadcast("T_power", lambda a, b: a**b, self, other)

    def __neg__(self) -> Tensor:
        return elementwise(self, lambda value: -value, "T_negative")


def placeholder(
    shape: Iterable[int] | int, dtype: DType = "float32", name: str = "placeholder", constant: bool = False
) -> Tensor:
    """Return an input tensor of the given shape (extents of at least 1).

    A `constant` one, such as a weight, may be laid out anew by a schedule and is then packed ahead of the calls.
    """
    element = element_type(dtype)
    if element not in DTYPES:
        raise ExpressionError(f"placeholder '{name}': element type '{element}' is not one of {', '.join(DTYPES)}")
    extents = _extents(f"placeholder '{name}'", shape)
    return Tensor(name, extents, element, Placeholder(name, constant))


@overload
def compute(  # type: ignore[overload-overlap]  # several values combined together are a reduction, too
    shape: Sequence[int] | int,
    fcompute: Callable[..., Reduces | Sequence[Operand]],
    name: str = ...,
    axes: Sequence[str] | None = ...,
) -> list[Tensor]: ...
@overload
def compute(
    shape: Sequence[int] | int,
    fcompute: Callable[..., Operand | Reduce],
    name: str = ...,
    axes: Sequence[str] | None = ...,
) -> Tensor: ...
def compute(
    shape: Sequence[int] | int,
    fcompute: Callable[..., Any],
    name: str = "compute",
    axes: Sequence[str] | None = None,
) -> Tensor | list[Tensor]:
    """A tensor whose element at (i, j, ...) is `fcompute(i, j, ...)`; a list of tensors where that gives a tuple.

    The axes are called `axes`, or else as the function's arguments are, `i0, i1, ...` for `*indices`. A reduction
    must be the whole body.
    """
    extents = _extents(f"compute '{name}'", shape)
    if not callable(fcompute):
        raise TypeError(f"compute '{name}': an element is given by a function of the axes, got {fcompute!r:.60}")
    named = axes if axes is not None else _axis_names(fcompute, len(extents), name)
    variables = tuple(IterVar(a, e) for a, e in zip(named, extents, strict=True))
    body = fcompute(*variables)
    if isinstance(body, Reduce):
        op = _operation(name, variables, body, body.values, body.axes)
        several = len(body.values) > 1
    else:
        several = isinstance(body, tuple | list)
        values = tuple(convert(v) for v in body) if several else (convert(body),)
        op = _operation(name, variables, values, values, ())
    names = [f"{name}_v{k}" for k in range(len(op.dtypes))] if several else [name]
    outputs = [Tensor(n, extents, t, op, k) for k, (n, t) in enumerate(zip(names, op.dtypes, strict=True))]
    return outputs if several else outputs[0]


def _operation(
    name: str,
    axes: tuple[IterVar, ...],
    body: tuple[Expr, ...] | Reduce,
    values: tuple[Expr, ...],
    reduced: tuple[IterVar, ...],
) -> Compute:
    if not values:
        raise ExpressionError(f"compute '{name}': the function returns no value")
    return Compute(name, axes, reduced, body, tuple(v.dtype for v in values))


def _extents(what: str, shape: Iterable[int] | int) -> tuple[int, ...]:
    given = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    extents = []
    for extent in given:
        try:
            extents.append(extent.__index__())
        except AttributeError:
            raise ShapeError(f"{what}: extents are integers, got {extent!r} in shape {tuple(given)}") from None
        if extents[-1] < 1:
            raise ShapeError(f"{what}: extents are at least 1, got shape {tuple(given)}")
    return tuple(extents)


def _axis_names(fcompute: Callable[..., Any], rank: int, name: str) -> list[str]:
    """One name per axis: the function's argument names, `i<position>` for a variadic rest."""
    kinds = inspect.Parameter
    parameters = list(inspect.signature(fcompute).parameters.values())
    plain = [p.name for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    rest = any(p.kind == kinds.VAR_POSITIONAL for p in parameters)
    if len(plain) != rank and not (rest and len(plain) < rank):
        raise ExpressionError(f"compute '{name}': the shape has {rank} axes, the function takes {len(plain)} arguments")
    return [*plain, *(f"i{k}" for k in range(len(plain), rank))]


def with_rounded_factors(tensor: Tensor, kind: str) -> Tensor:
    """Return a sum of products of two elements of float32 with both rounded by `round_to`; others as they are."""
    op = tensor.op
    if not isinstance(op, Compute) or not isinstance(op.body, Reduce) or op.body.combiner != "add":
        return tensor
    (value,) = op.body.values
    if not isinstance(value, Binary) or value.op != "mul" or value.dtype != "float32":
        return tensor
    if not isinstance(value.left, Read) or not isinstance(value.right, Read):
        return tensor
    rounded = Binary("mul", round_to(value.left, kind), round_to(value.right, kind))
    changed = replace(op, body=replace(op.body, values=(rounded,)))
    return Tensor(tensor.name, tensor.shape, tensor.dtype, changed, tensor.value_index)


def require_tensor(operator: str, operand: str, value: object) -> None:
    """TypeError where an operator is given something else than a tensor, such as a number or an array of values."""
    if not isinstance(value, Tensor):
        shape = getattr(value, "shape", ())
        instead = f": te.placeholder({format_shape(shape)}) stands for an array" if shape else ""
        raise TypeError(f"{operator}: {operand} must be a te tensor, got {type(value).__name__}{instead}")


def elementwise(tensor: Tensor, function: Callable[[Expr], Operand], name: str) -> Tensor:
    """Return a tensor of `function(element)` for every element."""
    require_tensor(name.removeprefix("T_"), "data", tensor)
    result: Tensor = compute(tensor.shape, lambda *i: function(tensor[i]), name)
    return result


def _broadcast(name: str, function: Callable[[Any, Any], Any], left: Any, right: Any) -> Tensor:
    from .broadcast import broadcast  # broadcasting makes tensors: the import would go round

    if isinstance(left, Expr) or isinstance(right, Expr):
        scalar: Tensor = function(convert(left), convert(right))
        return scalar
    return broadcast(name, function, left, right)
