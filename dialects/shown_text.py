"""Text from elsewhere (names, messages, files) as it is shown: nothing in it moves a cursor or ends a line."""

from __future__ import annotations


def one_line(text: str, longest: int = 80) -> str:
    """Text from elsewhere as part of a line: what does not print (controls, line ends, bidi marks) as its escape."""
    cut = text if len(text) <= longest else f"{text[:longest]}..."
    return cut if cut.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in cut)


def printable(text: str) -> str:
    """Text from elsewhere for a terminal: its line ends and tabs stay, what else does not print becomes its escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else _escaped(c) for c in text)


def size(count: int) -> str:
    """Bytes in the largest unit that they are one of: `12 bytes`, `3.4 KiB`, `5.6 MiB`."""
    if count < 1 << 10:
        return f"{count} byte" if count == 1 else f"{count} bytes"
    return f"{count / 2**10:.1f} KiB" if count < 1 << 20 else f"{count / 2**20:.1f} MiB"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
