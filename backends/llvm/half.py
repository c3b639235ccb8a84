"""Half precision on CPUs without instructions that convert it (F16C): the functions of GCC's runtime."""

from __future__ import annotations

import ctypes

from .runtime import MissingRuntime

LIBRARY = "libgcc_s.so.1"
CONVERSIONS = ("__extendhfsf2", "__extendhfdf2", "__truncsfhf2", "__truncdfhf2")
"""Functions that LLVM calls, of GCC's low-level runtime library; its shared form has them from GCC 12 on."""


def conversion_symbols(object_code: bytes) -> list[tuple[str, int]]:
    """Return the addresses of the conversions that machine code calls; raises MissingRuntime without them."""
    called = [name for name in CONVERSIONS if name.encode() in object_code]
    if not called:
        return []
    try:
        library = ctypes.CDLL(LIBRARY)
        return [(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0) for name in called]
    except (OSError, AttributeError) as error:
        raise MissingRuntime(
            f"float16 for a CPU without F16C takes {LIBRARY} of GCC 12 or newer ({error}): build for a target "
            "with it, such as 'llvm model=x86-64-v3', or compute in float32"
        ) from None
