"""Matrix instructions of NVIDIA's GPUs as a table: products of a warp, and of a warp group."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .element import DTYPES, element_bytes, is_float

ROW_BYTES = 16
"""Bytes of a row of the 8 x 8 matrices that `ldmatrix` loads (PTX ISA, ldmatrix)."""
MATRIX_ROWS = 8
REGISTER_BYTES = 4
"""Bytes of a register of a GPU's thread."""


@dataclass(frozen=True)
class Rounding:
    """A rounding of float32, ties to even, by its last `bits`, which are not kept."""

    bits: int

    @property
    def below_half(self) -> int:
        """Of the bits of a float32 what is just below half of the last one that is kept."""
        return (1 << self.bits - 1) - 1

    @property
    def mask(self) -> int:
        """All bits that are kept."""
        return -1 << self.bits


ROUNDINGS = {"tf32": Rounding(13), "tf32x3": Rounding(1)}
"""Roundings of factors that products may have. Of TF32 (PTX ISA, alternate floating point formats) 10 bits are kept
behind the first one; of 22, the nearest of TF32 and what is left are both numbers of TF32, so that three products of
such parts make one of float32."""


@dataclass(frozen=True)
class CudaInstruction:
    """A row of the table: an `Intrinsic`, whose fragments are the words that `fragment` takes."""

    name: str
    m: int
    n: int
    k: int
    a: tuple[str, ...]
    b: tuple[str, ...]
    c: tuple[str, ...]
    threads: int
    code: str
    since: int
    cycles: int
    rounds: str
    exact: bool = False
    reads_shared: bool = False
    held_code: str = ""


# -- NVIDIA's mma.sync ------------------------------------------------------------------------------------------------

_ROUNDS_TO_EVEN_SINCE = 90
"""The first compute capability that rounds to TF32 with ties to even by an instruction (PTX ISA, cvt)."""
_PTX_TYPES = {"float16": "f16", "bfloat16": "bf16", "float32": "tf32", "int8": "s8", "uint8": "u8"}


