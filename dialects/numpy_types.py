"""Element types that NumPy only knows once another package is imported."""

from __future__ import annotations


def teach_numpy(dtype: str) -> None:
    """Make NumPy know a type by its name; ValueError says what is missing where it cannot."""
    if dtype != "bfloat16":
        return
    try:
        import ml_dtypes  # noqa: F401
    except ImportError:
        raise ValueError("arrays of bfloat16 need ml_dtypes, which is not installed: pip install ml_dtypes") from None
