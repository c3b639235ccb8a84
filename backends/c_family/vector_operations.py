"""Operations on the lanes of vectors as C: broadcast, reduction, shuffles, and lanes by their numbers."""

from __future__ import annotations

from typing import cast

from xdsl.dialects import arith, vector
from xdsl.ir import Operation

from ...dialects import kernel
from ..unsupported import UnsupportedError
from . import index_arithmetic as index
from .arithmetic import as_unsigned, wrapped
from .expression import ADD, AND, MULTIPLY, OR, RELATION, XOR, Expr, infix, ternary
from .printer import KernelPrinter
from .types import element_name


def broadcast(p: KernelPrinter, op: Operation) -> None:
    """Handle a scalar in every lane."""
    lanes = p.atoms(op.operands[0])
    p.define(op.results[0], lanes * (kernel.lanes_of(op.results[0].type) // len(lanes)))


_JOINS: dict[str, type[Operation]] = {
    "maximumf": arith.MaximumfOp,
    "minimumf": arith.MinimumfOp,
    "maxnumf": arith.MaxnumfOp,
    "minnumf": arith.MinnumfOp,
}
_JOIN_SIGNS = {"add": ("+", ADD), "mul": ("*", MULTIPLY), "and": ("&", AND), "or": ("|", OR), "xor": ("^", XOR)}


def reduction(p: KernelPrinter, op: Operation) -> None:
    """Handle a vector's lanes joined into one, pairwise."""
    source, *accumulators = op.operands
    name = str(cast(vector.CombiningKindAttr, op.properties["kind"]).data)
    lanes = [*p.lanes(source), *(lane for a in accumulators for lane in p.lanes(a))]
    kind = element_name(source.type)
    while len(lanes) > 1:
        pairs = [_join(p, name, kind, lanes[i], lanes[i + 1]) for i in range(0, len(lanes) - 1, 2)]
        lanes = pairs + lanes[len(lanes) & ~1 :]
    p.define(op.results[0], lanes)


def _join(p: KernelPrinter, name: str, kind: str, a: Expr, b: Expr) -> Expr:
    if name in _JOIN_SIGNS:
        sign, precedence = _JOIN_SIGNS[name]
        return wrapped(p, sign, precedence, kind, a, b)
    if name in _JOINS:
        return p.language.extremum(p.helpers, name, kind, a, b)
    if name in ("maxsi", "minsi", "maxui", "minui"):
        a, b = (x if x.text.isidentifier() else p.variable(kind, "v", x) for x in (a, b))
        compared = (a, b) if name.endswith("si") else (as_unsigned(p, kind, a), as_unsigned(p, kind, b))
        return ternary(infix(">" if name.startswith("max") else "<", RELATION, *compared), a, b)
    raise UnsupportedError(f"GPU backends reduce no vector by {name}")


def extract(p: KernelPrinter, op: Operation) -> None:
    """Handle one lane of a vector, known when compiling."""
    if len(op.operands) > 1:
        raise UnsupportedError("GPU backends take out lanes at known places only")
    p.define(op.results[0], [p.lanes(op.operands[0])[kernel.numbers_of(op, "static_position")[0]]])


def insert(p: KernelPrinter, op: Operation) -> None:
    """Handle a vector with one lane replaced, known when compiling."""
    if len(op.operands) > 2:
        raise UnsupportedError("GPU backends replace lanes at known places only")
    lanes = list(p.lanes(op.operands[1]))
    lanes[kernel.numbers_of(op, "static_position")[0]] = p.scalar(op.operands[0])
    p.define(op.results[0], lanes)


def shuffle_lanes(p: KernelPrinter, op: Operation) -> None:
    """Handle a choice of lanes of two vectors."""
    both = (*p.atoms(op.operands[0]), *p.atoms(op.operands[1]))
    p.define(op.results[0], [both[max(pick, 0)] for pick in kernel.numbers_of(op, "mask")])


def lane_numbers(p: KernelPrinter, op: Operation) -> None:
    """Handle a vector of 0, 1, 2 and so on."""
    p.define_literal(op.results[0], [p.literal(n, "index") for n in range(kernel.lanes_of(op.results[0].type))])


def mask(p: KernelPrinter, op: Operation) -> None:
    """Handle truth values of lanes: those whose index is not negative."""
    assert isinstance(op, kernel.MaskOp)
    (start,) = p.atoms(op.start)
    lanes = []
    for lane in range(kernel.lanes_of(op.result.type)):
        lanes.append(index.compare(">=", RELATION, start, index.literal(-lane * op.step.data)))
    p.define(op.result, lanes)
