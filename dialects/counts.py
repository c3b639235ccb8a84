"""The rule for options that count something: whole numbers of at least 1."""

from __future__ import annotations

from numbers import Integral


def require_count(name: str, value: object) -> None:
    """Refuse what is no whole number of at least 1, Python's or NumPy's, with a ValueError."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
