"""The error for code that a backend cannot print."""


class UnsupportedError(Exception):
    """An operation or a type that a backend cannot print."""
