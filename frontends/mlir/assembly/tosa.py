"""Assembly formats of TOSA, all of whose operations share one: `%a, %b {attributes} : (types) -> type`."""

from __future__ import annotations

from ._reading import Format
from .stablehlo import common as common

FORMATS: dict[str, Format] = {}
