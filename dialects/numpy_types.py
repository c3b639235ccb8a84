"""Names of element types, and those that NumPy only knows once another package is imported."""

from __future__ import annotations

ELEMENT_TYPES = (
    *("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "bool"),
)
"""All there are, by NumPy's names; nothing else that a file calls an element type is one."""


def teach_numpy(dtype: str) -> None:
    """Make NumPy know a type by its name; ValueError says what is missing where it cannot."""
    if dtype != "bfloat16":
        return
    try:
        import ml_dtypes  # noqa: F401
    except ImportError:
        raise ValueError("arrays of bfloat16 need ml_dtypes, which is not installed: pip install ml_dtypes") from None
