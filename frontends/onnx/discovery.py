"""Converters by the name of the ONNX operator: functions of that name in the modules of `operators/`."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from .node import Node

Converter = Callable[[Node], Any]

STANDARD = ("", "ai.onnx")
"""Names of ONNX's own domain."""
_MICROSOFT, _ALSO_MICROSOFT = "com.microsoft", ("DequantizeLinear", "Gelu", "QuantizeLinear")
"""onnxruntime's domain, and operators of it that are ONNX's own: from before ONNX had them, or had their types."""


@cache
def converters() -> dict[str, Converter]:
    """Return all converters: functions whose name begins with a capital letter."""
    folder = Path(__file__).parent / "operators"
    found: dict[str, Converter] = {}
    for file in sorted(folder.glob("*.py")):
        if file.stem.startswith("_"):
            continue
        module = importlib.import_module(f".operators.{file.stem}", __package__)
        for name, function in vars(module).items():
            if name[0].isupper() and inspect.isfunction(function) and function.__module__ == module.__name__:
                found[name] = function
    return found


@cache
def has_converter(domain: str, operator: str) -> bool:
    """True for an operator of ONNX's own domain, or of another that a module of `operators/` is of."""
    if operator not in converters():
        return False
    module = importlib.import_module(converters()[operator].__module__)
    own = (module.DOMAIN,) if hasattr(module, "DOMAIN") else STANDARD
    return domain in own or (domain == _MICROSOFT and operator in _ALSO_MICROSOFT)
