"""Slots for the values of a program, given by machine code: Python takes a microsecond for each operation.

It is `slots_of` of tests/features/test_slots.py, which is shorter to read and is held to it. To choose a schedule makes
11 to 24 programs, and takes 4 to 7 % longer with slots given by Python on CPUs, 8 to 12 % on GPUs (Zen 4).
"""

from __future__ import annotations

from ...backends.llvm.function_text import FunctionText
from ...passes.parametric.sizes import OPERATIONS

SYMBOL = "lw_slots"
ENTRY = 4
"""Numbers of a value: its operation, and three operands, the last one for those that there are not. Operands that are
values have their indices, constants theirs below zero, `-1 - index`; a column has its name as one."""
COLUMN = OPERATIONS.index("column")
"""The operation of a column."""
COUNTS = 4
"""Numbers that say how many columns, operations, slots and constants there are."""
_ARRAYS = "ptr %values, ptr %outputs, ptr %slots, ptr %columns, ptr %code, ptr %constants, ptr %last, ptr %free"
"""Values and outputs; what is found; for each value the last that uses it, slots nobody has any more."""


class _Writer(FunctionText):
    """Writes the function; values and slots are of 32 bits, as programs have them."""

    def number(self, array: str, index: str) -> str:
        """An element of an array, as a number of 64 bits."""
        found = self.put(f"load i32, ptr {self.element('i32', array, index)}")
        return self.put(f"sext i32 {found} to i64")

    def keep(self, value: str, array: str, index: str) -> None:
        """Write an element of an array."""
        number = self.put(f"trunc i64 {value} to i32")
        self.do(f"store i32 {number}, ptr {self.element('i32', array, index)}")

    def entry(self, value: str, place: int) -> str:
        """A number of a value."""
        return self.number("%values", self.put(f"add i64 {self.put(f'mul i64 {value}, {ENTRY}')}, {place}"))

    def if_so(self, condition: str, name: str) -> str:
        """Begin what is done under a condition, which ends in a branch to the label that is returned."""
        then, end = self.label(name), self.label(name)
        self.branch(condition, then, end)
        self.start_block(then)
        return end

    def if_needed(self, value: str, compared: str, name: str) -> str:
        """Begin what is done where a value is needed, and is a column (`eq`) or none (`ne`)."""
        needed = self.put(f"icmp sge i64 {self.number('%last', value)}, 0")
        of_kind = self.put(f"icmp {compared} i64 {self.entry(value, 0)}, {COLUMN}")
        return self.if_so(self.put(f"and i1 {needed}, {of_kind}"), name)

    def end_of(self, label: str) -> None:
        """End what is done under a condition."""
        self.do(f"br label %{label}")
        self.start_block(label)

    def counter(self, place: int) -> str:
        """The address of one of the `COUNTS`."""
        return self.element("i64", "%counts", str(place))

    def next_of(self, counter: str) -> str:
        """A count, which is one higher from then on."""
        count = self.put(f"load i64, ptr {counter}")
        self.do(f"store i64 {self.put(f'add i64 {count}, 1')}, ptr {counter}")
        return count


def source() -> str:
    """LLVM IR of a function that gives slots to the values that outputs need, and writes the operations with these.

    Of `%known` values, `%asked` are outputs. A value nobody needs any more leaves its slot to the next: an operation
    reads its operands before it writes, so that its result may take the place of one. Constants are renumbered in the
    order in which operations ask for them, and have the slots behind all others.
    """
    f = _Writer()
    columns, operations, slots, constants = (f.counter(place) for place in range(COUNTS))
    f.allocas.append("  %unused = alloca i64")
    f.do("store i64 0, ptr %unused")
    _mark_needed(f)
    value = f.loop("column", f.block, "%known", "columns.end")
    end = f.if_needed(value, "eq", "own")
    place = f.next_of(columns)
    f.keep(place, "%slots", value)
    f.keep(value, "%columns", place)
    f.end_of(end)
    f.do("br label %column.next")
    f.start_block("columns.end")
    own = f.put(f"load i64, ptr {columns}")
    f.do(f"store i64 {own}, ptr {slots}")
    _write_operations(f, own, operations, slots, constants)
    _place_constants(f, operations, slots)
    f.do("ret void")
    return f.text(f"define void @{SYMBOL}({_ARRAYS}, ptr %renumbered, ptr %counts, i64 %known, i64 %asked)")


