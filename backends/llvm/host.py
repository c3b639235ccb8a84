"""This machine's CPU as a target."""

from __future__ import annotations

import os
from dataclasses import replace

from ...dialects.cpu_models import CPU_MODELS, GENERIC, UNITS, features_of_cpu
from ...dialects.target import Target
from ..host_cache import cache_bytes, cache_bytes_a_core, cores_of_cache
from .cpu import CpuFeatures, architecture, cpu_for, host_features, host_model


def host_target(cores: int | None = None) -> Target:
    """Return the target of this CPU; `cores` threads, or one for each core this process may use."""
    vector_bytes, registers = _vectors()
    known = Target()
    return Target(
        kind="llvm",
        model=host_model(),
        cores=cores if cores is not None else _cores(),
        vector_bytes=vector_bytes,
        vector_registers=registers,
        l1_bytes=cache_bytes_a_core(1) or known.l1_bytes,
        l2_bytes=cache_bytes_a_core(2) or known.l2_bytes,
        l3_bytes=cache_bytes(3),
        l3_cores=cores_of_cache(3),
        features=_other_units(),
    )


def _other_units() -> str:
    """Return the units that this CPU has and its model does not say, or lacks, as a virtual machine may hide them."""
    said, here = features_of_cpu(host_model(), architecture(), ""), set(host_features())
    return ",".join(f"{'+' if name in here else '-'}{name}" for name in UNITS if (name in said) != (name in here))


def cpu_of(target: Target) -> CpuFeatures:
    """Return what code for a target of a CPU is compiled to; ValueError where it names a CPU that is not known."""
    return cpu_for(target.model, target.arch, target.features)


def named_elsewhere(target: Target) -> Target:
    """Return this CPU's target as other machines compile for it; one that names another CPU as it is.

    It gets its architecture where its model is known here alone, and loses the features that others take for granted of
    the model and this one does not show, as a virtual machine may not. A target has no word for other architectures.
    """
    arch, here = architecture(), set(host_features())
    if target.arch or target.model != host_model() or arch not in GENERIC:
        return target
    known = CPU_MODELS.get(target.model)
    usual = (known if known and known.arch == arch else GENERIC[arch]).features.split()
    told = target.features.split(",") if target.features else []
    missing = [f"-{name}" for name in sorted(usual) if name not in here and name not in {x[1:] for x in told}]
    return replace(target, arch="" if known and known.arch == arch else arch, features=",".join((*told, *missing)))


def as_compiled(target: Target) -> Target:
    """Return a target of a CPU with the model that its code is for: this one's, where it names none."""
    if target.arch or target.model != Target().model:
        return target
    return replace(target, model=host_model())


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _vectors() -> tuple[int, int]:
    """Return the bytes of a vector register and how many of them there are."""
    features = host_features()
    if "avx512f" in features:
        return 64, 32
    if "avx" in features:
        return 32, 16
    return 16, 32 if "neon" in features else 16
