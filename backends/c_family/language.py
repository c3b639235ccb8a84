"""The interface of a language of the C family: the words that the shared printer uses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set

from ..unsupported import UnsupportedError
from .expression import ATOM, UNARY, Expr, cast_to
from .types import float_digits, rounded

_INTEGER_BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}


class Language:
    """One language; subclasses fill in the words.

    A value of a type may be held in another type than memory has: `value_types` are of variables, `memory_types` of
    elements of buffers in global and shared memory.
    """

    title = ""
    value_types: Mapping[str, str] = {}
    memory_types: Mapping[str, str] = {}
    long_suffix = "L"
    reserved: Sequence[str] = ()
    """Words of this language alone."""
    thread_axes: Mapping[str, str] = {}
    unrolled_statements = 0
    """Innermost loops are unrolled up to so many statements, where their compilers do not do it well by themselves."""
    unrolled_instructions = 0
    """Loops around unrolled ones are unrolled up to so many instructions, as they would be around written copies."""
    zeros = "{0}"
    """Initialiser of an array of zeros."""
    launch_wait = ""
    """Statement that waits for the end of the launch ahead; "" where kernels begin then."""

    def value_type(self, kind: str, long_index: bool) -> str:
        """Return the type of a variable; `index` is the narrower integer that addresses all buffers."""
        return self.value_types[("i64" if long_index else "i32") if kind == "index" else kind]

    def memory_type(self, kind: str) -> str:
        """Return the type of an element in global and shared memory."""
        return self.memory_types.get(kind) or self.value_types[kind]

    def integer_literal(self, value: int, kind: str, long_index: bool) -> Expr:
        """Return an integer or truth literal of the given type."""
        if kind == "i1":
            return Expr("true" if value & 1 else "false")
        wide = kind == "i64" or (kind == "index" and long_index)
        bits = 64 if wide else _INTEGER_BITS.get(kind, 32)
        value = (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
        suffix = self.long_suffix if wide and kind == "i64" else ""
        if value == -(1 << (bits - 1)) and bits >= 32:
            return Expr(f"(-{-(value + 1)}{suffix} - 1{suffix})", number=value)
        return Expr(f"{value}{suffix}", UNARY if value < 0 else ATOM, number=value)

    def float_literal(self, value: float, kind: str) -> Expr:
        """Return a float literal that is exactly the value rounded to the type."""
        value = rounded(value, kind)
        if not math.isfinite(value):
            return self.special_float(value, kind)
        held = "f32" if self.value_types[kind] == self.value_types["f32"] else kind
        text = f"{float_digits(value, held)}{'' if kind == 'f64' else 'f'}"
        return self.narrow_literal(Expr(text, UNARY if text[0] == "-" else ATOM), kind)

    def narrow_literal(self, literal: Expr, kind: str) -> Expr:
        """Return a single-precision literal in the type half precision is computed in."""
        return literal

    def special_float(self, value: float, kind: str) -> Expr:
        """Return infinity or NaN."""
        raise NotImplementedError

    def function(self, name: str, kind: str) -> str:
        """Return the name of a function of the math library for a float type."""
        raise NotImplementedError

    def load(self, pointer: str, place: str, kind: str, shared: bool) -> Expr:
        """Return the value of element `place` behind a pointer to global or shared memory."""
        return Expr(f"{pointer}[{place}]")

    def store(self, pointer: str, place: str, value: Expr, kind: str, shared: bool) -> str:
        """Return the statement that writes an element of global or shared memory."""
        return f"{pointer}[{place}] = {value.text};"

    def vector_widths(self, kind: str) -> Sequence[int]:
        """Return the numbers of elements that one access can move, widest first."""
        raise NotImplementedError

    def vector_type(self, kind: str, lanes: int) -> str:
        """Return the type of a vector variable."""
        raise NotImplementedError

    def vector_load(self, pointer: str, place: str, kind: str, lanes: int, shared: bool) -> str:
        """Return the expression that loads a vector from an aligned place."""
        raise NotImplementedError

    def vector_zero(self, kind: str, lanes: int) -> str:
        """Return the initializer of a vector of zeros."""
        raise NotImplementedError

    def vector_lane(self, name: str, kind: str, lanes: int, lane: int) -> str:
        """Return one lane of a vector variable."""
        raise NotImplementedError

    def vector_store(
        self, pointer: str, place: str, values: Sequence[Expr], whole: str | None, kind: str, shared: bool
    ) -> str:
        """Return the statement that writes a vector to an aligned place; `whole` is a variable that holds it."""
        raise NotImplementedError

    def shared_declaration(self, kind: str, name: str, size: int, offset: int | None, align: int) -> str:
        """Return the declaration of a buffer of a block, which starts at a multiple of `align` bytes.

        `offset` is its place in memory sized at the launch.
        """
        raise NotImplementedError

    def kernel_head(
        self,
        name: str,
        parameters: Sequence[str],
        block: tuple[int, int, int],
        blocks_per_sm: int = 0,
        cluster: tuple[int, int, int] = (1, 1, 1),
    ) -> str:
        """Return the line that opens a kernel; `blocks_per_sm` is a wish that a language may have no word for."""
        raise NotImplementedError

    def parameter(self, kind: str, name: str, is_read_only: bool, is_restrict: bool) -> str:
        """Return a parameter that points at a buffer in global memory, `restrict` where no other thread writes it."""
        raise NotImplementedError

    def tensor_map_parameter(self, name: str) -> str:
        """Return a parameter by which boxes of an array are copied."""
        raise UnsupportedError(f"{self.title} has no tensor maps")

    def counters_declaration(self, name: str, size: int) -> str:
        """Return the declaration of counters of arrivals, which are zeros once the program is loaded."""
        raise UnsupportedError(f"{self.title} has no order between what blocks of threads write")

    def barrier(self, global_memory: bool) -> str:
        """Return the barrier of a thread block: all wait, and see each other's writes to shared memory.

        With `global_memory` also for those to global memory.
        """
        raise NotImplementedError

    def unroll(self, factor: int | None) -> str:
        """Return the line before a loop to unroll, by a factor or whole."""
        return "#pragma unroll" if factor is None else f"#pragma unroll {factor}"

    def preamble(self, kinds: Set[str], vectors: Set[tuple[str, int]], helpers: Set[str]) -> list[str]:
        """Return the lines before the first kernel, for the types, vectors and helper functions that it uses."""
        raise NotImplementedError

    def convert(self, value: Expr, source: str, result: str, long_index: bool) -> Expr:
        """Return a value of one type in another, floats toward zero, rounding to nearest even where floats narrow."""
        if source == result or self.value_type(source, long_index) == self.value_type(result, long_index):
            return value
        return cast_to(self.value_type(result, long_index), value)

    def float_to_unsigned(self, type_name: str, value: Expr) -> Expr:
        """Return a float as an unsigned integer, toward zero."""
        return cast_to(type_name, value)

    def nan_becomes_zero(self, source: str, result: str, long_index: bool) -> bool:
        """True where a float of one type as an integer of another is 0 for NaN."""
        return True

    def extremum(self, helpers: set[str], name: str, kind: str, a: Expr, b: Expr) -> Expr:
        """Return the greater or smaller of two floats: `maximumf` is NaN where either is, `maxnumf` where both are.

        The helper function that it calls, if any, is added to `helpers`, which `preamble` then defines.
        """
        raise NotImplementedError

    def fma(self, helpers: set[str], kind: str, lanes: Sequence[Expr]) -> Expr:
        """Return `a * b + c`, rounded once; the helper function that it calls, if any, is added to `helpers`."""
        raise NotImplementedError

    def fast_exponential(self, helpers: set[str], name: str) -> str:
        """Return the function of floats that approximates `exp` or `exp2`; "" where there is none that is faster."""
        return ""

    def bitcast(self, value: Expr, source: str, result: str) -> Expr:
        """Return a value's bits as another type of the same size."""
        raise NotImplementedError
