"""What a backend says of code that it cannot print."""


class UnsupportedError(Exception):
    """An operation or a type that a backend cannot print."""
