"""The CPU as a device to measure on: builds schedules into artifacts, loads, runs and times them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..package_versions import package_versions
from .cpu import cpu_for
from .executable import Artifact, LlvmExecutable
from .jit import compile_text


def build(workload: str, schedule: str) -> bytes:
    """Compile te-level IR text, with its target, under a pass pipeline; raises ScheduleError if a step is illegal."""
    from .. import scheduled
    from .compile import compile_module

    return compile_module(scheduled.scheduled_kernel(workload, schedule))[1].to_bytes()


def load(artifact: bytes) -> LlvmExecutable:
    """Load what `build` returned."""
    return LlvmExecutable(Artifact.from_bytes(artifact))


@cache
def device_name() -> str:
    """Return the CPU's name as the system gives it, else as LLVM does."""
    import llvmlite.binding as llvm

    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = str(llvm.get_host_cpu_name())
    return f"{names[0]} ({model})" if names else model


@cache
def versions() -> dict[str, str]:
    """Return versions of what makes the code: packages, LLVM, and each pass by its pipeline name."""
    from .. import scheduled

    return {**toolchain(), **scheduled.code_versions(())}


@cache
def toolchain() -> dict[str, str]:
    """Return those of `versions` that are not our passes, whose code need not be loaded for it."""
    import llvmlite.binding as llvm

    return {"llvm": ".".join(map(str, llvm.llvm_version_info)), **package_versions(("llvmlite",))}


@cache
def machine() -> str:
    """Return what code for a target that names no level of CPUs is compiled to: this CPU and its features."""
    cpu = cpu_for()
    return " ".join([cpu.name, *cpu.features])


def warm_up(role: str) -> None:
    """Import now what the first build or run would import."""
    source = "define void @lw_run(ptr %pointers) {\n  ret void\n}\n"
    if role == "builder":
        from .. import scheduled
        from .compile import compile_module  # noqa: F401 (loads it)

        scheduled.warm_up()
    compile_text(source)
