"""Blocks of assembly as operations of the kernel dialect again, to be interpreted in place of what they stand for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects import math as maths
from xdsl.dialects.builtin import IndexType, IntegerAttr, f32
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from loopwright.backends.cuda.assembly import Assembly
from loopwright.dialects import kernel

LOAD = re.compile(r"ld\.shared(?:\.v[24])?\.f32 \{?([^\]}]*?)\}?, \[(p\d+)([+-]\d+)?\];")
FMA = re.compile(r"fma\.rn\.f32 (\w+), (\w+), (\w+), (\w+);")


class Blocks:
    """The blocks of a printed module, and the operations that each stands for."""

    def __init__(self) -> None:
        self.found: list[tuple[Assembly, list[Operation]]] = []

    def read_back(self) -> None:
        """Put operations that do what the instructions say in the place of those that were printed as them."""
        for assembly, run in self.found:
            _read_back(assembly, run)


@contextmanager
def assembly_blocks() -> Iterator[Blocks]:
    """Note blocks of assembly as they are printed."""
    blocks, adding = Blocks(), Assembly.add
    runs: dict[int, list[Operation]] = {}

    def add(assembly: Assembly, op: Operation) -> None:
        runs.setdefault(id(assembly), []).append(op)
        adding(assembly, op)

    def print(assembly: Assembly) -> None:
        printing(assembly)
        blocks.found.append((assembly, runs[id(assembly)]))

    printing = Assembly.print
    with patch.object(Assembly, "add", add), patch.object(Assembly, "print", print):
        yield blocks


def _copies(op: Operation) -> list[Operation]:
    return [inner for inner in op.walk() if isinstance(inner, kernel.AsyncCopyOp | kernel.CommitOp)]


def _read_back(assembly: Assembly, run: list[Operation]) -> None:
    build = Builder(InsertPoint.after(run[-1]))
    run = [*run]

    def constant(number: int) -> SSAValue:
        return build.insert(arith.ConstantOp(IntegerAttr(number, IndexType()))).result

    values: dict[str, SSAValue] = {}
    for (source, place), name in assembly.floats.items():
        is_buffer = isinstance(source.owner, kernel.AllocOp)
        load = kernel.LoadOp(source, constant(place), 0, f32, 0) if is_buffer else None
        values[name] = source if load is None else build.insert(load).value
    places: dict[str, tuple[SSAValue, SSAValue]] = {}
    for (buffer, terms), name in assembly.places.items():
        total = constant(0)
        for value, factor in terms:
            product = build.insert(arith.MuliOp(value, constant(factor)))
            total = build.insert(arith.AddiOp(total, product.result)).result
        places[name] = (buffer, total)
    copies = [op for op in run for _ in _copies(op)]
    for line in assembly.lines:
        if "cp.async" in line:  # in its order among what is read and multiplied
            if (op := copies.pop(0)) in run:
                op.detach()
                build.insert(op)
                run.remove(op)
        elif loaded := LOAD.fullmatch(line):
            buffer, index = places[loaded[2]]
            first, rest = divmod(int(loaded[3] or 0), 4)
            registers = loaded[1].split(", ")
            assert (rest == 0 and f".v{len(registers)}." in line) or len(registers) == 1
            for lane, register in enumerate(registers):
                values[register] = build.insert(kernel.LoadOp(buffer, index, first + lane, f32, 0)).value
        else:
            multiplied = FMA.fullmatch(line)
            assert multiplied, line
            a, b, c = (values[name] for name in multiplied.groups()[1:])
            values[multiplied[1]] = build.insert(maths.FmaOp(a, b, c)).results[0]
    assert not copies
    zero = constant(0)
    for buffer, place in assembly.written:
        build.insert(kernel.StoreOp(values[assembly.held[buffer][place]], buffer, zero, place, 0))
    for op in reversed(run):
        op.detach()
        op.erase(safe_erase=False)
