"""Hints of types of what is public can be evaluated, as documentation and checkers of arguments do."""

import inspect
import typing
from collections.abc import Iterator
from functools import cached_property
from types import ModuleType
from typing import Any

import pytest

import loopwright as lw

PUBLIC = sorted({*lw._HOMES, *lw._SUBPACKAGES})


def _functions(name: str, found: object) -> Iterator[tuple[str, Any]]:
    """A public thing with hints, and its public methods."""
    if inspect.isfunction(found):
        yield name, found
    if not inspect.isclass(found) or not found.__module__.startswith("loopwright"):
        return
    yield name, found
    for each in dir(found):
        if each.startswith("_") and each not in ("__init__", "__call__"):
            continue
        method = inspect.getattr_static(found, each)
        if isinstance(method, classmethod | staticmethod):
            method = method.__func__
        method = method.fget if isinstance(method, property) else method
        method = method.func if isinstance(method, cached_property) else method
        if inspect.isfunction(method):
            yield f"{name}.{each}", method


@pytest.mark.parametrize("name", PUBLIC)
def test_hints_of_types_are_evaluated(name: str) -> None:
    found = getattr(lw, name)
    if name in ("torch", "jax", "onnx"):
        pytest.importorskip(name)
    named = {name: found}
    if isinstance(found, ModuleType):
        named = {f"{name}.{each}": getattr(found, each) for each in dir(found) if not each.startswith("_")}
    wrong = []
    for said, function in (pair for each in named.items() for pair in _functions(*each)):
        try:
            typing.get_type_hints(function)
        except (NameError, TypeError) as error:
            wrong.append(f"{said}: {error}")
    assert not wrong
