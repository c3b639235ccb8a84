"""CPU features that kernels are compiled for: this CPU's, or those of a level that many CPUs have."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from ...dialects.cpu_models import CPU_MODELS, GENERIC, LEVELS
from ..missing import MissingRequirement

_FOR_INTRINSICS = (
    "adx aes clflushopt cldemote clwb clzero crc32 enqcmd fsgsbase hreset invpcid kl lwp movdir64b movdiri mwaitx "
    "pclmul pconfig pku prefetchi ptwrite rdpid rdpru rdrnd rdseed rtm serialize sgx sha sha512 shstk sm3 sm4 tsxldtrk "
    "uintr usermsr vaes vpclmulqdq waitpkg wbnoinvd widekl xsave xsavec xsaveopt xsaves"
)
"""Features whose instructions LLVM only selects for their own intrinsics, which kernels do not call. Virtual machines
and settings of the firmware hide many of them: code that is not allowed them runs on more machines."""
_FOR_INTRINSICS_STEM = "amx-"
_ORDERED_AS = {"znver4": "znver3", "znver5": "znver3"}
"""Processors whose instructions are ordered by another's latencies than their own. By LLVM's model of Zen 4, which it
takes for Zen 5 too (LLVM 22), broadcasts are loaded far ahead of their multiply-adds, and what then finds no register
goes to the stack: 61 vectors in the innermost loop of a 9x9 convolution of 3 channels, which takes 3.0 to 5.9 ms with
them and 2.6 without, and 15 of a 5x5 one. By that of Zen 3, and by 14 others that were tried, none does."""
_MOST_NAMED = 6
_ANY = "generic"
"""The model of targets that name none."""


class MissingFeatures(MissingRequirement):
    """A kernel was compiled for instructions that this CPU does not have."""


@dataclass(frozen=True)
class CpuFeatures:
    """A CPU as LLVM compiles for it: its name, and the features that code may use, the architecture first.

    `tune` is the processor whose latencies instructions are ordered by, where that is not the one named.
    """

    name: str
    features: tuple[str, ...]
    tune: str = ""

    @property
    def flags(self) -> str:
        """The features as LLVM takes them: on, and off where this CPU is known to have more names for them."""
        known = {*self.features[1:], *(_known() if self.arch == architecture() else ())}
        return ",".join(f"{'+' if name in self.features else '-'}{name}" for name in sorted(known))

    @property
    def arch(self) -> str:
        return self.features[0]

    def using(self, features: Iterable[str]) -> CpuFeatures:
        """Return the same CPU with features that a kernel's matrix instructions need."""
        return replace(self, features=(self.arch, *sorted({*self.features[1:], *features})))

    @property
    def triple(self) -> str:
        """The system that code is for: this process's, or Linux on another architecture."""
        import llvmlite.binding as llvm

        here = self.arch == architecture()
        return str(llvm.get_process_triple()) if here else f"{self.arch}-unknown-linux-gnu"


@cache
def cpu_for(model: str = "", arch: str = "", features: str = "") -> CpuFeatures:
    """Return what code for a target is compiled to: its model and architecture, more or fewer features (`+lse,-neon`).

    That is this CPU where neither names another one. ValueError for a model that is not known, or is of another
    architecture.
    """
    named, here = model, architecture()
    if arch in ("", here) and (named == host_model() or (not arch and named in ("", _ANY))):
        tune = _ORDERED_AS.get(host_model(), "")
        return _changed(CpuFeatures(host_model(), (here, *_used(host_features())), tune), features)
    if named in CPU_MODELS:
        known = CPU_MODELS[named]
        if arch not in ("", known.arch):
            raise ValueError(f"model '{named}' is of {known.arch}, not of {arch}")
    elif arch:
        known = GENERIC[arch]
    else:
        near = difflib.get_close_matches(named.lower(), CPU_MODELS, n=4, cutoff=0.5)
        like = f"near: {', '.join(near)}" if near else f"known: {', '.join(CPU_MODELS)}"
        raise ValueError(
            f"no CPU '{named}' is known, {like}, and this one is {host_model()}; for another CPU say "
            f"arch={' or arch='.join(GENERIC)} and, beyond what all of these have, features=+..."
        )
    tune = _ORDERED_AS.get(named, named) if named in CPU_MODELS and named != known.base else ""
    return _changed(CpuFeatures(known.base, (known.arch, *_used(known.features.split())), tune), features)


def _changed(cpu: CpuFeatures, features: str) -> CpuFeatures:
    """Return a CPU with features of a text added and taken away; ValueError for a name that is none."""
    arch, *has = cpu.features
    models = [m for m in (*CPU_MODELS.values(), *GENERIC.values()) if m.arch == arch]
    names = {name for m in models for name in (*m.features.split(), *m.units.split())}
    names |= set(_known()) if arch == architecture() else set()
    for change in features.split(",") if features else ():
        if change[1:] not in names:
            raise ValueError(f"no feature '{change[1:]}' of {arch} is known; known: {', '.join(sorted(names))}")
        has = [name for name in has if name != change[1:]] + [change[1:]] * (change[0] == "+")
    return replace(cpu, features=(arch, *_used(has)))


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
    """The reason why code that may use these features cannot run on this CPU, and what would; None where it can."""
    here = {architecture(), *host_features()}
    missing = [name for name in features if name not in here]
    if not missing:
        return None
    if missing[0] == features[0]:
        return f"is compiled for {missing[0]}, this CPU is {architecture()}: run it there, or compile it for this one"
    named = ", ".join(missing[:_MOST_NAMED])
    more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
    levels = [level for level, has in LEVELS.items() if here.issuperset(_used(has.features.split()))]
    either = f", or for the target 'llvm model={levels[-1]}'" if levels and architecture() == "x86_64" else ""
    return f"uses {named}{more}, which this CPU ({host_model()}) does not have: compile it on such a CPU{either}"