def _mma(element: str, n: int) -> CudaInstruction:
    """`mma.sync.m16n8k*` (PTX ISA, warp-level matrix instructions), once for each 8 of n columns.

    All fragments are equal in bytes: k advances by 32 of them, a register is 4 of them.
    """
    size = element_bytes(DTYPES[element])
    k, per, row = 32 // size, REGISTER_BYTES // size, ROW_BYTES // size
    sums = "float32" if is_float(DTYPES[element]) else "int32"
    kind = _PTX_TYPES[element]
    parts = [f"j floordiv {MATRIX_ROWS}"] if n > 8 else []
    return CudaInstruction(
        name=f"mma.m16n{n}k{k}.{kind}",
        m=16,
        n=n,
        k=k,
        a=(element, f"i mod 8 * 4 + k mod {row} floordiv {per}", f"k floordiv {row}", "i floordiv 8", f"k mod {per}"),
        b=(element, f"j mod 8 * 4 + k mod {row} floordiv {per}", *parts, f"k floordiv {row}", f"k mod {per}"),
        c=(sums, "i mod 8 * 4 + j mod 8 floordiv 2", *parts, "i floordiv 8", "j mod 2"),
        threads=32,
        code="\n".join([*_rounding(kind, n), *(_mma_code(k, kind, sums, part) for part in range(n // 8))]),
        since=80,
        cycles=2 * n,
        rounds=kind if kind == "tf32" else "",
    )


def _rounding(kind: str, n: int) -> list[str]:
    """Rounding of the registers of both factors, which the instruction would cut off; a NaN stays one."""
    if kind != "tf32":
        return []
    registers = [*_A_WORDS, *_b_words(n)]
    rounding = ROUNDINGS[kind]
    older = "if (({x} & 0x7fffffffu) <= 0x7f800000u) {x} += {below}u + ({x} >> {bits} & 1u);"
    return [
        f"#if __CUDA_ARCH__ >= {_ROUNDS_TO_EVEN_SINCE}0",
        *(f'asm("cvt.rn.tf32.f32 %0, %0;" : "+r"({x}));' for x in registers),
        "#else",
        *(older.format(x=x, below=rounding.below_half, bits=rounding.bits) for x in registers),
        "#endif",
    ]


def _in_parts(n: int) -> CudaInstruction:
    """`mma.sync` of TF32 on the nearest numbers of both factors and on what is left of them, which are three products.

    That of both rests is below the last bit of a product of float32. The small products come first. Registers `a0l` and
    `b0l` are rests: those of infinities are NaN. What the instruction adds to is cut off and not rounded, so that
    sums of 4096 terms err by 3e-5 on an H200 (in float32 by 1e-6): they begin at 0, in `d0`, and are added apart.
    """
    plain, words = _mma("float32", n), [*_A_WORDS, *_b_words(n)]
    code = [
        *(f"unsigned {x}l = {x};" for x in words),
        *_rounding("tf32", n),
        *(f"{x}l = __float_as_uint(__uint_as_float({x}l) - __uint_as_float({x}));" for x in words),
    ]
    code += [f"float d{x} = 0.0f;" for x in range(n // 2)]
    for a, b in (("l", ""), ("", "l"), ("", "")):
        code += [_mma_code(plain.k, "tf32", "float32", part, a, b, "d") for part in range(n // 8)]
    code += [f"c{x} += d{x};" for x in range(n // 2)]
    name = plain.name.replace("tf32", "tf32x3")
    return replace(plain, name=name, code="\n".join(code), cycles=3 * plain.cycles, rounds="tf32x3")


_A_WORDS = ("a0", "a1", "a2", "a3")


def _b_words(n: int) -> list[str]:
    return [f"b{x}" for x in range(n // 4)]


def _mma_code(k: int, kind: str, sums: str, part: int, of_a: str = "", of_b: str = "", to: str = "c") -> str:
    """The instruction on a part of the columns; `of_a` and `of_b` are ends of names of registers, `to` begins sums."""
    wide, constraint = ("f32", "+f") if sums == "float32" else ("s32", "+r")
    c = ", ".join(f'"{constraint}"({to}{4 * part + x})' for x in range(4))
    words = [*(f"{x}{of_a}" for x in _A_WORDS), f"b{2 * part}{of_b}", f"b{2 * part + 1}{of_b}"]
    factors = ", ".join(f'"r"({x})' for x in words)
    return (
        f'asm("mma.sync.aligned.m16n8k{k}.row.col.{wide}.{kind}.{kind}.{wide} "\n'
        f'    "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"\n'
        f"    : {c}\n"
        f"    : {factors});"
    )


# -- NVIDIA's wgmma ---------------------------------------------------------------------------------------------------

WARP_GROUP = 128
"""Threads of four warps, the first of which is a multiple of four (PTX ISA, asynchronous warpgroup-level matrix
instructions)."""
WGMMA_CAPABILITY = 90
_WGMMA_COLUMNS = (16, 32, 64, 96, 128, 160, 192, 224, 256)
"""Of the columns that the instruction has, all multiples of 8 up to 256, those that tiles of products are made of."""
_WGMMA_TYPES = ("float16", "bfloat16", "float32", "int8", "uint8")


def _wgmma(element: str, n: int) -> CudaInstruction:
    """`wgmma.mma_async.m64n*k*`: factors by descriptors, sums in the registers of four warps, 16 rows each.

    `a` may be in registers, too, in each warp as that of `mma.sync`. At the rate of the data sheet, 2048 multiply-adds
    of fp16 a cycle, 64 rows and n columns take n / 2 cycles.
    """
    size = element_bytes(DTYPES[element])
    k, per, row = 32 // size, REGISTER_BYTES // size, ROW_BYTES // size
    sums = "float32" if is_float(DTYPES[element]) else "int32"
    kind = _PTX_TYPES[element]
    lane = "i floordiv 16 * 32 + i mod 8 * 4"
    half = "i floordiv 8 mod 2"
    return CudaInstruction(
        name=f"wgmma.m64n{n}k{k}.{kind}",
        m=64,
        n=n,
        k=k,
        a=(element, f"{lane} + k mod {row} floordiv {per}", f"k floordiv {row}", half, f"k mod {per}"),
        b=(element, "0"),
        c=(sums, f"{lane} + j mod 8 floordiv 2", f"j floordiv {MATRIX_ROWS}", half, "j mod 2"),
        threads=WARP_GROUP,
        code=_wgmma_code(n, k, kind, sums, held=False),
        held_code="" if kind == "tf32" else _wgmma_code(n, k, kind, sums, held=True),  # nothing would round them
        since=WGMMA_CAPABILITY,
        cycles=n // 2,
        exact=True,
        reads_shared=True,
        rounds=kind if kind == "tf32" else "",
    )


def _wgmma_code(n: int, k: int, kind: str, sums: str, held: bool) -> str:
    wide, letter = ("f32", "f") if sums == "float32" else ("s32", "r")
    count = n // 2
    registers = ", ".join(f"%{x}" for x in range(count))
    c = ", ".join(f'"{{sums}}{letter}"(c{x})' for x in range(count))
    signs = ", 1, 1" if sums == "float32" else ""
    turned = f", {'' if held else '{a_turned}, '}{{b_turned}}" if kind in ("f16", "bf16") else ""
    parts = 4 if held else 1
    numbers = ", ".join(f"%{count + x}" for x in range(parts))
    first = ", ".join(f'"r"(a{x})' for x in range(parts)) if held else '"l"(a)'
    return (
        f'asm volatile("{{ .reg .pred p; setp.ne.u32 p, {{adds}}, 0; "\n'
        f'    "wgmma.mma_async.sync.aligned.m64n{n}k{k}.{wide}.{kind}.{kind} "\n'
        f'    "{{{registers}}}, "\n'
        f'    "{f"{{{numbers}}}" if held else numbers}, %{count + parts}, p{signs}{turned}; }}"\n'
        f"    : {c}\n"
        f'    : {first}, "l"(b));'
    )


CUDA_INSTRUCTIONS = (
    *(_mma(element, n) for element in _PTX_TYPES for n in (8, 16)),
    *(_in_parts(n) for n in (8, 16)),
    *(_wgmma(element, n) for element in _WGMMA_TYPES for n in _WGMMA_COLUMNS),
)