def _mark_needed(f: _Writer) -> None:
    """Set for each value the last one that uses it: behind all for outputs; it is -1 for what none needs."""
    output = f.loop("output", "entry", "%asked", "outputs.end")
    f.keep("%known", "%last", f.number("%outputs", output))
    f.do("br label %output.next")
    f.start_block("outputs.end")
    step = f.loop("back", f.block, "%known", "back.end")
    value = f.put(f"sub i64 {f.put('sub i64 %known, 1')}, {step}")
    end = f.if_needed(value, "ne", "needed")
    for operand in range(1, ENTRY):
        used = f.entry(value, operand)
        known = f.if_so(f.put(f"icmp sge i64 {used}, 0"), "used")
        first = f.if_so(f.put(f"icmp slt i64 {f.number('%last', used)}, 0"), "first")
        f.keep(value, "%last", used)
        f.end_of(first)
        f.end_of(known)
    f.end_of(end)
    f.do("br label %back.next")
    f.start_block("back.end")


def _write_operations(f: _Writer, own: str, operations: str, slots: str, constants: str) -> None:
    """Give slots to what is computed, in its order; constants have their new numbers below zero for now."""
    value = f.loop("value", f.block, "%known", "values.end")
    end = f.if_needed(value, "ne", "computed")
    first = f.put(f"mul i64 {f.next_of(operations)}, {ENTRY + 1}")
    f.keep(f.entry(value, 0), "%code", first)
    for operand in range(1, ENTRY):
        _write_operand(f, value, f.entry(value, operand), own, constants)
        f.keep(f.put("load i64, ptr %place"), "%code", f.put(f"add i64 {first}, {operand}"))
    free = f.put("load i64, ptr %unused")
    some, fresh, taken = f.label("some"), f.label("fresh"), f.label("taken")
    f.branch(f.put(f"icmp sgt i64 {free}, 0"), some, fresh)
    f.start_block(some)
    left = f.put(f"sub i64 {free}, 1")
    f.do(f"store i64 {left}, ptr %unused")
    again = f.number("%free", left)
    f.do(f"br label %{taken}")
    f.start_block(fresh)
    new = f.next_of(slots)
    f.do(f"br label %{taken}")
    f.start_block(taken)
    slot = f.put(f"phi i64 [ {again}, %{some} ], [ {new}, %{fresh} ]")
    f.keep(slot, "%slots", value)
    f.keep(slot, "%code", f.put(f"add i64 {first}, {ENTRY}"))
    f.end_of(end)
    f.do("br label %value.next")
    f.start_block("values.end")
    f.allocas.append("  %place = alloca i64")


def _write_operand(f: _Writer, value: str, used: str, own: str, constants: str) -> None:
    """Find the place of an operand; its slot is free where the value is the last that uses it."""
    known, constant, end = f.label("known"), f.label("constant"), f.label("operand")
    f.branch(f.put(f"icmp sge i64 {used}, 0"), known, constant)
    f.start_block(known)
    place = f.number("%slots", used)
    f.do(f"store i64 {place}, ptr %place")
    ends = f.put(f"icmp eq i64 {f.number('%last', used)}, {value}")
    last = f.if_so(f.put(f"and i1 {ends}, {f.put(f'icmp sge i64 {place}, {own}')}"), "last")
    f.keep(place, "%free", f.next_of("%unused"))
    f.keep("-1", "%last", used)  # an operand that is there twice is free once
    f.end_of(last)
    f.do(f"br label %{end}")
    f.start_block(constant)
    index = f.put(f"sub i64 -1, {used}")
    unnumbered = f.if_so(f.put(f"icmp slt i64 {f.number('%renumbered', index)}, 0"), "new")
    count = f.next_of(constants)
    f.keep(count, "%renumbered", index)
    f.keep(index, "%constants", count)
    f.end_of(unnumbered)
    renumbered = f.number("%renumbered", index)
    f.do(f"store i64 {f.put(f'sub i64 -1, {renumbered}')}, ptr %place")
    f.do(f"br label %{end}")
    f.start_block(end)


def _place_constants(f: _Writer, operations: str, slots: str) -> None:
    """Write the slots of constants, now that it is known how many are before them."""
    last = f.put(f"load i64, ptr {slots}")
    before = f.put(f"sub i64 {last}, 1")
    step = f.loop("placed", f.block, f.put(f"load i64, ptr {operations}"), "placed.end")
    first = f.put(f"mul i64 {step}, {ENTRY + 1}")
    for operand in range(1, ENTRY):
        at = f.put(f"add i64 {first}, {operand}")
        place = f.number("%code", at)
        end = f.if_so(f.put(f"icmp slt i64 {place}, 0"), "below")
        f.keep(f.put(f"sub i64 {before}, {place}"), "%code", at)
        f.end_of(end)
    f.do("br label %placed.next")
    f.start_block("placed.end")
