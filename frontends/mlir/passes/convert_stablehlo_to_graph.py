"""The pass that brings functions of StableHLO and CHLO into the graph dialect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ._convert import ConvertToGraph


@dataclass(frozen=True)
class ConvertStablehloToGraph(ConvertToGraph):
    """Functions of StableHLO and CHLO -> functions of lw_graph. Those of other dialects stay."""

    name = "lw-convert-stablehlo-to-graph"
    dialects: ClassVar[frozenset[str]] = frozenset({"stablehlo", "chlo"})
