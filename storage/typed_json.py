"""Values of JSON as the types that they are meant to have: nothing is converted, nothing more or less is taken."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

_LEAST, _MOST = -(1 << 62), 1 << 62
"""Numbers lie between these: sums of two fit 64 bits."""
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


class TypeMismatch(ValueError):
    """A value is not of the type it is meant to have; the text says where, and what it is."""


def shown(value: Any) -> str:
    """Show a value from a file in a sentence: short, and on one line."""
    return _SHORT.repr(value)


def parse_json(data: bytes) -> Any:
    """Return the value that a text of JSON has; TypeMismatch where it is none, or too deep to be read."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise TypeMismatch(f"no JSON: {error}") from None


def read_as(kind: Any, value: Any, where: str) -> Any:
    """Return a value of JSON as a type; TypeMismatch names the part of `where` that is another one.

    Types are `str`, `int`, `bool`, dataclasses of such (objects with just their fields), tuples (lists), `Mapping[str,
    ...]`, and each of these `| None`.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return None if value is None else read_as(next(each for each in inner if each is not NoneType), value, where)
    if origin is tuple:
        return _tuple(inner, value, where)
    if origin is Mapping:
        if type(value) is not dict:
            raise TypeMismatch(f"{where} is no object")
        return {name: read_as(inner[1], each, f"{where}: {shown(name)}") for name, each in value.items()}
    if is_dataclass(kind):
        return _object(kind, value, where)
    if type(value) is not kind:
        raise TypeMismatch(f"{where} is {shown(value)}, not of type {kind.__name__}")
    if kind is int and not _LEAST < value < _MOST:
        raise TypeMismatch(f"{where} is {shown(value)}, too large a number")
    return value


def _tuple(kinds: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if type(value) is not list:
        raise TypeMismatch(f"{where} is {shown(value)}, no list")
    single = where.removesuffix("s")
    if kinds[-1] is not Ellipsis:
        if len(value) != len(kinds):
            raise TypeMismatch(f"{where} has {len(value)} parts, not {len(kinds)}")
        return tuple(read_as(k, v, f"{single} {n}") for n, (k, v) in enumerate(zip(kinds, value, strict=True)))
    return tuple(read_as(kinds[0], each, f"{single} {number}") for number, each in enumerate(value))


def _object(cls: Any, value: Any, where: str) -> Any:
    if type(value) is not dict:
        raise TypeMismatch(f"{where} is no object")
    known = _hints(cls)
    for name in (*value, *known):
        if name not in known or name not in value:
            raise TypeMismatch(f"{where} has {'no' if name in known else 'an unknown'} field {shown(name)}")
    return cls(**{name: read_as(kind, value[name], f"{where}: {name}") for name, kind in known.items()})


@cache
def _hints(cls: Any) -> Mapping[str, Any]:
    hints = get_type_hints(cls)
    return {each.name: hints[each.name] for each in fields(cls)}
