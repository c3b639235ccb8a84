"""Operators of networks: functions from tensors and options to tensor expressions, and how they may be fused."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeAlias

from xdsl.ir import Block, Operation

from ..dialects.graph import ApplyOp, Option
from ..te import ExpressionError, Tensor
from ..te.expr import Expr
from ..te.tensor import with_rounded_factors
from ..topi import identity

Compute: TypeAlias = Callable[..., "Tensor | list[Tensor]"]


class Kind(Enum):
    """Pattern in which an operator reads its inputs, which decides what it may share a kernel with."""

    ELEMENTWISE = "elementwise"
    """Element i of the result from element i of each input, or of one that is stretched to its shape."""
    VIEW = "view"
    """The same elements in the same order under another shape."""
    PART = "part"
    """Elements of its input that lie side by side in memory, under another shape."""
    JOIN = "join"
    """Elements of all inputs side by side in memory, under another shape: where these are written is its memory."""
    INJECTIVE = "injective"
    """Each element of the result from one place of the inputs."""
    REDUCTION = "reduction"
    """Each element of the result from many of one input."""
    ANCHOR = "anchor"
    """A kernel of its own, which elementwise operators behind it join."""
    ROWS = "rows"
    """A kernel of its own, several stages over rows, which elementwise operators before and behind it join."""
    OPAQUE = "opaque"
    """A kernel of its own, several stages that nothing joins."""


CHAINED = (Kind.ELEMENTWISE, Kind.INJECTIVE, Kind.VIEW)
"""Operators that one loop nest computes, however many follow one another."""
HEADS = (Kind.ANCHOR, Kind.REDUCTION, Kind.ROWS, Kind.OPAQUE)
"""Operators with a kernel each, which others may join: their results are in memory."""


Relayout: TypeAlias = Callable[[dict[str, Any], tuple[int, ...]], "dict[str, Any] | None"]
"""From all options and a permutation of the axes (new axis k is old axis `permutation[k]`) to the options for permuted
tensors; None where they cannot be permuted."""


@dataclass(frozen=True)
class Operator:
    """An operator of networks.

    `compute(*tensors, **options)` gives a te tensor, or a list of several. Options are its keyword parameters: numbers,
    words, or tuples of them, with their defaults. `relayout` says how options change when all tensors are permuted.
    """

    compute: Compute
    kind: Kind
    relayout: Relayout | None = None

    @property
    def tensors(self) -> tuple[int, int | None]:
        """The least and the most tensors it takes (None: any number)."""
        places = [p for p in _parameters(self.compute) if p.kind is not p.KEYWORD_ONLY]
        if any(p.kind is p.VAR_POSITIONAL for p in places):
            return 1, None
        return sum(p.default is p.empty for p in places), len(places)

    @property
    def defaults(self) -> dict[str, Any]:
        """The operator's options and their defaults; `inspect.Parameter.empty` for one that must be given."""
        return {p.name: p.default for p in _parameters(self.compute) if p.kind is p.KEYWORD_ONLY}

    def options(self, name: str, given: Mapping[str, Any]) -> dict[str, Option]:
        """Return the given options as the IR keeps them, without defaults; ValueError for a wrong one."""
        known = self.defaults
        for option in given:
            if option not in known:
                raise ValueError(f"operator '{name}' has no option '{option}'; it has {', '.join(known) or 'none'}")
        missing = [o for o, default in known.items() if default is inspect.Parameter.empty and o not in given]
        if missing:
            raise ValueError(f"operator '{name}' needs the option '{missing[0]}'")
        kept = {o: _plain(name, o, v) for o, v in given.items() if v is not None}
        return {o: v for o, v in kept.items() if not _same(v, known[o])}


def _parameters(function: Compute) -> list[inspect.Parameter]:
    return list(_signature(function).parameters.values())


@cache
def _signature(function: Compute) -> inspect.Signature:
    return inspect.signature(function)


def _same(value: Option, default: Any) -> bool:
    other = tuple(default) if isinstance(default, list | tuple) else default
    return type(value) is type(other) and value == other


def _plain(operator: str, name: str, value: Any) -> Option:
    if isinstance(value, list | tuple) or len(getattr(value, "shape", ())) == 1:
        return tuple(_scalar(operator, name, v) for v in value)
    return _scalar(operator, name, value)


def _scalar(operator: str, name: str, value: Any) -> bool | int | float | str:
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, bool | int | float | str):
        return plain
    raise ValueError(f"operator '{operator}': option '{name}' is a number, a word or several of them, got {value!r}")


