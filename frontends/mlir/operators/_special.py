"""Functions that CHLO leaves to the compiler, by approximations in single precision."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, pi

from ....graph.network import Value
from ...approximations import (
    DIGAMMA_SERIES,
    DIGAMMA_STEPS,
    ERF_INV_CENTRE,
    ERF_INV_TAIL,
    LANCZOS,
    LANCZOS_FIRST,
    LEAST_FLOAT32,
)
from ..errors import UnsupportedOperation
from ..node import Builder


class _Single:
    """Arithmetic on tensors of float32 and numbers; float64 wants more digits than there are."""

    def __init__(self, build: Builder, x: Value, name: str) -> None:
        if x.dtype == "float64":
            raise UnsupportedOperation(f"{name} of float64 is not supported")
        self.build, self.kind = build, x.dtype
        self.x = build.cast(x, "float32")

    def __call__(self, operator: str, *given: Value | float) -> Value:
        tensors = [each if isinstance(each, Value) else self.build.like(each, self.x) for each in given]
        return self.build.elementwise(operator, *tensors)

    def polynomial(self, terms: Sequence[float], at: Value) -> Value:
        """Evaluate a polynomial, the highest power first."""
        found = self.build.like(terms[0], self.x)
        for term in terms[1:]:
            found = self("add", self("multiply", found, at), term)
        return found

    def part(self) -> Value:
        """Pi times what x is above the next lower integer."""
        return self("multiply", self("subtract", self.x, self("floor", self.x)), pi)

    def result(self, made: Value) -> Value:
        return self.build.cast(made, self.kind)


def erf_inv(build: Builder, x: Value) -> Value:
    """Return the inverse of erf, infinite at -1 and 1."""
    on = _Single(build, x, "erf_inv")
    w = on("negative", on("log", on("multiply", on("subtract", 1, on.x), on("add", 1, on.x))))
    near = on.polynomial(ERF_INV_CENTRE, on("subtract", w, 2.5))
    far = on.polynomial(ERF_INV_TAIL, on("subtract", on("sqrt", w), 3))
    made = on("multiply", on("where", on("less", w, 5), near, far), on.x)
    is_end = on("equal", on("abs", on.x), 1)
    return on.result(on("where", is_end, on("multiply", on.x, float("inf")), made))


def lgamma(build: Builder, x: Value) -> Value:
    """Return the logarithm of the absolute value of the gamma function."""
    on = _Single(build, x, "lgamma")
    is_low = on("less", on.x, 0.5)
    z = on("where", is_low, on("negative", on.x), on("subtract", on.x, 1))
    series = build.like(LANCZOS_FIRST, on.x)
    for number, coefficient in enumerate(LANCZOS):
        series = on("add", series, on("divide", coefficient, on("add", z, number + 1)))
    t = on("add", z, len(LANCZOS) - 0.5)
    made = on("subtract", on("multiply", on("add", z, 0.5), on("log", t)), t)
    made = on("add", on("add", made, on("log", series)), 0.5 * log(2 * pi))
    sine = on("log", on("abs", on("sin", on.part())))
    turned = on("subtract", on("subtract", log(pi), sine), made)
    size = on("abs", on.x)
    made = on("where", is_low, turned, made)
    return on.result(on("where", on("equal", size, float("inf")), size, made))


def digamma(build: Builder, x: Value) -> Value:
    """Return the derivative of the logarithm of the gamma function; NaN at 0 and negative integers."""
    on = _Single(build, x, "digamma")
    is_low = on("less", on.x, 0.5)
    y = on("where", is_low, on("subtract", 1, on.x), on.x)
    up = on("add", y, DIGAMMA_STEPS)
    square = on("divide", 1, on("multiply", up, up))
    tail = on("multiply", square, on.polynomial(DIGAMMA_SERIES[::-1], square))
    made = on("subtract", on("subtract", on("log", up), on("divide", 0.5, up)), tail)
    for step in range(DIGAMMA_STEPS):
        made = on("subtract", made, on("divide", 1, on("add", y, step)))
    part = on.part()
    turned = on("subtract", made, on("multiply", on("divide", on("cos", part), on("sin", part)), pi))
    is_pole = on("logical_and", on("less_equal", on.x, 0), on("equal", on.x, on("floor", on.x)))
    made = on("where", is_low, turned, made)
    return on.result(on("where", is_pole, float("nan"), made))


def next_after(build: Builder, x: Value, y: Value) -> Value:
    """Return the float32 next to x on the way to y: one more or less in the integer that its bits are."""
    if x.dtype != "float32":
        raise UnsupportedOperation(f"next_after of {x.dtype} is not supported")
    on, bits = _Single(build, x, "next_after"), build.elementwise("bitcast", x, dtype="int32")
    grows = on("equal", on("greater", x, 0), on("greater", y, x))
    step = build.elementwise("where", grows, build.like(1, bits), build.like(-1, bits))
    moved = build.elementwise("bitcast", build.elementwise("add", bits, step), dtype="float32")
    least = on("where", on("greater", y, 0), LEAST_FLOAT32, -LEAST_FLOAT32)
    made = on("where", on("equal", x, 0), least, moved)
    is_number = on("logical_and", on("equal", x, x), on("equal", y, y))
    return on("where", on("equal", x, y), y, on("where", is_number, made, float("nan")))
