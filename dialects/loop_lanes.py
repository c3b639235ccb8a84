"""Accesses in the lanes of a loop: which elements of a buffer the lanes touch, as lowering decides it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Data, Operation
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .index import IndexExpr
from .loop_steps import Copies, format_copies, names_around, parse_copies, require_lowering

SCALAR = "scalar"
"""One element for all lanes."""
VECTOR = "vector"
"""Neighbours: a vector in memory."""
STRIDED = "strided"
"""Elements that lie so many apart from lane to lane: `strided 64`."""
SCATTERED = "scattered"
"""An element of its own place for each lane: a gather, or a scatter."""
JOINED = "joined"
"""One element, into which the lanes are reduced."""
TRANSPOSED = "transposed"
"""Pairs, between which those of three neighbouring threads lie: four threads exchange theirs for neighbours."""
SINGLE = "single"
"""One element, written by the only lane that is on: an extent of 1 was split."""


@dataclass(frozen=True)
class Lanes:
    """The elements that lanes touch: `as vector`, or `as scattered, vector where (0 - i >= 0) or (i - 7 >= 0)`.

    `other` are ways of touching them with the copies of unrolled loops around in which it is that one instead.
    """

    usual: str
    other: tuple[tuple[str, Copies], ...] = ()

    def __str__(self) -> str:
        other = (f"{kind} where {format_copies(copies)}" for kind, copies in self.other)
        return ", ".join([f"as {self.usual}", *other])


@irdl_attr_definition
class LanesAttr(Data[Lanes]):
    """The elements that lanes touch, as an attribute: `#lw_loop.lanes<as vector>`."""

    name = "lw_loop.lanes"

    def __init__(self, usual: str | Lanes, other: Iterable[tuple[str, Iterable[Sequence[IndexExpr]]]] = ()) -> None:
        if isinstance(usual, str):
            usual = Lanes(usual, tuple((kind, tuple(map(tuple, copies))) for kind, copies in other))
        super().__init__(usual)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Lanes:
        with parser.in_angle_brackets():
            lanes = parse_optional_lanes(parser)
        if lanes is None:
            parser.raise_error("expected 'as' and which elements lanes touch")
        return lanes.data

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


def strided(step: int | None) -> str:
    """The way of touching elements that lie so many apart; None where they do not step evenly."""
    if step is None:
        return SCATTERED
    return {0: SCALAR, 1: VECTOR}.get(step, f"{STRIDED} {step}")


def step_of(kind: str) -> int | None:
    """Elements from one lane's to the next one's; None where they do not step evenly."""
    if kind.startswith(STRIDED):
        return int(kind.removeprefix(STRIDED))
    return {SCALAR: 0, JOINED: 0, VECTOR: 1}.get(kind)


def parse_optional_lanes(parser: AttrParser) -> LanesAttr | None:
    """Parse ` as vector` if it stands there."""
    if parser.parse_optional_keyword("as") is None:
        return None
    usual, other = _parse_kind(parser), []
    while parser.parse_optional_punctuation(",") is not None:
        kind = _parse_kind(parser)
        parser.parse_keyword("where")
        other.append((kind, parse_copies(parser)))
    return LanesAttr(usual, other)


def _parse_kind(parser: AttrParser) -> str:
    kind = parser.parse_identifier()
    if kind == STRIDED:
        return strided(parser.parse_integer(allow_boolean=False))
    known = (SCALAR, VECTOR, SCATTERED, JOINED, TRANSPOSED, SINGLE)
    if kind not in known:
        parser.raise_error(f"lanes touch elements as one of {', '.join((*known, STRIDED))}, got {kind}")
    return kind


def format_lanes(lanes: LanesAttr | None) -> str:
    """` as vector`, or nothing."""
    return f" {lanes.data}" if lanes is not None else ""


def lanes_around(op: Operation) -> Operation | None:
    """The loop around an operation whose iterations are lanes, in some copies of unrolled loops at least."""
    around = op.parent_op()
    while around is not None:
        if around.name == "lw_loop.for" and is_in_lanes(around):
            return around
        around = around.parent_op()
    return None


def is_in_lanes(loop: Operation) -> bool:
    """True for a loop whose iterations are lanes, in some copies of unrolled loops around at least."""
    written, kind = loop.properties.get("written"), loop.properties["kind"]
    return kind == StringAttr("vectorized") and (written is None or bool(written.data.unless))  # type: ignore[attr-defined]


def verify_lanes(op: Operation, what: str, lanes: LanesAttr) -> None:
    """VerifyException where an access is not on its way to a kernel, is in no lanes, or asks for loops not around."""
    require_lowering(op, f"{what} is touched {lanes.data}")
    if lanes_around(op) is None:
        raise VerifyException(f"{what} is touched {lanes.data}, but no loop around it has lanes")
    asked = {name for _, copies in lanes.data.other for conditions in copies for e in conditions for name in e.axes()}
    if missing := asked - names_around(op):
        raise VerifyException(f"{what} asks for '{min(missing)}', which is no loop around it")