def axis_moves(options: dict[str, Any], permutation: tuple[int, ...]) -> dict[str, Any] | None:
    """Return the relayout of operators whose option `axis` is one axis, or several that stay in the result."""
    axis, rank = options.get("axis"), len(permutation)
    if options.get("keepdims") is False:
        return None
    if axis is None:
        return options
    if isinstance(axis, int):
        return {**options, "axis": permutation.index(axis % rank)}
    return {**options, "axis": tuple(permutation.index(a % rank) for a in axis)}


def elementwise(compute: Compute) -> Operator:
    """Return an operator that works element by element, in any layout."""
    return Operator(compute, Kind.ELEMENTWISE, lambda options, _: options)


def anchor(compute: Compute) -> Operator:
    """Return an operator with a kernel of its own that elementwise ones join."""
    return Operator(compute, Kind.ANCHOR)


def product(compute: Compute) -> Operator:
    """Return an anchor that multiplies two tensors; its option `rounds` ("tf32") rounds factors of float32 before."""

    @wraps(compute)
    def rounding(*tensors: Tensor, rounds: str = "", **options: Any) -> Tensor | list[Tensor]:
        made = compute(*tensors, **options)
        if not rounds:
            return made
        return [with_rounded_factors(each, rounds) for each in (made if isinstance(made, list) else [made])]

    signature = inspect.signature(compute)
    option = inspect.Parameter("rounds", inspect.Parameter.KEYWORD_ONLY, default="", annotation="str")
    rounding.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), option]
    )
    return anchor(rounding)


def rows(compute: Compute, relayout: Relayout | None = axis_moves) -> Operator:
    """Return an operator in several stages over rows; its `axis` moves with the layout."""
    return Operator(compute, Kind.ROWS, relayout)


def opaque(compute: Compute) -> Operator:
    """Return an operator with a kernel to itself; its `axis` moves with the layout."""
    return Operator(compute, Kind.OPAQUE, axis_moves)


def reduction(compute: Compute) -> Operator:
    """Return an operator that reduces along the axes `axis`."""
    return Operator(compute, Kind.REDUCTION, axis_moves)


def injective(compute: Compute, relayout: Relayout | None = None) -> Operator:
    """Return an operator that moves elements."""
    return Operator(compute, Kind.INJECTIVE, relayout)


def view(compute: Compute) -> Operator:
    """Return an operator that gives its input another shape."""
    return Operator(compute, Kind.VIEW)


@cache
def operators() -> Mapping[str, Operator]:
    """Every operator by name: those in the modules of `graph/operators`."""
    found: dict[str, Operator] = {}
    for file in sorted((Path(__file__).parent / "operators").glob("*.py")):
        if file.stem.startswith("_"):
            continue
        module = importlib.import_module(f".operators.{file.stem}", __package__)
        for name, value in vars(module).items():
            if isinstance(value, Operator):
                assert name not in found, f"operator '{name}' is defined twice"
                found[name] = value
    return found


def operator(name: str) -> Operator:
    """Return the operator of a name; ValueError with names alike where there is none."""
    known = operators()
    if name not in known:
        near = get_close_matches(name, known, 3)
        shown = f"near: {', '.join(near)}" if near else f"there are {', '.join(sorted(known))}"
        raise ValueError(f"there is no operator '{name}'; {shown}")
    return known[name]


def apply(name: str, tensors: Sequence[Tensor | Expr], options: Mapping[str, Option]) -> list[Tensor]:
    """Build an operator on te tensors, or numbers where it broadcasts; ExpressionError where they do not fit."""
    found = operator(name)
    least, most = found.tensors
    if len(tensors) < least or (most is not None and len(tensors) > most):
        wanted = f"{least}" if most == least else f"{least} to {most}" if most is not None else f"at least {least}"
        raise ExpressionError(f"operator '{name}' takes {wanted} tensor(s), got {len(tensors)}")
    made = found.compute(*tensors, **options)
    results = list(made) if isinstance(made, list | tuple) else [made]
    return [identity(result) if any(result is given for given in tensors) else result for result in results]


def kind_of(op: Operation | Block) -> Kind | None:
    """Return the kind of an operator; None for what is none."""
    return operator(op.operator.data).kind if isinstance(op, ApplyOp) else None


def is_view(op: Operation | Block) -> bool:
    """True for an operator that gives the same elements under another shape."""
    return kind_of(op) is Kind.VIEW


def is_in_parts(op: Operation) -> bool:
    """True for a product whose columns are several results, which one loop nest gives."""
    return kind_of(op) is Kind.ANCHOR and len(op.results) > 1
