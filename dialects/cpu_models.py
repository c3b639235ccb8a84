"""CPUs by LLVM's names: their architecture, what code for them may use, and their vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class CpuModel:
    """A CPU as code is compiled for it; `features` by LLVM's names, words in a text.

    `base` is the processor of LLVM's that has these features and no others: one by the model's own name may have more.
    `units` are features for products of small matrices, which only kernels may use whose schedule asks for them.
    `fma_bytes` are the bytes of results of multiply-adds that begin in a cycle, `load_bytes` those that are loaded from
    the first-level cache; 0 for two whole vectors, which is what most cores do.
    """

    arch: str
    base: str
    features: str
    vector_bytes: int = 16
    vector_registers: int = 32
    units: str = ""
    fma_bytes: int = 0
    load_bytes: int = 0


_BASE = "64bit cmov cx8 fxsr mmx sse sse2"
_V2 = f"{_BASE} crc32 cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3"
_V3 = f"{_V2} avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave"
_V4 = f"{_V3} avx512bw avx512cd avx512dq avx512f avx512vl"
LEVELS: dict[str, CpuModel] = {
    # System V ABI for AMD64, table 3.1: all CPUs with SSE2, SSE4.2, AVX2 or AVX-512, whoever made them.
    "x86-64": CpuModel("x86_64", "x86-64", _BASE, 16, 16),
    "x86-64-v2": CpuModel("x86_64", "x86-64-v2", _V2, 16, 16),
    "x86-64-v3": CpuModel("x86_64", "x86-64-v3", _V3, 32, 16),
    "x86-64-v4": CpuModel("x86_64", "x86-64-v4", _V4, 64, 32),
}
"""Models that stand for all CPUs with these features, the least first."""

_V8 = "fp-armv8 neon"
_V8_2 = f"{_V8} dotprod fullfp16 lse"
_RV64GC = "a c d f m"
GENERIC: dict[str, CpuModel] = {
    "x86_64": LEVELS["x86-64"],
    # Arm Architecture Reference Manual for A-profile: what Armv8.0-A has, as programs of Linux take it for granted.
    "aarch64": CpuModel("aarch64", "generic", _V8),
    # RISC-V's RV64GC without its vectors: what Linux distributions compile for.
    "riscv64": CpuModel("riscv64", "generic-rv64", _RV64GC),
}
"""By the architecture: what all its CPUs have that programs of Linux run on."""


_VNNI = "avx512vnni"
_BF16 = f"{_VNNI} avx512bf16"
_AMX = f"{_BF16} avxvnni amx-bf16 amx-int8 amx-tile"


def _named(like: CpuModel, names: str, units: str = "", fma_bytes: int = 0, load_bytes: int = 0) -> dict[str, CpuModel]:
    return dict.fromkeys(names.split(), replace(like, units=units, fma_bytes=fma_bytes, load_bytes=load_bytes))


CPU_MODELS: dict[str, CpuModel] = {
    **LEVELS,
    # Processors of LLVM's X86.td with at least the level's features; code for them uses no more than the level's.
    # Half as wide as their registers are Zen 1 and Gracemont (two of 128 bits) and Zen 4 (of 256); Intel's client
    # processors with AVX-512 have one unit for 512 bits, and load two (Software Optimization Guides for AMD families
    # 17h and 19h; Intel 64 and IA-32 Architectures Optimization Reference Manual, chapter 2). Of Skylake's servers some
    # have one, too, which no instruction tells.
    **_named(LEVELS["x86-64-v2"], "nehalem westmere sandybridge ivybridge silvermont goldmont tremont"),
    **_named(LEVELS["x86-64-v3"], "haswell broadwell skylake znver2 znver3"),
    **_named(LEVELS["x86-64-v3"], "znver1", fma_bytes=32, load_bytes=32),
    **_named(LEVELS["x86-64-v3"], "alderlake raptorlake", "avxvnni"),
    **_named(LEVELS["x86-64-v3"], "gracemont", "avxvnni", 32, 32),
    **_named(LEVELS["x86-64-v4"], "skylake-avx512"),
    **_named(LEVELS["x86-64-v4"], "cascadelake icelake-server", _VNNI),
    **_named(LEVELS["x86-64-v4"], "icelake-client tigerlake rocketlake", _VNNI, 64),
    **_named(LEVELS["x86-64-v4"], "cooperlake", _BF16),
    **_named(LEVELS["x86-64-v4"], "znver4", _BF16, 64, 64),
    **_named(LEVELS["x86-64-v4"], "znver5", f"{_BF16} avxvnni"),
    **_named(LEVELS["x86-64-v4"], "sapphirerapids emeraldrapids graniterapids", _AMX),
    # Arm's technical reference manuals: Armv8.0-A.
    **_named(CpuModel("aarch64", "generic", _V8), "cortex-a35 cortex-a53 cortex-a57 cortex-a72 cortex-a73"),
    # Arm's technical reference manuals: Armv8.2-A with half precision and dot products, and its successors, whose
    # SVE is not used. Cortex-X and Neoverse V have four units of 128 bits (their software optimization guides).
    **_named(CpuModel("aarch64", "generic", _V8_2), "cortex-a55 cortex-a75 cortex-a76 cortex-a77 cortex-a78"),
    **_named(CpuModel("aarch64", "generic", _V8_2), "cortex-x1", fma_bytes=64),
    **_named(CpuModel("aarch64", "generic", _V8_2), "cortex-a510 cortex-a710 cortex-a715 cortex-a720", "bf16 i8mm"),
    **_named(CpuModel("aarch64", "generic", _V8_2), "cortex-x2 cortex-x3", "bf16 i8mm", 64),
    **_named(CpuModel("aarch64", "generic", _V8_2), "neoverse-n1 neoverse-e1"),
    **_named(CpuModel("aarch64", "generic", _V8_2), "neoverse-n2", "bf16 i8mm"),
    **_named(CpuModel("aarch64", "generic", _V8_2), "neoverse-v1 neoverse-v2", "bf16 i8mm", 64),
    # SiFive's U74-MC core complex manual: RV64GC with Zba and Zbb.
    "sifive-u74": CpuModel("riscv64", "generic-rv64", f"{_RV64GC} zba zbb"),
}
"""By the name that LLVM has for the processor."""

UNITS = ("amx-bf16", "amx-int8", "amx-tile", "avx2", "avx512bf16", "avx512vnni", "avxvnni", "bf16", "dotprod", "i8mm")
"""Features that matrix intrinsics of CPUs need."""


def features_of_cpu(model: str, arch: str, changes: str) -> frozenset[str]:
    """Return what kernels may use on a CPU, its units included, by its model or architecture and `+lse,-amx-tile`."""
    known = CPU_MODELS.get(model) or GENERIC.get(arch)
    found = {*known.features.split(), *known.units.split()} if known else set()
    for change in filter(None, changes.split(",")):
        found = found - {change[1:]} | ({change[1:]} if change[0] == "+" else set())
    return frozenset(found)
