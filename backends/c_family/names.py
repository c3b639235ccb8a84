"""Names of a C function: those people chose, made legal and told apart."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_WORDS = """
alignas alignof and asm auto bool break case catch char class const constexpr constinit continue default delete do
double else enum explicit export extern false float for friend goto half if inline int long main mutable namespace new
not operator or private protected public register restrict return short signed sizeof static struct switch template
this throw true try typedef typename union unsigned using virtual void volatile while xor uchar ushort uint ulong
size_t ptrdiff_t threadIdx blockIdx blockDim gridDim warpSize NULL INFINITY NAN M_E M_PI shared_memory printf
arrive barrier_await barrier_expect barrier_init cluster_barrier cluster_meet end_block exp2_near exp_near hold
remainder_of shared_matrix shared_place transpose_quad TensorMap prefetch shuffle shuffle2 min max abs fma mad
floor ceil round rint trunc sqrt rsqrt cbrt exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2
sinh cosh tanh asinh acosh atanh erf erfc pow fabs fmax fmin fmod fdim copysign select clamp degrees radians mix step
smoothstep sign cross dot distance length normalize rotate popcount hadd rhadd mul24 mad24 mad_hi mul_hi add_sat
sub_sat upsample clz ctz nan ldexp hypot remainder fract modf frexp isnan isinf all any bitselect
"""
"""Words of the languages, and functions whose names a variable would hide."""
_TYPES = ("float", "int", "char", "short", "long", "double", "half", "longlong", "uint", "uchar", "ushort", "ulong")
_RESERVED = frozenset(_WORDS.split()) | {f"{name}{lanes}" for name in _TYPES for lanes in (2, 3, 4, 8, 16)}
_HELPER = re.compile(
    r"(maximum|minimum|floordiv|ceildiv|fma)_b?[if]\d+|bf16_(to|from)_f32|copy_async(_if)?(_where)?_\d+|"
    r"copy_(box|walk)(_once|_to_all)?_\d+|load_matrices(_turned)?_\d+|pack_b?f16|"
    r"(half|bfloat|bool|char|short|int|long|double|float)_x\d+|__.*"
)


_LONGEST = 255
"""Characters; Clang takes more, C promises 63."""


class Names:
    """Hands out names that are unique in one function."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken: set[str] = {*_RESERVED, *reserved}
        self._next: dict[str, int] = {}
        self._outside: list[tuple[set[str], dict[str, int]]] = []

    def enter(self) -> None:
        """Begin a scope: names handed out until it is left may be used again after it."""
        self._outside.append((set(), dict(self._next)))

    def leave(self) -> None:
        """End a scope."""
        inside, self._next = self._outside.pop()
        self._taken -= inside

    def _take(self, name: str) -> str:
        self._taken.add(name)
        if self._outside:
            self._outside[-1][0].add(name)
        return name

    def outermost(self, hint: str) -> str:
        """Return a name that holds in all of the function."""
        name = self.fresh(hint)
        for inside, _ in self._outside:
            inside.discard(name)
        return name

    def fresh(self, hint: str) -> str:
        """Return the hint as a C name, with a number where it is taken."""
        stem = identifier(hint)
        if stem not in self._taken:
            return self._take(stem)
        number = self._next.get(stem, 1)
        separator = "_" if stem[-1].isdigit() else ""
        while (name := f"{stem}{separator}{number}") in self._taken:
            number += 1
        self._next[stem] = number + 1
        return self._take(name)


@lru_cache(maxsize=4096)
def identifier(text: str) -> str:
    """Return the text with what C does not allow in names replaced, and no longer than a compiler must tell apart."""
    name = re.sub(r"\W+", "_", text[:_LONGEST], flags=re.ASCII).strip("_") or "v"
    return f"v{name}" if name[0].isdigit() or _HELPER.fullmatch(name) else name
