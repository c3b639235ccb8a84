"""Element types by NumPy's names, and what NumPy knows of them once another package is imported."""

from __future__ import annotations

from typing import Any

FLOATS = ("float16", "bfloat16", "float32", "float64")
"""From narrow to wide."""
NARROW_FLOATS = ("float16", "bfloat16")
"""Types whose sums and functions are computed in single precision."""
ROUNDED_FLOATS = ("tf32", "tf32x3")
"""Roundings that factors of products of float32 may have; they are no types of elements."""
PRECISIONS = (*NARROW_FLOATS, *ROUNDED_FLOATS)
"""Precisions that a network of float32 may be computed in."""
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
ELEMENT_TYPES = (*FLOATS, *INTEGERS, "bool")
"""Every element type; nothing else that a file calls one is."""


def working_type(dtype: str) -> str:
    """Return the type that functions, statistics and sums of networks on elements of a type are computed in."""
    return "float32" if dtype in NARROW_FLOATS else dtype


def teach_numpy(dtype: str) -> None:
    """Make NumPy know a type by its name; ValueError says what is missing where it cannot."""
    if dtype != "bfloat16":
        return
    try:
        import ml_dtypes  # noqa: F401
    except ImportError:
        raise ValueError("arrays of bfloat16 need ml_dtypes, which is not installed: pip install ml_dtypes") from None


def plain_value(value: Any) -> Any:
    """A number or an array of NumPy's or PyTorch's as Python's own numbers and lists; anything else as it is."""
    return value.tolist() if hasattr(value, "tolist") else value
