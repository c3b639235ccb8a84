"""Architectures that CUDA code is compiled for: a compute capability, and whether it is for exactly that one."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"sm_(\d+)(a?)")


@dataclass(frozen=True)
class Architecture:
    """`sm_90`, or `sm_90a` with what GPUs of just this capability have: `exact` code runs on no later one.

    See the CUDA C++ Programming Guide, architecture-specific features.
    """

    capability: int
    exact: bool = False

    @staticmethod
    def of(name: str) -> Architecture:
        """Read `sm_90` or `sm_90a`; ValueError for something else."""
        found = _NAME.fullmatch(name)
        if found is None:
            raise ValueError(f"an architecture is named like sm_90 or sm_90a, got {name!r}")
        return Architecture(int(found[1]), bool(found[2]))

    @property
    def number(self) -> str:
        """The name without its prefix: `90a`."""
        return f"{self.capability}{'a' * self.exact}"

    def __str__(self) -> str:
        return f"sm_{self.number}"

    def runs_on(self, major: int, minor: int) -> bool:
        """True for devices that run its machine code: of the same generation, and not older."""
        if self.exact:
            return self.capability == 10 * major + minor
        return self.capability // 10 == major and self.capability % 10 <= minor
