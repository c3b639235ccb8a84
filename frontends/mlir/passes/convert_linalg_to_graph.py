"""The pass that brings functions of linalg on tensors into the graph dialect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ._convert import ConvertToGraph


@dataclass(frozen=True)
class ConvertLinalgToGraph(ConvertToGraph):
    """Functions of linalg on tensors (with arith and math) -> functions of lw_graph. Those of other dialects stay."""

    name = "lw-convert-linalg-to-graph"
    dialects: ClassVar[frozenset[str]] = frozenset({"linalg", "tensor", "math", "cf"})
