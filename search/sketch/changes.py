"""Random changes of a population's rows, as machine code: NumPy makes the same ones in 80 calls.

Untuned choices change 512 to 1,024 rows a hundred times each: in 150 to 190 us by NumPy, in 20 to 35 so (a Zen 5 core).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from ...backends.llvm.function_text import FunctionText
from ...backends.llvm.jit import kept_function
from ...dialects.cached_property import cached_property

Integers = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

EXCHANGED = 0.15
"""Share of changes that move a factor from one tile of an axis to another one, so that their product stays. A choice:
product-preserving moves are rare among random ones."""
NEIGHBOUR = 0.6
"""Share of changes that go to the next choice rather than to any."""
TWICE = 0.4
"""Share of changed rows that are changed in another place too. A choice."""
_SYMBOL = "lw_change_rows"


@dataclass(frozen=True)
class Choices:
    """Choices of holes: how many of each `(d,)`, and their logarithms `(d, most choices)`, infinite beyond the last.

    `partners` are the holes that each may trade factors with, `(d, most partners)`, filled up with -1.
    """

    sizes: Integers
    logs: Doubles
    partners: Integers

    def change(self, rng: np.random.Generator, rows: Integers, shares: Doubles) -> None:
        """Change a hole of all rows `(n, d)`, in place, then one of a part: the first whose share is above a number.

        It goes to the next choice up or down, or to any; one that trades takes a partner to where their product changes
        least. What numbers there are for is drawn for all rows before the next: who changes, in which hole, who trades;
        of those that do not up or down, where to, how far; of those that do with whom, and then the same.
        """
        assert rows.flags.c_contiguous and rows.dtype == np.int64
        count, holes = rows.shape
        drawn = rng.bit_generator.ctypes
        functions = [ctypes.cast(each, ctypes.c_void_p) for each in (drawn.next_double, drawn.next_uint32)]
        whole, broken = np.empty((_WHOLE, count), dtype=np.int64), np.empty((_BROKEN, count))
        own = rows.ctypes.data, shares.ctypes.data, *self._tables, whole.ctypes.data, broken.ctypes.data
        widths = self.logs.shape[1], self.partners.shape[1]
        with rng.bit_generator.lock:
            _function()(drawn.state, *functions, *own, count, holes, *widths)

    @cached_property
    def _tables(self) -> tuple[int, ...]:
        """Places of the arrays, which somebody else keeps."""
        tables = self.sizes, self.logs, self.partners
        assert all(table.flags.c_contiguous for table in tables)
        return tuple(table.ctypes.data for table in tables)


@cache
def _function() -> Callable[..., None]:
    place, size = ctypes.c_void_p, ctypes.c_int64
    kind = ctypes.CFUNCTYPE(None, *[place] * 10, *[size] * 4)
    return kept_function(f"{_step()}\n{_changes()}\n", _SYMBOL, kind)


_WHOLE, _BROKEN = 8, 2
"""Arrays of numbers for each row that a change takes: whole ones, and others."""
_NUMBERS = "ptr %state, ptr %random, ptr %integer"


class _Function(FunctionText):
    """A function of arrays of whole numbers and of floats, as its lines are written."""

    def whole(self, array: str, index: str) -> str:
        """An element of an array of whole numbers."""
        return self.put(f"load i64, ptr {self.element('i64', array, index)}")

    def float(self, array: str, index: str) -> str:
        """An element of an array of floats."""
        return self.put(f"load double, ptr {self.element('double', array, index)}")

    def keep(self, kind: str, value: str, array: str, index: str) -> None:
        self.do(f"store {kind} {value}, ptr {self.element(kind, array, index)}")

    def place(self, row: str, width: str, column: str) -> str:
        """The index of an element in a table of rows."""
        return self.put(f"add i64 {self.put(f'mul i64 {row}, {width}')}, {column}")

    def drawn(self) -> str:
        """The next number of [0, 1)."""
        return self.put("call double %random(ptr %state)")

    def variable(self, kind: str, value: str) -> str:
        """A place on the stack, with a value at first."""
        place = self.fresh()
        self.allocas.append(f"  {place} = alloca {kind}")
        self.do(f"store {kind} {value}, ptr {place}")
        return place

    @contextmanager
    def each(self, name: str, count: str) -> Iterator[str]:
        """A loop over so many numbers, the body of which is written meanwhile."""
        yield self.loop(name, self.block, count, f"{name}.end")
        self.do(f"br label %{name}.next")
        self.start_block(f"{name}.end")

    def appended(self, length: str, condition: str) -> str:
        """The index at which something is appended, where a condition holds; `length` is a variable."""
        end = self.put(f"load i64, ptr {length}")
        more = self.put(f"zext i1 {condition} to i64")
        self.do(f"store i64 {self.put(f'add i64 {end}, {more}')}, ptr {length}")
        return end

    def first(self, name: str, count: str, key: Callable[[str], str], largest: bool) -> str:
        """The first number with the largest, or the least, key."""
        found = self.variable("i64", "0")
        best = self.variable("double", "0xFFF0000000000000" if largest else "0x7FF0000000000000")
        with self.each(name, count) as number:
            value = key(number)
            known, place = self.put(f"load double, ptr {best}"), self.put(f"load i64, ptr {found}")
            better = self.put(f"fcmp {'ogt' if largest else 'olt'} double {value}, {known}")
            self.do(f"store i64 {self.put(f'select i1 {better}, i64 {number}, i64 {place}')}, ptr {found}")
            self.do(f"store double {self.put(f'select i1 {better}, double {value}, double {known}')}, ptr {best}")
        return self.put(f"load i64, ptr {found}")


def _step() -> str:
    """Move the elements of rows at some places, which are of some holes, to a neighbour or anywhere."""
    f = _Function()
    with f.each("up", "%count") as k:
        f.keep("double", f.drawn(), "%ups", k)
    with f.each("any", "%count") as k:
        wide = f.put(f"zext i32 {f.put('call i32 %integer(ptr %state)')} to i64")
        scaled = f.put(f"mul i64 {wide}, {f.whole('%sizes', f.whole('%holes', k))}")
        f.keep("i64", f.put(f"lshr i64 {scaled}, 32"), "%anywhere", k)
    with f.each("far", "%count") as k:
        place, last = f.whole("%places", k), f.put(f"sub i64 {f.whole('%sizes', f.whole('%holes', k))}, 1")
        old = f.whole("%rows", place)
        rises = f.put(f"fcmp olt double {f.float('%ups', k)}, 0.5")
        rises = f.put(f"and i1 {rises}, {f.put(f'icmp slt i64 {old}, {last}')}")
        up = f.put(f"or i1 {rises}, {f.put(f'icmp eq i64 {old}, 0')}")
        near = f.put(f"add i64 {old}, {f.put(f'select i1 {up}, i64 1, i64 -1')}")
        is_near = f.put(f"fcmp olt double {f.drawn()}, {_exact(NEIGHBOUR)}")
        f.keep("i64", f.put(f"select i1 {is_near}, i64 {near}, i64 {f.whole('%anywhere', k)}"), "%rows", place)
    f.do("ret void")
    arrays = "ptr %rows, ptr %sizes, ptr %places, ptr %holes, ptr %ups, ptr %anywhere"
    return f.text(f"define internal void @step({_NUMBERS}, {arrays}, i64 %count)")


def _changes() -> str:
    """Change all rows, then some."""
    f = _Function()
    with f.each("round", "2") as number:
        is_first = f.put(f"icmp eq i64 {number}, 0")
        _change(f, f.put(f"select i1 {is_first}, double 1.0, double {_exact(TWICE)}"))
    f.do("ret void")
    arrays = "ptr %rows, ptr %shares, ptr %sizes, ptr %logs, ptr %partners, ptr %whole, ptr %broken"
    sizes = "i64 %count, i64 %width, i64 %choices, i64 %most"
    return f.text(f"declare double @llvm.fabs.f64(double)\n\ndefine void @{_SYMBOL}({_NUMBERS}, {arrays}, {sizes})")


def _change(f: _Function, part: str) -> None:
    """Choose rows and holes; step those that do not trade, then those that do, and move their partners."""
    wholes = [f.element("i64", "%whole", f.put(f"mul i64 %count, {n}")) for n in range(_WHOLE)]
    begins, holes, stepped, step_holes, moved, move_holes, partners, anywhere = wholes
    ups, before = (f.element("double", "%broken", f.put(f"mul i64 %count, {n}")) for n in range(_BROKEN))
    length, steps, moves = (f.variable("i64", "0") for _ in range(3))
    with f.each("row", "%count") as row:
        end = f.appended(length, f.put(f"fcmp olt double {f.drawn()}, {part}"))
        f.keep("i64", f.put(f"mul i64 {row}, %width"), begins, end)
    chosen = f.put(f"load i64, ptr {length}")
    with f.each("hole", chosen) as k:
        number, below = f.drawn(), f.variable("i64", "0")
        with f.each("share", "%width") as hole:
            f.appended(below, f.put(f"fcmp ole double {f.float('%shares', hole)}, {number}"))
        f.keep("i64", f.put(f"load i64, ptr {below}"), holes, k)
    with f.each("trade", chosen) as k:
        hole = f.whole(holes, k)
        alone = f.put(f"icmp slt i64 {f.whole('%partners', f.place(hole, '%most', '0'))}, 0")
        stays = f.put(f"or i1 {f.put(f'fcmp oge double {f.drawn()}, {_exact(EXCHANGED)}')}, {alone}")
        place = f.put(f"add i64 {f.whole(begins, k)}, {hole}")
        for places, own, count, condition in (
            (stepped, step_holes, steps, stays),
            (moved, move_holes, moves, f.put(f"xor i1 {stays}, true")),
        ):
            end = f.appended(count, condition)
            f.keep("i64", place, places, end)
            f.keep("i64", hole, own, end)
    _call_step(f, stepped, step_holes, ups, anywhere, f.put(f"load i64, ptr {steps}"))
    trading = f.put(f"load i64, ptr {moves}")

    def log(hole: str, choice: str) -> str:
        return f.float("%logs", f.place(hole, "%choices", choice))

    def partner_place(k: str, hole: str) -> str:
        return f.put(f"add i64 {f.put(f'sub i64 {f.whole(moved, k)}, {hole}')}, {f.whole(partners, k)}")

    with f.each("partner", trading) as k:
        hole = f.whole(move_holes, k)

        def drawn_for(place: str, hole: str = hole) -> str:
            is_one = f.put(f"icmp sge i64 {f.whole('%partners', f.place(hole, '%most', place))}, 0")
            return f.put(f"select i1 {is_one}, double {f.drawn()}, double -1.0")

        picked = f.first("pick", "%most", drawn_for, largest=True)
        f.keep("i64", f.whole("%partners", f.place(hole, "%most", picked)), partners, k)
        own = log(hole, f.whole("%rows", f.whole(moved, k)))
        theirs = log(f.whole(partners, k), f.whole("%rows", partner_place(k, hole)))
        f.keep("double", f.put(f"fadd double {own}, {theirs}"), before, k)
    _call_step(f, moved, move_holes, ups, anywhere, trading)
    with f.each("move", trading) as k:
        hole, partner = f.whole(move_holes, k), f.whole(partners, k)
        wanted = f.put(f"fsub double {f.float(before, k)}, {log(hole, f.whole('%rows', f.whole(moved, k)))}")

        def distance(choice: str, partner: str = partner, wanted: str = wanted) -> str:
            apart = f.put(f"fsub double {log(partner, choice)}, {wanted}")
            return f.put(f"call double @llvm.fabs.f64(double {apart})")

        f.keep("i64", f.first("choice", "%choices", distance, largest=False), "%rows", partner_place(k, hole))


def _call_step(f: _Function, places: str, holes: str, ups: str, anywhere: str, count: str) -> None:
    arrays = ", ".join(f"ptr {array}" for array in ("%rows", "%sizes", places, holes, ups, anywhere))
    f.do(f"call void @step({_NUMBERS}, {arrays}, i64 {count})")


def _exact(number: float) -> str:
    """A float as LLVM IR reads it: by its bits."""
    return f"0x{np.float64(number).view(np.uint64):016X}"
