"""Names: what functions, tensors, axes, loops, blocks and buffers may be called, and how foreign text is shown.

The rule is that of the IR's own text, so that every name prints as a word and parses back. Names from elsewhere pass
`check_name` in the verifiers of the dialects; every printer of another language makes them safe again by itself.
"""

from __future__ import annotations

import re

from xdsl.utils.exceptions import VerifyException

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


def one_line(text: str, longest: int = 80) -> str:
    """Text from elsewhere as part of a line: what does not print (controls, line ends, bidi marks) as its escape."""
    cut = text if len(text) <= longest else f"{text[:longest]}..."
    return cut if cut.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in cut)


def printable(text: str) -> str:
    """Text from elsewhere for a terminal: its line ends and tabs stay, what else does not print becomes its escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
