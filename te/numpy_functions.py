"""NumPy's functions on te expressions and tensors: `np.exp(a[i])` is `te.exp(a[i])`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from . import functions

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "negative": operator.neg,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "absolute": functions.abs,
    "ceil": functions.ceil,
    "cos": functions.cos,
    "exp": functions.exp,
    "exp2": functions.exp2,
    "floor": functions.floor,
    "fmod": functions.fmod,
    "log": functions.log,
    "log2": functions.log2,
    "maximum": functions.maximum,
    "minimum": functions.minimum,
    "rint": functions.round,
    "sin": functions.sin,
    "sqrt": functions.sqrt,
    "tan": functions.tan,
    "tanh": functions.tanh,
    "trunc": functions.trunc,
}
"""Universal functions of NumPy, by name, and what each is on expressions."""


def function_of(ufunc: Any, method: str, options: Mapping[str, Any]) -> Callable[..., Any]:
    """The function that stands for a call of one of NumPy's; TypeError where there is none."""
    name = str(ufunc.__name__)
    if name not in FUNCTIONS:
        raise TypeError(f"te has no np.{name}: it has {', '.join(sorted(FUNCTIONS))}")
    if method != "__call__" or options:
        what = f"np.{name}.{method}" if method != "__call__" else f"np.{name} with {', '.join(options)}"
        raise TypeError(f"{what} is for arrays: reduce te expressions with te.sum, te.max and their like")
    return FUNCTIONS[name]


def plain(value: Any) -> Any:
    """A number of NumPy's as one of Python's, which leaves arithmetic to expressions; all else as it is."""
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value
