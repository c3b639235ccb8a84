"""Converters by the name of the ATen operator: functions that name some, in the modules of `operators/`."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path

from .node import Converter


@cache
def converters() -> dict[str, Converter]:
    """Return all converters by name and overload, as `add.Tensor`."""
    found: dict[str, Converter] = {}
    for file in sorted((Path(__file__).parent / "operators").glob("*.py")):
        if file.stem.startswith("_"):
            continue
        module = importlib.import_module(f".operators.{file.stem}", __package__)
        for function in vars(module).values():
            for name in getattr(function, "aten", ()) if callable(function) else ():
                assert found.setdefault(name, function) is function, f"operator '{name}' has two converters"
    return found
