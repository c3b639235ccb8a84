"""Resources of one multiprocessor of a GPU: registers, shared memory, resident threads and blocks, lanes."""

from __future__ import annotations

from dataclasses import dataclass

from .element import FLOAT32_BYTES
from .target import WIDEST_ACCESS_BYTES, Target

CLOCK_HZ = 1.7e9
"""A clock to turn cycles into seconds with; only ratios matter."""
BANKS = 32
"""Banks of shared memory, on every GPU of NVIDIA's (CUDA C++ Programming Guide, compute capabilities)."""
BANK_BYTES = 4
"""Bytes that a bank gives in a cycle."""
GPU_LINE_BYTES = 128
"""A line of a GPU's caches, which a warp's neighbours of 4 bytes fill (CUDA C++ Programming Guide, device memory)."""
VECTOR = WIDEST_ACCESS_BYTES // FLOAT32_BYTES
"""Elements of float32 that a thread moves at once, at most."""
MAX_THREADS_PER_BLOCK = 1024
"""On every GPU of NVIDIA's since compute capability 2.0 (CUDA C++ Programming Guide, technical specifications)."""


@dataclass(frozen=True)
class Multiprocessor:
    """Limits of a multiprocessor, and the additions or multiplications of float32 that it begins in a cycle."""

    threads: int
    blocks: int
    shared_bytes: int
    block_shared_bytes: int
    """Shared memory that one block may have, where it asks for more than the usual 48 KB."""
    l1_bytes: int
    """The first-level cache, with the shared memory that is taken out of it."""
    lanes: int
    registers: int = 65536
    registers_per_thread: int = 255
    schedulers: int = 4
    """Warps that it issues from in a cycle."""

    @property
    def shared_bytes_per_cycle(self) -> int:
        """Bytes that it reads from or writes to shared memory in a cycle."""
        return BANKS * BANK_BYTES


def _has(threads: int, blocks: int, shared_kb: int, block_kb: int, l1_kb: int, lanes: int) -> Multiprocessor:
    return Multiprocessor(threads, blocks, shared_kb << 10, block_kb << 10, l1_kb << 10, lanes)


MULTIPROCESSORS = {
    61: _has(2048, 32, 96, 48, 48, 128),
    70: _has(2048, 32, 96, 96, 128, 64),
    72: _has(2048, 32, 96, 96, 128, 64),
    75: _has(1024, 16, 64, 64, 96, 64),
    80: _has(2048, 32, 164, 163, 192, 64),
    86: _has(1536, 16, 100, 99, 128, 128),
    87: _has(1536, 16, 164, 163, 192, 128),
    89: _has(1536, 24, 100, 99, 128, 128),
    90: _has(2048, 32, 228, 227, 256, 128),
    100: _has(2048, 32, 228, 227, 256, 128),
    103: _has(2048, 32, 228, 227, 256, 128),
    120: _has(1536, 24, 100, 99, 128, 128),
    121: _has(1536, 24, 100, 99, 128, 128),
}
"""By compute capability. CUDA C++ Programming Guide: technical specifications, throughput of native arithmetic
instructions, and for each capability the size of the unified data cache."""


def multiprocessor_of(target: Target) -> Multiprocessor:
    """Return what a target's multiprocessors have; of those that are not in the table, what compute capability 9.0 has.

    For devices of OpenCL that is a stand-in: it orders candidates by what they take, and says nothing of the device.
    """
    return MULTIPROCESSORS.get(target.compute_capability, MULTIPROCESSORS[90])
