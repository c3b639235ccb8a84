"""Analytic model of copies that a CPU makes ahead of all tiles, as of pixels that are padded or laid out by phases."""

from __future__ import annotations

from ...dialects.target import Target
from .cache_traffic import KEPT
from .tile_model import L2_BYTES_PER_CYCLE, L3_BYTES_PER_CYCLE, MEMORY_BYTES_PER_CYCLE

VECTOR_CYCLES = 2.0
"""Cycles to load a vector and to store it, where caches hold both (a Zen 3)."""


def copy_cycles(target: Target, read_bytes: int, written_bytes: int, vectors: int) -> float:
    """Cycles of one core to copy so many bytes in so many vectors, from and to the nearest cache that keeps both."""
    moved = read_bytes + written_bytes
    if moved <= KEPT * target.l2_bytes:
        bytes_per_cycle = L2_BYTES_PER_CYCLE
    else:
        near = moved <= KEPT * target.l3_bytes_a_core
        bytes_per_cycle = L3_BYTES_PER_CYCLE if near else MEMORY_BYTES_PER_CYCLE
    return vectors * VECTOR_CYCLES + moved / bytes_per_cycle
