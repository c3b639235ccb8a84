"""Blobs behind `dense_resource`: the section `{-# ... #-}` at the end of a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

Resources: TypeAlias = Mapping[str, bytes]
_BLOB = re.compile(r'"?([\w.$\-]+)"?\s*:\s*"0x([0-9A-Fa-f]*)"')
_HEADER_BYTES = 4
"""A blob begins with its alignment, in so many bytes (MLIR's AsmResourcePrinter)."""


def without_resources(text: str) -> tuple[str, Resources]:
    """Split a text into what stands before its resources, and the resources by name."""
    start = text.rfind("{-#")
    if start < 0 or "#-}" not in text[start:]:
        return text, {}
    found = {key: bytes.fromhex(digits)[_HEADER_BYTES:] for key, digits in _BLOB.findall(text[start:])}
    return text[:start], found
