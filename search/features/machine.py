"""Approximate throughput of a target's units per cycle, for features that are times or shares of a limit."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.element import FLOAT32_BYTES
from ...dialects.multiprocessor import CLOCK_HZ, multiprocessor_of
from ...dialects.target import Target


@dataclass(frozen=True)
class Machine:
    """Figures per core (CPU) or multiprocessor (GPU), in cycles of a nominal clock; only ratios matter."""

    cores: int
    clock_hz: float
    operations_per_cycle: float
    """Additions and multiplications on 4-byte elements, a fused pair as two."""
    far_bytes_per_cycle: float
    """From memory, in one core's share."""
    near_bytes_per_cycle: float
    """From the cache that all cores share, in one core's share."""
    inner_bytes_per_cycle: float
    """From the first-level cache or shared memory."""
    latency_cycles: float
    """From the operands of a dependent operation to its result."""
    launch_s: float
    """To start one kernel, or to wake the threads of one nest."""


def machine_of(target: Target) -> Machine:
    """The figures for a target.

    GPU: lanes and banks as `multiprocessor_of` says, about 20 bytes a cycle from memory and 48 from the second-level
    cache (NVIDIA H100 white paper: 3.35 TB/s for 132 multiprocessors at 1.7 GHz; 5.5 TB/s). CPU: two FMA pipes and two
    loads of a vector a cycle, 4 cycles of latency (Fog, instruction tables), 5 bytes a cycle and core from memory and
    32 from the second-level cache.
    """
    cores = max(1, target.cores)
    if target.is_gpu:
        on = multiprocessor_of(target)
        return Machine(cores, CLOCK_HZ, 2.0 * on.lanes, 20.0, 48.0, float(on.shared_bytes_per_cycle), 24.0, 3e-6)
    lanes = max(1, target.vector_bytes // FLOAT32_BYTES)
    return Machine(cores, 3.0e9, 4.0 * lanes, 5.0, 32.0, 2.0 * target.vector_bytes, 4.0, 2e-6)


SECTOR_BYTES = 32
"""Bytes of the smallest fetch from global memory (CUDA C++ Best Practices Guide, coalesced access)."""
BASE_REGISTERS = 24
"""Registers for indices and addresses, about. A choice: with accumulators they order candidates, and refuse none."""
