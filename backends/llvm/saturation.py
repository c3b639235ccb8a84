"""Vectors of floats as integers: toward zero, the nearest limit beyond the limits, 0 for what is no number.

LLVM 22 saturates vectors lane by lane: float32 to int32 takes six times as long so (one core of a Zen 5).
"""

from __future__ import annotations

from .function import Function
from .types import float_text, shape_text, splat_text

_DIGITS = {"float": 24, "double": 53}
"""Bits of integers that have both limits among the numbers of a type, at most."""


def saturated(f: Function, value: str, types: tuple[str, str], lanes: int, signed: bool) -> str:
    """Return the integers of a vector, whose types before and after are given."""
    before, after = types
    element = "double" if "double" in before else "float"
    if element not in before:
        value = f.put(f"fpext {before} {value} to {shape_text(lanes, element)}")
    bits = int(after.rstrip(">").rpartition("i")[2])
    convert = _as_numbers if bits <= _DIGITS[element] else _as_integers
    return convert(f, value, element, lanes, bits, signed)


def _as_numbers(f: Function, value: str, element: str, lanes: int, bits: int, signed: bool) -> str:
    """Saturate numbers, then go through 32 bits."""
    low, beyond = _limits(bits, signed)
    before, truth, after, wide = (shape_text(lanes, text) for text in (element, "i1", f"i{bits}", "i32"))
    is_nan = f.put(f"fcmp uno {before} {value}, {value}")
    for predicate, limit in (("ogt", low), ("olt", beyond - 1)):
        value = _limited(f, value, element, lanes, predicate, limit)
    value = f.put(f"select {truth} {is_nan}, {before} zeroinitializer, {before} {value}")
    whole = f.put(f"{'fptosi' if signed or bits < 32 else 'fptoui'} {before} {value} to {wide}")
    return whole if wide == after else f.put(f"trunc {wide} {whole} to {after}")


def _as_integers(f: Function, value: str, element: str, lanes: int, bits: int, signed: bool) -> str:
    """Saturate numbers below, and integers above, where the limit is no number; what these are of is not defined."""
    low, beyond = _limits(bits, signed)
    before, truth, after = (shape_text(lanes, text) for text in (element, "i1", f"i{bits}"))
    is_nan = f.put(f"fcmp uno {before} {value}, {value}")
    is_over = f.put(f"fcmp oge {before} {value}, {_number(beyond, element, lanes)}")
    within = _limited(f, value, element, lanes, "ogt", low)
    whole = f.put(f"{'fptosi' if signed else 'fptoui'} {before} {within} to {after}")
    most = splat_text(str(beyond - 1), f"i{bits}", lanes)
    whole = f.put(f"select {truth} {is_over}, {after} {most}, {after} {whole}")
    return f.put(f"select {truth} {is_nan}, {after} zeroinitializer, {after} {whole}")


def _limits(bits: int, signed: bool) -> tuple[int, int]:
    """The least integer, and the first that is too large."""
    return (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)


def _limited(f: Function, value: str, element: str, lanes: int, predicate: str, limit: int) -> str:
    """Return the lanes that compare so with a limit, and the limit for the others."""
    before, truth = shape_text(lanes, element), shape_text(lanes, "i1")
    text = _number(limit, element, lanes)
    within = f.put(f"fcmp {predicate} {before} {value}, {text}")
    return f.put(f"select {truth} {within}, {before} {value}, {before} {text}")


def _number(value: int, element: str, lanes: int) -> str:
    return splat_text(float_text(float(value), element), element, lanes)
