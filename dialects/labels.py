"""Traits of operations that are found by their label: where another one of that label must not stand."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.traits import OpTrait
from xdsl.utils.exceptions import VerifyException


class LabelledApartInFunction(OpTrait):
    """No two operations of this kind in one function have the same label: a schedule step could mean either."""

    def verify(self, op: Operation) -> None:
        func = op.parent_op()
        while func is not None and not isinstance(func, FuncOp):
            func = func.parent_op()
        if func is None:
            return
        same = _of_kind(func, type(op))
        if next(same) is not op:  # the first one speaks for all: verifying stays linear
            return
        seen = {label_of(op)}
        for other in same:
            label = label_of(other)
            if label in seen:
                raise VerifyException(f"function '{func.sym_name.data}' has two '{op.name}' called '{label}'")
            seen.add(label)


class LabelledApartOnPath(OpTrait):
    """No operation of this kind stands in another one with the same label: index expressions could mean either.

    But for loops that are called by the axis they are bound to, whose value is the place of one thread on it.
    """

    def verify(self, op: Operation) -> None:
        label = label_of(op)
        around = op.parent_op()
        while around is not None:
            if isinstance(around, type(op)) and label_of(around) == label and not _is_called_by_kind(around, op):
                raise VerifyException(f"'{op.name}' called '{label}' stands in another one called '{label}'")
            around = around.parent_op()


def _is_called_by_kind(*ops: Operation) -> bool:
    return all(op.properties.get("kind") == op.properties["label"] for op in ops)


def label_of(op: Operation) -> str:
    """Return the label of an operation that has one."""
    label = op.properties["label"]
    assert isinstance(label, StringAttr)
    return label.data


def _of_kind(func: FuncOp, kind: type[Operation]) -> Iterator[Operation]:
    return (op for op in func.walk() if isinstance(op, kind))
