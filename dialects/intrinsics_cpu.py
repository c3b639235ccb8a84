"""Matrix instructions of CPUs as a table: dot products of groups of k in lanes, and Intel's tiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .element import DTYPES, element_bytes, is_float

_SHORT = {"int8": "s8", "uint8": "u8", "int16": "s16", "bfloat16": "bf16"}


@dataclass(frozen=True)
class CpuInstruction:
    """A row of the table: an `Intrinsic` of one thread, whose matrices lie in memory as registers hold them.

    `a_held` and `b_held` are the digits of a position among the elements of `a` and `b`, the outermost first; those of
    `c` are rows, then columns. `cycles` are those from one to the next on one port, by the makers' manuals. Of `tiles`,
    rows and columns may be fewer, and so may groups of k.
    """

    name: str
    m: int
    n: int
    k: int
    a: str
    b: str
    c: str
    a_held: tuple[str, ...]
    b_held: tuple[str, ...]
    code: str
    features: tuple[str, ...]
    cycles: float = 1
    tiles: bool = False


def _dot(unit: str, lanes: int, group: int, a: str, b: str, code: str, *features: str) -> CpuInstruction:
    """`c[j] += a[k] * b[j, k]` for `group` neighbours k: the groups of b lie side by side, that of a is repeated."""
    c = "float32" if is_float(DTYPES[a]) else "int32"
    kind = _SHORT[a] if a == b else f"{_SHORT[a]}{_SHORT[b]}"
    return CpuInstruction(
        f"{unit}.m1n{lanes}k{group}.{kind}", 1, lanes, group, a, b, c, ("k",), ("j", "k"), code, features
    )


def _mmla(kind: str, a: str, b: str, code: str, feature: str) -> CpuInstruction:
    """Products of 2 rows of 8 bytes with 2 columns of 8 bytes (Arm, Neon matrix multiply-accumulate)."""
    k = 8 // element_bytes(DTYPES[a])
    c = "float32" if is_float(DTYPES[a]) else "int32"
    return CpuInstruction(f"neon.m2n2k{k}.{kind}", 2, 2, k, a, b, c, ("i", "k"), ("j", "k"), code, (feature,))


def _tile(a: str, b: str, code: str, feature: str) -> CpuInstruction:
    """Tiles of 16 rows of 64 bytes (Intel AMX): rows of b hold a group of 4 bytes along k of each of 16 columns."""
    size = element_bytes(DTYPES[a])
    group, k = 4 // size, 64 // size
    c = "float32" if is_float(DTYPES[a]) else "int32"
    kind = _SHORT[a] if a == b else f"{_SHORT[a]}{_SHORT[b]}"
    return CpuInstruction(
        f"amx.m16n16k{k}.{kind}",
        16,
        16,
        k,
        a,
        b,
        c,
        ("i", "k"),
        (f"k floordiv {group}", "j", f"k mod {group}"),
        f"llvm.x86.{code}.internal : x86_amx",
        ("amx-tile", feature),
        cycles=16,
        tiles=True,
    )


_PMADD = """\
declare <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16>, <16 x i16>)
{widen}  %pairs = call <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16> {a}, <16 x i16> {b})
  %sums = add <8 x i32> %c, %pairs
  ret <8 x i32> %sums"""
_WIDEN = """\
  %wide_a = {a}ext <16 x i8> %a to <16 x i16>
  %wide_b = {b}ext <16 x i8> %b to <16 x i16>
"""


def _pairs(a: str, b: str) -> CpuInstruction:
    """`vpmaddwd` on bytes that are widened first: exact, on all CPUs with AVX2."""
    widen = _WIDEN.format(a="z" if a == "uint8" else "s", b="z" if b == "uint8" else "s")
    return _dot("avx2", 8, 2, a, b, _PMADD.format(widen=widen, a="%wide_a", b="%wide_b"), "avx2")


def _table() -> Iterator[CpuInstruction]:
    yield _dot("avx2", 8, 2, "int16", "int16", _PMADD.format(widen="", a="%a", b="%b"), "avx2")
    for a, b in (("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8")):
        yield _pairs(a, b)
    for unit, lanes in (("avxvnni", 8), ("avx512vnni", 16)):
        code = f"llvm.x86.avx512.vpdp{{}}.{32 * lanes} : <{lanes} x i32>"
        yield _dot(unit, lanes, 4, "uint8", "int8", code.format("busd"), unit)
        yield _dot(unit, lanes, 2, "int16", "int16", code.format("wssd"), unit)
    bf16 = "llvm.x86.avx512bf16.dpbf16ps.512 : <32 x bfloat>"
    yield _dot("avx512bf16", 16, 2, "bfloat16", "bfloat16", bf16, "avx512bf16")
    for a, b, code in (
        ("uint8", "int8", "tdpbusd"),
        ("int8", "int8", "tdpbssd"),
        ("uint8", "uint8", "tdpbuud"),
        ("int8", "uint8", "tdpbsud"),
    ):
        yield _tile(a, b, code, "amx-int8")
    yield _tile("bfloat16", "bfloat16", "tdpbf16ps", "amx-bf16")
    for element, letter in (("int8", "s"), ("uint8", "u")):
        sums = f"llvm.aarch64.neon.{letter}dot.v4i32.v16i8 : <16 x i8>"
        yield _dot("neon", 4, 4, element, element, sums, "dotprod")
        tiles = f"llvm.aarch64.neon.{letter}mmla.v4i32.v16i8 : <16 x i8>"
        yield _mmla(_SHORT[element], element, element, tiles, "i8mm")
    yield _dot("neon", 4, 4, "uint8", "int8", "llvm.aarch64.neon.usdot.v4i32.v16i8 : <16 x i8>", "i8mm")
    yield _mmla("u8s8", "uint8", "int8", "llvm.aarch64.neon.usmmla.v4i32.v16i8 : <16 x i8>", "i8mm")
    yield _dot("neon", 4, 2, "bfloat16", "bfloat16", "llvm.aarch64.neon.bfdot.v4f32.v8bf16 : <8 x bfloat>", "bf16")
    yield _mmla("bf16", "bfloat16", "bfloat16", "llvm.aarch64.neon.bfmmla : <8 x bfloat>", "bf16")


CPU_INSTRUCTIONS = tuple(_table())
"""Intel's Software Developer's Manual (VPMADDWD, VPDPBUSD, VPDPWSSD, VDPBF16PS, TDP*), Arm's Architecture Reference
Manual."""
