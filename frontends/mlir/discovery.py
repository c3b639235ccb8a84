"""Converters by the name of the operation.

The module `operators/stablehlo_shape.py` holds operations of StableHLO.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .node import Node


@dataclass(frozen=True)
class Converter:
    """A function from an operation to what computes it; a module's variable of this type is found by its name."""

    function: Callable[[Node], Any]

    def __call__(self, node: Node) -> Any:
        return self.function(node)


@cache
def converters() -> Mapping[str, Converter]:
    """Return all converters, `stablehlo.add` being `add` of a module whose name begins with `stablehlo`."""
    found: dict[str, Converter] = {}
    for file in sorted((Path(__file__).parent / "operators").glob("*.py")):
        if file.stem.startswith("_"):
            continue
        dialect = file.stem.partition("_")[0]
        module = importlib.import_module(f".operators.{file.stem}", __package__)
        for name, value in vars(module).items():
            if isinstance(value, Converter) and not name.startswith("_"):
                full = f"{dialect}.{name.removesuffix('_')}"
                assert full not in found, f"operation '{full}' is converted twice"
                found[full] = value
    return found
