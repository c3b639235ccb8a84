"""Slots that machine code gives to the values of a program are those that the lines of Python here give."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from loopwright.passes.parametric.sizes import OPERATIONS, Size, SizeGraph, SizeValue, maximum, minimum, where
from loopwright.search.features.program import Program

Operation = tuple[int, tuple[int, ...], int]
"""Its number, the slots of its operands, and its own."""


def slots_of(graph: SizeGraph, outputs: Sequence[Size]) -> tuple[dict[str, int], list[Operation], list[int]]:
    """The slot of each column, the operations that outputs need, and the slots of outputs.

    A value has its slot up to the last operation that reads it, whose result may take it. Constants are behind all
    others, in the order in which they are asked for.
    """
    own = [output.index for output in outputs if isinstance(output, SizeValue)]
    last = dict.fromkeys(own, len(graph.nodes))  # the last node that uses each
    for node in reversed(graph.nodes[: 1 + max(own, default=-1)]):
        if node.index in last and node.op != "column":
            for operand in node.args:
                if isinstance(operand, SizeValue):
                    last.setdefault(operand.index, node.index)
    needed = [node for node in graph.nodes if node.index in last]
    columns = {str(node.args[0]): place for place, node in enumerate(n for n in needed if n.op == "column")}
    slot = {node.index: columns[str(node.args[0])] for node in needed if node.op == "column"}
    code, constants = list[tuple[int, list[int], int]](), dict[Size | str, int]()
    free, count = list[int](), len(columns)
    for node in (each for each in needed if each.op != "column"):
        operands = list[int]()
        for operand in node.args:
            if isinstance(operand, SizeValue):
                operands.append(slot[operand.index])
                if last[operand.index] == node.index and slot[operand.index] >= len(columns):
                    free.append(slot[operand.index])
                    last[operand.index] = -1  # an operand that is there twice is free once
            else:
                operands.append(-1 - constants.setdefault(operand, len(constants)))
        if not free:
            free.append(count)
            count += 1
        slot[node.index] = free.pop()
        code.append((OPERATIONS.index(node.op), operands, slot[node.index]))
    placed = [(op, tuple(s if s >= 0 else count - 1 - s for s in operands), to) for op, operands, to in code]
    results = [
        slot[o.index] if isinstance(o, SizeValue) else count + constants.setdefault(o, len(constants)) for o in outputs
    ]
    return columns, placed, results


@pytest.mark.parametrize("seed", range(40))
def test_slots_are_those_of_python(seed: int) -> None:
    random = Random(seed)
    graph = SizeGraph()
    sizes: list[Size] = [graph.column(f"c{n}") for n in range(random.randint(1, 4))]
    for _ in range(random.randint(0, 200)):
        a, b = random.choice(sizes), random.choice([*sizes, random.randint(1, 9)])
        make = random.choice(
            [lambda: a + b, lambda: a - b, lambda: a * b, lambda: maximum(a, b), lambda: minimum(a, b)]  # noqa: B023
        )
        found = where(a, b, make()) if isinstance(a, SizeValue) and random.random() < 0.2 else make()
        sizes.append(found)
    outputs = random.choices(sizes, k=random.randint(1, 6)) + random.choices([3, 0.5], k=random.randint(0, 2))
    program = Program(graph, outputs)
    columns, code, results = slots_of(graph, outputs)
    assert program.columns == columns
    assert program.results.tolist() == results
    assert [row[0] for row in program.code.tolist()] == [op for op, _, _ in code]
    for (_, *operands, to), (_, wanted, place) in zip(program.code.tolist(), code, strict=True):
        assert (tuple(operands[: len(wanted)]), to) == (wanted, place)
    assert np.issubdtype(program.code.dtype, np.int32)
