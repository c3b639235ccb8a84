"""Names of operations by the line of the printed program that they stand on, and its text."""

from __future__ import annotations

from io import StringIO

from xdsl.ir import Operation
from xdsl.printer import Printer


class _Lines(Printer):
    """Prints a program and keeps where an operation begins in the text."""

    wanted: Operation
    begins = 0

    def print_op(self, op: Operation) -> None:
        if op is self.wanted:
            assert isinstance(self.stream, StringIO)
            self.begins = self.stream.tell()
        super().print_op(op)


def located(op: Operation) -> str:
    """Name an operation by its line, from 1 on, in the printed module that it stands in, and by its first line."""
    program: Operation = op
    while (around := program.parent_op()) is not None:
        program = around
    stream = StringIO()
    printer = _Lines(stream=stream)
    printer.wanted = op
    printer.print_op(program)
    text = stream.getvalue()
    number = text.count("\n", 0, printer.begins)
    return f"line {number + 1}: {text.splitlines()[number].strip()}"
