"""Blocks that a multiprocessor has at a time, and the rounds in which it has its part of a launch, over populations."""

from __future__ import annotations

from collections.abc import Callable

import numpy.typing as npt

from ...dialects.multiprocessor import multiprocessor_of
from ...dialects.target import Target
from ..sketch import arrays as np

Array = npt.NDArray[np.float64]

SHARED_RESERVED = 1024
"""Bytes of shared memory that CUDA takes for each resident block (CUDA C++ programming guide, from 8.0 on)."""
REGISTERS_AT_ONCE = 8
"""Registers of a thread that are given at once, 256 to a warp (CUDA Occupancy Calculator)."""


def allotted(registers: Array) -> Array:
    """Registers that a thread takes of a multiprocessor's, of so many that it asks for."""
    return np.asarray(np.ceil(registers / REGISTERS_AT_ONCE) * REGISTERS_AT_ONCE)


def resident_blocks(target: Target, threads: Array, registers: Array, shared_bytes: Array | int = 0) -> Array:
    """Blocks of a multiprocessor at a time, at least one: by their threads, their registers and their shared memory.

    `registers` are those allotted to a thread, `shared_bytes` those that a block asks for. As expressions, for one
    nest: `features.occupancy.blocks_at_a_time`.
    """
    on = multiprocessor_of(target)
    found = np.minimum(on.threads // threads, on.shared_bytes // (shared_bytes + SHARED_RESERVED))
    return np.asarray(np.clip(np.minimum(found, on.registers // (registers * threads)), 1, on.blocks))


def rounds_of(blocks: Array, cores: Array | int, resident: Array) -> tuple[Array, Array]:
    """Rounds in which all multiprocessors have as many blocks as fit, and the blocks of each in what is left."""
    whole = blocks // (cores * resident)
    return whole, np.ceil((blocks - whole * cores * resident) / cores)


def cycles_of_rounds(blocks: Array, cores: Array | int, resident: Array, cycles: Callable[[Array], Array]) -> Array:
    """Cycles of all rounds, where so many blocks on a multiprocessor take `cycles`; the last one may have fewer."""
    whole, rest = rounds_of(blocks, cores, resident)
    return np.asarray(whole * cycles(resident) + np.where(rest > 0, cycles(np.maximum(1.0, rest)), 0.0))
