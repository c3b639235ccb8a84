"""CPU features that kernels are compiled for: this CPU's, or those of a level that many CPUs have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from ..missing import MissingRequirement

_BASE = "64bit cmov cx8 fxsr mmx sse sse2"
_V2 = f"{_BASE} crc32 cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3"
_V3 = f"{_V2} avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave"
_V4 = f"{_V3} avx512bw avx512cd avx512dq avx512f avx512vl"
LEVELS = {"x86-64": _BASE, "x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}
"""Models that stand for all CPUs with these features, the least first (System V ABI for AMD64, table 3.1)."""

_FOR_INTRINSICS = (
    "adx aes clflushopt cldemote clwb clzero crc32 enqcmd fsgsbase hreset invpcid kl lwp movdir64b movdiri mwaitx "
    "pclmul pconfig pku prefetchi ptwrite rdpid rdpru rdrnd rdseed rtm serialize sgx sha sha512 shstk sm3 sm4 tsxldtrk "
    "uintr usermsr vaes vpclmulqdq waitpkg wbnoinvd widekl xsave xsavec xsaveopt xsaves"
)
"""Features whose instructions LLVM only selects for their own intrinsics, which kernels do not call. Virtual machines
and settings of the firmware hide many of them: code that is not allowed them runs on more machines."""
_FOR_INTRINSICS_STEM = "amx-"
_MOST_NAMED = 6


class MissingFeatures(MissingRequirement):
    """A kernel was compiled for instructions that this CPU does not have."""


@dataclass(frozen=True)
class CpuFeatures:
    """A CPU as LLVM compiles for it: its name, and the features that code may use, the architecture first."""

    name: str
    features: tuple[str, ...]

    @property
    def flags(self) -> str:
        """The features as LLVM takes them: each that it knows of this architecture, on or off."""
        return ",".join(f"{'+' if name in self.features else '-'}{name}" for name in sorted(_known()))


@cache
def cpu_for(model: str) -> CpuFeatures:
    """Return what to compile for: a level where the model is one, else this CPU."""
    if model in LEVELS and model != host_model() and architecture() == "x86_64":
        return CpuFeatures(model, (architecture(), *_used(LEVELS[model].split())))
    return CpuFeatures(host_model(), (architecture(), *_used(host_features())))


def _used(features: Sequence[str]) -> list[str]:
    unused = set(_FOR_INTRINSICS.split())
    return sorted(f for f in features if f not in unused and not f.startswith(_FOR_INTRINSICS_STEM))


@cache
def host_model() -> str:
    """Return the name that LLVM has for this CPU."""
    import llvmlite.binding as llvm

    return str(llvm.get_host_cpu_name())


@cache
def architecture() -> str:
    """Return LLVM's name of the architecture that this process runs on."""
    import llvmlite.binding as llvm

    return str(llvm.get_process_triple()).partition("-")[0]


@cache
def host_features() -> tuple[str, ...]:
    """Return the features of this CPU by LLVM's names."""
    return tuple(sorted(name for name, on in _known().items() if on))


@cache
def _known() -> dict[str, bool]:
    """Return all features of the architecture that LLVM looks for, and whether this CPU has them."""
    import llvmlite.binding as llvm

    return {str(name): bool(on) for name, on in llvm.get_host_cpu_features().items()}


def why_not_here(features: Sequence[str]) -> str | None:
    """Why code that may use these features cannot run on this CPU, and what would; None where it can."""
    here = {architecture(), *host_features()}
    missing = [name for name in features if name not in here]
    if not missing:
        return None
    if missing[0] == features[0]:
        return f"is compiled for {missing[0]}, this CPU is {architecture()}: compile it on such a machine"
    named = ", ".join(missing[:_MOST_NAMED])
    more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
    levels = [level for level, needs in LEVELS.items() if here.issuperset(_used(needs.split()))]
    either = f", or for the target 'llvm model={levels[-1]}'" if levels and architecture() == "x86_64" else ""
    return f"uses {named}{more}, which this CPU ({host_model()}) does not have: compile it on such a CPU{either}"
