"""Assembly formats of CHLO, the operations of clients above StableHLO."""

from __future__ import annotations

from ._reading import Format
from .stablehlo import common as common
from .stablehlo import constant

FORMATS: dict[str, Format] = {"constant": constant}
