"""The signatures of a network's operators, written from the operators: prints `graph/network_operators.py`."""

import inspect
from pathlib import Path

from loopwright.graph.operator import Operator, operators

HEAD = '''"""Signatures of operators for type checkers, written by `tests/support/network_operators.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

ValueT = TypeVar("ValueT")
"""A tensor of the network."""

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..topi.arguments import Ints, Padding

    Operand: TypeAlias = ValueT | npt.ArrayLike
    Tag: TypeAlias = str | None


class NetworkOperators(Generic[ValueT]):
    """The methods of `lw.Network` that operators give it; each takes a `label`, its name in the IR."""

    if TYPE_CHECKING:

'''


def parameter(found: inspect.Parameter) -> str:
    """An operator's parameter as a method has it: tensors, then options."""
    default = "" if found.default is found.empty else " = ..."
    if found.kind is found.KEYWORD_ONLY:
        return f"{found.name}: {found.annotation}{default}"
    star = "*" if found.kind is found.VAR_POSITIONAL else ""
    return f"{star}{found.name}: Operand[ValueT]{default}"


def method(name: str, operator: Operator) -> str:
    """The line of a method."""
    signature = inspect.signature(operator.compute)
    found = list(signature.parameters.values())
    several = any(each.kind is each.VAR_POSITIONAL for each in found)
    tensors = [parameter(each) for each in found if each.kind is not each.KEYWORD_ONLY]
    options = [*(parameter(each) for each in found if each.kind is each.KEYWORD_ONLY), "label: Tag = ..."]
    marks = [] if several else ["/", "*"]
    result = "tuple[ValueT, ...]" if str(signature.return_annotation).startswith("list") else "ValueT"
    return f"def {name}({', '.join(['self', *tensors, *marks, *options])}) -> {result}: ..."


def text() -> str:
    """The module."""
    return HEAD + "".join(f"        {method(name, each)}\n" for name, each in sorted(operators().items()))


if __name__ == "__main__":
    import loopwright

    (Path(loopwright.__file__).resolve().parent / "graph" / "network_operators.py").write_text(text())
