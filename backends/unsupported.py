"""The error for code that a backend cannot print."""

from ..dialects.errors import Error


class UnsupportedError(Error):
    """An operation or a type that a backend cannot print."""
