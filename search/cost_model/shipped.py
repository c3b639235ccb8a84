"""Cost models that come with the package, one for a kind of target: the folder `pretuned` holds `KIND.model`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ...dialects.cpu_models import CPU_MODELS
from ...dialects.target import Target
from .general import General
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
    """Return the model that ships for a target's kind, where it was trained on such targets and element types.

    Of CPUs these are one core with AVX2 or AVX-512, in fp32; of several it may be asked as of one.
    """
    return shipped_model(target.kind) if target.kind != "llvm" or _is_known_cpu(target, dtype) else None


def _is_known_cpu(target: Target, dtype: str | None) -> bool:
    arch = CPU_MODELS[target.model].arch if target.model in CPU_MODELS else target.arch
    vectors = (target.vector_bytes, target.vector_registers)
    return dtype == "float32" and arch in ("", _X86) and vectors in _VECTORS and target.cores <= _MOST_CORES
