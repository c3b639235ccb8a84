"""Angles and signs of floats by operators of a network, -0 and infinities told apart, as front ends write them out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..graph.network import Value

Apply = Callable[..., Value]
"""`apply(name, *operands)` adds an elementwise operator."""
Number = Callable[[float], Any]
"""`number(value)` is an operand that is one number, in the type of the others."""


def is_below(apply: Apply, number: Number, x: Value) -> Value:
    """Return where floats have the sign of those below 0: by the reciprocal, of which that of -0 is below 0 too."""
    return apply("logical_or", apply("less", x, number(0)), apply("less", apply("reciprocal", x), number(0)))


def atan2(apply: Apply, number: Number, y: Value, x: Value) -> Value:
    """Return the angle of (x, y): by the smaller coordinate over the larger one, turned to its octant."""
    both = apply("minimum", apply("abs", x), apply("abs", y))
    endless = apply("equal", both, number(math.inf))  # whose quotient is none: the angle is that of their signs
    y, x = (apply("where", endless, apply("sign", each), each) for each in (y, x))
    tall = apply("greater", apply("abs", y), apply("abs", x))
    over, under = apply("where", tall, x, y), apply("where", tall, y, x)
    nowhere = apply("equal", under, number(0))
    flat = apply("atan", apply("divide", over, apply("where", nowhere, number(1), under)))
    below = is_below(apply, number, y)
    upright = apply("subtract", apply("where", below, number(-math.pi / 2), number(math.pi / 2)), flat)
    turned = apply("where", below, number(-math.pi), number(math.pi))
    wide = apply("where", is_below(apply, number, x), apply("add", flat, turned), flat)
    return apply("where", tall, upright, wide)
