"""Names: what functions, tensors, axes, loops, blocks and buffers may be called.

The rule is that of the IR's own text, so that every name prints as a word and parses back. Names from elsewhere pass
`check_name` in the verifiers of the dialects; every printer of another language makes them safe again by itself.
"""

from __future__ import annotations

import re

from xdsl.utils.exceptions import VerifyException

from .shown_text import one_line

LONGEST_NAME = 1000
"""Characters; names of fused loops are those of their parts in a row."""
LONGEST_GIVEN_NAME = 100
"""Characters of a name given in Python that are kept, so that names made of it stay below `LONGEST_NAME`."""
GRAMMAR = ("reduce", "floordiv", "mod", "where", "in")
"""Words that the text of the dialects gives a meaning beside axes, so no axis or loop carries them."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.$]*")


def check_name(what: str, name: str) -> None:
    """VerifyException unless `name` is a letter or `_`, followed by letters, digits, `_`, `.` and `$` (all ASCII)."""
    if len(name) > LONGEST_NAME:
        raise VerifyException(f"{what} has a name of {len(name)} characters, at most {LONGEST_NAME} are allowed")
    if _NAME.fullmatch(name) is None:
        raise VerifyException(
            f"{what} is called '{one_line(name)}': names are a letter or '_', then letters, digits, '_', '.' and '$'"
        )


def check_axis_name(what: str, name: str) -> None:
    """VerifyException unless `name` may name an axis or a loop: a name that is no word of the grammar."""
    check_name(what, name)
    if name in GRAMMAR:
        raise VerifyException(f"{what} is called '{name}', which has a meaning in the IR's text: choose another name")
