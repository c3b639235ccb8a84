"""The pass that brings functions of TOSA into the graph dialect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ._convert import ConvertToGraph


@dataclass(frozen=True)
class ConvertTosaToGraph(ConvertToGraph):
    """Functions of TOSA (with tensor) -> functions of lw_graph. Those of other dialects stay."""

    name = "lw-convert-tosa-to-graph"
    dialects: ClassVar[frozenset[str]] = frozenset({"tosa", "tensor"})
