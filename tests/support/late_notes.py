"""Notes of failures that take long to write, such as the text of a module: they are written where something fails."""

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def noting(*what: object) -> Iterator[None]:
    """Add to an exception raised here the text of some things, as it is by then."""
    try:
        yield
    except Exception as error:
        error.add_note("\n".join(map(str, what)))
        raise
