"""Cost models by target: that of this machine, else what comes with the package, in the folder `pretuned`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ...dialects.cpu_models import CPU_MODELS
from ...dialects.target import Target
from .general import General
from .local import local_model
from .plain_file import read_plain
from .saved import MAGIC

FOLDER = Path(__file__).parents[2] / "pretuned"


@cache
def shipped_model(kind: str) -> General | None:
    """Return the model for targets of a kind (`cuda`); None where none comes with the package."""
    path = FOLDER / f"{kind}.model"
    return General.read(read_plain(path, MAGIC).part("state")) if path.is_file() else None


_X86 = "x86_64"
_VECTORS = ((32, 16), (64, 32))
"""Bytes and registers of AVX2's and AVX-512's vectors."""
_MOST_CORES = 1
"""Cores of the CPUs that it was trained on. With features of four, what it picks of measured ones takes 1.69 times
the best one's time, the rules' choice 1.44 times: it is asked about candidates as on one core (`as_on_one_core`)."""


def model_for(target: Target, dtype: str | None) -> General | None:
    """Return the model that candidates for a target are compared by; None where none is of such, or element types.

    Of CPUs it is of one core, in fp32: the one that was calibrated there, else the one that ships. Of several cores it
    may be asked as of one.
    """
    if target.kind == "llvm" and (dtype != "float32" or target.cores > _MOST_CORES):
        return None
    return (local_model(target) if target.kind == "llvm" else None) or shipped_for(target)


def shipped_for(target: Target) -> General | None:
    """Return the model that ships for a target; of CPUs, for an x86 with AVX2 or AVX-512."""
    return shipped_model(target.kind) if target.kind != "llvm" or _is_known_cpu(target) else None


def _is_known_cpu(target: Target) -> bool:
    arch = CPU_MODELS[target.model].arch if target.model in CPU_MODELS else target.arch
    return arch in ("", _X86) and (target.vector_bytes, target.vector_registers) in _VECTORS
