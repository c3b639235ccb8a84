"""Names and parameters of C for the arrays of a kernel or a network."""

from __future__ import annotations

import re

import numpy as np

from .signature import Argument

_C_TYPES = {
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float32": "float",
    "float64": "double",
}
"""Others are passed as unsigned integers of their size, which hold their bits."""
_TAKEN = (
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while "
    "alignas alignof and and_eq asm bitand bitor bool catch char8_t char16_t char32_t class compl concept consteval "
    "constexpr constinit const_cast co_await co_return co_yield decltype delete dynamic_cast explicit export false "
    "friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
    "reinterpret_cast requires static_assert static_cast template this thread_local throw true try typeid typename "
    "typeof using virtual wchar_t xor xor_eq "
    "assert complex eof errno linux null stderr stdin stdout unix workspace"
)
"""Keywords of C and C++, macros of their libraries, and the parameter of our own; in small letters."""


def c_name(name: str) -> str:
    """Return a name as C may have it behind a prefix."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def parameter_names(arguments: tuple[Argument, ...]) -> list[str]:
    """Return names of parameters that are no words of C's, and differ in more than capitals, as macros have them."""
    names: list[str] = []
    used: set[str] = set()
    for argument in arguments:
        name = re.sub(r"^(?=\d|$)", "_", c_name(argument.name))
        while name.lower() in used or name.lower() in _TAKEN.split():
            name += "_"
        used.add(name.lower())
        names.append(name)
    return names


def parameter(argument: Argument, name: str) -> tuple[str, str]:
    """Return a parameter's declaration, and its shape in words."""
    element = _C_TYPES.get(argument.dtype, f"uint{8 * np.dtype(argument.dtype).itemsize}_t")
    return f"{'' if argument.is_output else 'const '}{element} *{name}", str(argument)
