"""NumPy's functions of arrays `(n,)`, which also take expressions: estimates and limits are written with these alone.

A function that is not here refuses expressions, and what is written with it is computed by NumPy each time. Of floats
`//` and `%` are as NumPy's where these are whole numbers, and nothing is divided by 0.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as _np
from numpy import arange as arange
from numpy import argmin as argmin
from numpy import array as array
from numpy import bincount as bincount
from numpy import bool_ as bool_
from numpy import concatenate as concatenate
from numpy import float64 as float64
from numpy import inf as inf
from numpy import int64 as int64
from numpy import isin as isin
from numpy import linspace as linspace
from numpy import ndarray as ndarray
from numpy import unique as unique

if TYPE_CHECKING:
    from numpy import all as all
    from numpy import any as any
    from numpy import asarray as asarray
    from numpy import ceil as ceil
    from numpy import clip as clip
    from numpy import full as full
    from numpy import full_like as full_like
    from numpy import gcd as gcd
    from numpy import max as max
    from numpy import maximum as maximum
    from numpy import minimum as minimum
    from numpy import ones as ones
    from numpy import ones_like as ones_like
    from numpy import power as power
    from numpy import prod as prod
    from numpy import sign as sign
    from numpy import sum as sum
    from numpy import where as where
    from numpy import zeros as zeros
    from numpy import zeros_like as zeros_like
else:
    from ...passes.parametric import sizes as _sizes
    from .expression import BOOL as _BOOL
    from .expression import FLOAT as _FLOAT
    from .expression import INT as _INT
    from .expression import Expression as _Expression
    from .expression import NoExpressionError as _NoExpressionError
    from .expression import is_writing as _is_writing
    from .expression import parts as _parts

    def asarray(a, dtype=None):
        if type(a) is not _Expression:
            return _np.asarray(a, dtype)
        return a if dtype is None else a.astype(dtype)

    def ones(shape, dtype=float):
        return full(shape, 1, dtype)

    def zeros(shape, dtype=float):
        return full(shape, 0, dtype)

    def full(shape, value, dtype=None):
        if not _is_writing() and type(value) is not _Expression:
            return _np.full(shape, value, dtype)
        found = _Expression(*_parts(bool(value) if dtype in (bool, bool_) else value))
        return found if dtype is None else found.astype(dtype)

    def full_like(a, value):
        return _Expression(_parts(value)[0], a.kind) if type(a) is _Expression else _np.full_like(a, value)

    def ones_like(a):
        return full_like(a, 1)

    def zeros_like(a):
        return full_like(a, 0)

    def _two(name, function):
        """A function of two operands, as NumPy's for arrays and of sizes for expressions."""
        own = getattr(_np, name)

        def either(a, b):
            if type(a) is not _Expression and type(b) is not _Expression:
                return own(a, b)
            (first, kind, level), (second, other, at) = _parts(a), _parts(b)
            level, kind = level if level > at else at, kind if kind > other else other
            return _Expression(function(first, second), kind, level)

        return either

    maximum, minimum, gcd = (
        _two("maximum", _sizes.maximum),
        _two("minimum", _sizes.minimum),
        _two("gcd", _sizes.gcd),
    )

    def where(condition, yes, no):
        if not _has_expression((condition, yes, no)):
            return _np.where(condition, yes, no)
        (asked, _, level), (first, kind, at), (second, other, beside) = _parts(condition), _parts(yes), _parts(no)
        chosen = _sizes.where(asked, first, second)
        return _Expression(chosen, kind if kind > other else other, _highest(level, at, beside))

    def ceil(a):
        if type(a) is not _Expression:
            return _np.ceil(a)
        return _Expression(a.size if a.kind != _FLOAT else -_sizes.floor(-a.size), _FLOAT, a.level)

    def sign(a):
        return _np.sign(a) if type(a) is not _Expression else where(a > 0, 1, 0) - where(a < 0, 1, 0)

    def power(a, b):
        if type(a) is list and _has_expression(a):
            return [each**b for each in a]
        return _np.power(a, b) if not _has_expression((a, b)) else a**b

    def clip(a, least, most):
        if not _has_expression((a, least, most)):
            return _np.clip(a, least, most)
        return minimum(maximum(a, least), most)

    def _over(name, function, from_kind=_BOOL):
        """A function of several arrays in a list, along its first axis."""
        own = getattr(_np, name)

        def over(a, axis=None, **options):
            if type(a) is not list or not _has_expression(a):
                return own(a, axis=axis, **options)
            if axis != 0 or options:
                raise _NoExpressionError(f"{name} of expressions is along axis 0")
            listed = [each if type(each) is _Expression else _Expression(*_parts(each)) for each in a]
            return reduce(
                function, [_Expression(e.size, e.kind if e.kind > from_kind else from_kind, e.level) for e in listed]
            )

        return over

    sum = _over("sum", lambda a, b: a + b, _INT)
    prod = _over("prod", lambda a, b: a * b, _INT)
    max, all, any = _over("max", maximum), _over("all", lambda a, b: a & b), _over("any", lambda a, b: a | b)

    def _has_expression(values):
        return _Expression in map(type, values)

    def _highest(*levels):
        return sorted(levels)[-1]
