"""The C header of an exported function, which C++ reads too."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ..arrays import CACHE_LINE_BYTES
from ..c_parameters import parameter, parameter_names
from ..signature import Argument
from .c_function import MISALIGNED, NULL_POINTER, CFunction
from .cpu import CpuFeatures


def header(function: CFunction, cpu: CpuFeatures) -> str:
    """Return the declaration of a function, and macros for the shapes of its arrays."""
    macro = function.symbol.upper()
    names = parameter_names(function.arguments)
    parameters = [parameter(a, name) for a, name in zip(function.arguments, names, strict=True)]
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


def _shape(argument: Argument, macro: str) -> Iterator[str]:
    """Yield macros for an array's number of elements and, unless it is a scalar, its extents."""
    yield f"#define {macro}_ELEMENTS {prod(argument.shape)}"
    if argument.shape:
        yield f"#define {macro}_RANK {len(argument.shape)}"
        yield f"#define {macro}_SHAPE {{{', '.join(map(str, argument.shape))}}}"
