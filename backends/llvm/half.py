"""Half precision on CPUs without instructions that convert it: functions of GCC's runtime, or of an exported library.

GCC's are there in a process of this machine. A library is linked by whoever takes it, whose GCC may have none: that of
RISC-V has them from GCC 13 on, others from GCC 12.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable

from ..missing import MissingRequirement
from .cpu import CpuFeatures

LIBRARY = "libgcc_s.so.1"
CONVERSIONS = ("__extendhfsf2", "__extendhfdf2", "__truncsfhf2", "__truncdfhf2")
"""Functions that LLVM calls, of GCC's low-level runtime library; its shared form has them from GCC 12 on."""


class MissingConversions(MissingRequirement):
    """This process has no conversions of half precision, and the CPU has no instructions for them."""


def conversion_symbols(object_code: bytes) -> list[tuple[str, int]]:
    """Return the addresses of the conversions that machine code calls; raises MissingConversions without them."""
    called = [name for name in CONVERSIONS if name.encode() in object_code]
    if not called:
        return []
    try:
        library = ctypes.CDLL(LIBRARY)
        return [(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0) for name in called]
    except (OSError, AttributeError) as error:
        raise MissingConversions(
            f"float16 for a CPU without F16C takes {LIBRARY} of GCC 12 or newer ({error}): build for a target "
            "with it, such as 'llvm model=x86-64-v3', or compute in float32"
        ) from None


def conversion_functions(sources: Iterable[str], cpu: CpuFeatures) -> str | None:
    """LLVM IR of the conversions for a module of these texts; None where it has no float16, or the CPU converts it."""
    converts = cpu.arch == "aarch64" or not {"f16c", "zfh", "zfhmin"}.isdisjoint(cpu.features)
    if converts or not any(map(_HALF.search, sources)):
        return None
    return f"{_WIDER}{_narrower('sf', 32, 23)}{_narrower('df', 64, 52)}{_KEPT}"


_HALF = re.compile(r"\bhalf\b")
_KEPT = (
    "@llvm.compiler.used = appending global [4 x ptr] "
    f'[{", ".join(f"ptr @{name}" for name in CONVERSIONS)}], section "llvm.metadata"\n'
)
_WIDER = """
define internal float @__extendhfsf2(half %value) noinline {
  %bits = bitcast half %value to i16
  %wide = zext i16 %bits to i32
  %signed = and i32 %wide, 32768
  %sign = shl i32 %signed, 16
  %size = and i32 %wide, 32767
  %shifted = shl i32 %size, 13
  %normal = add i32 %shifted, 939524096
  %special = add i32 %shifted, 1879048192
  %count = uitofp i32 %size to float
  %scaled = fmul float %count, 0x3E70000000000000
  %subnormal = bitcast float %scaled to i32
  %is_subnormal = icmp ult i32 %size, 1024
  %is_special = icmp uge i32 %size, 31744
  %finite = select i1 %is_subnormal, i32 %subnormal, i32 %normal
  %unsigned = select i1 %is_special, i32 %special, i32 %finite
  %result = or i32 %unsigned, %sign
  %float = bitcast i32 %result to float
  ret float %float
}
define internal double @__extendhfdf2(half %value) noinline {
  %float = call float @__extendhfsf2(half %value)
  %double = fpext float %float to double
  ret double %double
}
"""
"""The 10 bits of a fraction are the first of 23, exponents grow by 127 - 15; subnormals count in 2^-24."""


def _narrower(name: str, width: int, fraction: int) -> str:
    """LLVM IR of the conversion from a float of `width` bits, `fraction` of them its fraction's: to the nearest, even.

    Subnormals are rounded by an addition, to a number whose last bit is worth 2^-24.
    """
    bias, dropped = (1 << width - fraction - 2) - 1, fraction - 10
    kind = "float" if width == 32 else "double"

    def exponent(power: int) -> int:
        return bias + power << fraction

    return f"""
define internal half @__trunc{name}hf2({kind} %value) noinline {{
  %bits = bitcast {kind} %value to i{width}
  %high = lshr i{width} %bits, {width - 16}
  %signed = and i{width} %high, 32768
  %size = and i{width} %bits, {(1 << width - 1) - 1}
  %rebiased = sub i{width} %size, {exponent(-15)}
  %cut = lshr i{width} %rebiased, {dropped}
  %odd = and i{width} %cut, 1
  %up = add i{width} %rebiased, {(1 << dropped - 1) - 1}
  %rounded = add i{width} %up, %odd
  %normal = lshr i{width} %rounded, {dropped}
  %positive = bitcast i{width} %size to {kind}
  %magic = bitcast i{width} {exponent(fraction - 24)} to {kind}
  %sum = fadd {kind} %positive, %magic
  %summed = bitcast {kind} %sum to i{width}
  %subnormal = sub i{width} %summed, {exponent(fraction - 24)}
  %is_subnormal = icmp ult i{width} %size, {exponent(-14)}
  %is_infinite = icmp uge i{width} %size, {exponent(16)}
  %is_nan = icmp ugt i{width} %size, {exponent(bias + 1)}
  %finite = select i1 %is_subnormal, i{width} %subnormal, i{width} %normal
  %number = select i1 %is_infinite, i{width} 31744, i{width} %finite
  %unsigned = select i1 %is_nan, i{width} 32256, i{width} %number
  %result = or i{width} %unsigned, %signed
  %narrow = trunc i{width} %result to i16
  %half = bitcast i16 %narrow to half
  ret half %half
}}
"""
