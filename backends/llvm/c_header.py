"""The C header of an exported function, which C++ reads too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

import numpy as np

from ..arrays import CACHE_LINE_BYTES
from ..signature import Argument
from .c_function import MISALIGNED, NULL_POINTER, CFunction, c_name
from .cpu import CpuFeatures

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


def header(function: CFunction, cpu: CpuFeatures) -> str:
    """Return the declaration of a function, and macros for the shapes of its arrays."""
    macro = function.symbol.upper()
    names = _names(function.arguments)
    parameters = [_parameter(a, name) for a, name in zip(function.arguments, names, strict=True)]
    if function.workspace_bytes:
        parameters.append(("void *workspace", f"{macro}_WORKSPACE_BYTES bytes, on a multiple of {CACHE_LINE_BYTES}"))
    ends = [","] * (len(parameters) - 1) + [");"]
    own = "outputs and a workspace" if function.workspace_bytes else "outputs"
    macros = [_shape(a, f"{macro}_{name.upper()}") for a, name in zip(function.arguments, names, strict=True)]
    text = [
        f"/* {function.what.capitalize()} {function.name}, made by loopwright for {cpu.arch} with",
        f" * {' '.join(cpu.features[1:])}.",
        " * Arrays are contiguous, in C's order, and do not overlap. No state is kept between calls: threads may call",
        f" * it at the same time, each with {own} of its own.{_threads(function.threads)} */",
        *(f"#ifndef {macro}_H", f"#define {macro}_H", "", "#include <stdint.h>", ""),
        "/* It returns 0, or a code where it did nothing. */",
        f"#define {macro}_OK 0",
        f"#define {macro}_NULL_POINTER {NULL_POINTER}",
        f"#define {macro}_MISALIGNED {MISALIGNED}",
        *("", f"#define {macro}_WORKSPACE_BYTES {function.workspace_bytes}"),
        *(line for lines in macros for line in lines),
        *("", "#ifdef __cplusplus", 'extern "C" {', "#endif", ""),
        f"int {function.symbol}(",
        *(f"    {declared}{end} /* {note} */" for (declared, note), end in zip(parameters, ends, strict=True)),
        *("", "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""),
    ]
    return "\n".join(text)


def _threads(threads: int) -> str:
    return f"\n * It runs on {threads} threads of OpenMP's: link with -fopenmp." if threads > 1 else ""


def _names(arguments: tuple[Argument, ...]) -> list[str]:
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


def _parameter(argument: Argument, name: str) -> tuple[str, str]:
    """Return a parameter's declaration, and its shape in words."""
    element = _C_TYPES.get(argument.dtype, f"uint{8 * np.dtype(argument.dtype).itemsize}_t")
    return f"{'' if argument.is_output else 'const '}{element} *{name}", str(argument)


def _shape(argument: Argument, macro: str) -> Iterator[str]:
    """Yield macros for an array's number of elements and, unless it is a scalar, its extents."""
    yield f"#define {macro}_ELEMENTS {prod(argument.shape)}"
    if argument.shape:
        yield f"#define {macro}_RANK {len(argument.shape)}"
        yield f"#define {macro}_SHAPE {{{', '.join(map(str, argument.shape))}}}"
