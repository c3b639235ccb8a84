"""What one multiprocessor of a GPU has: registers, shared memory, resident threads and blocks, lanes."""

from __future__ import annotations

from dataclasses import dataclass

from .target import Target

CLOCK_HZ = 1.7e9
"""A clock to turn cycles into seconds with; only ratios matter."""
BANKS = 32
"""Banks of shared memory, on every GPU of NVIDIA's (CUDA C++ Programming Guide, compute capabilities)."""
BANK_BYTES = 4
"""What a bank gives in a cycle."""


@dataclass(frozen=True)
class Multiprocessor:
    """Limits of a multiprocessor, and the additions or multiplications of float32 that it begins in a cycle."""

    threads: int
    blocks: int
    shared_bytes: int
    lanes: int
    registers: int = 65536
    registers_per_thread: int = 255
    schedulers: int = 4
    """Warps that it issues from in a cycle."""

    @property
    def shared_bytes_per_cycle(self) -> int:
        """What it reads from or writes to shared memory in a cycle."""
        return BANKS * BANK_BYTES


_BY_CAPABILITY = {
    61: Multiprocessor(threads=2048, blocks=32, shared_bytes=96 << 10, lanes=128),
    70: Multiprocessor(threads=2048, blocks=32, shared_bytes=96 << 10, lanes=64),
    75: Multiprocessor(threads=1024, blocks=16, shared_bytes=64 << 10, lanes=64),
    80: Multiprocessor(threads=2048, blocks=32, shared_bytes=164 << 10, lanes=64),
    86: Multiprocessor(threads=1536, blocks=16, shared_bytes=100 << 10, lanes=128),
    89: Multiprocessor(threads=1536, blocks=24, shared_bytes=100 << 10, lanes=128),
    90: Multiprocessor(threads=2048, blocks=32, shared_bytes=228 << 10, lanes=128),
}
"""CUDA C++ Programming Guide: technical specifications, and throughput of native arithmetic instructions."""


def multiprocessor_of(target: Target) -> Multiprocessor:
    """Return what a target's multiprocessors have; of those that are not in the table, what compute capability 9.0 has.

    For devices of OpenCL that is a stand-in: it orders candidates by what they take, and says nothing of the device.
    """
    return _BY_CAPABILITY.get(target.compute_capability, _BY_CAPABILITY[90])
