"""Kernels that may begin before the one ahead has ended: programmatic dependent launch (PTX ISA, from sm_90 on).

Each waits, as its first instruction, until the launch ahead has ended and its writes are seen. As that one has waited
in the same way, so have all launches before it: what they wrote is seen, and nothing that they read is overwritten. No
kernel lets the next one begin early, so that blocks which wait take no place of those which work: what is saved is the
time between the last block of a kernel and the first one of the next, 0.2 to 0.3 us of each launch on an H200
(2026-11-28), 2 to 9% of a network.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

SINCE = 90
"""Compute capability from which kernels can wait (PTX ISA, griddepcontrol)."""
WAIT = 'asm volatile("griddepcontrol.wait;" ::: "memory");'
"""Waits for the launch ahead, where the kernel has begun before its end."""
_STREAM_SERIALIZATION = 6
"""CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION in cuda.h."""
_PROGRAMMATIC = 1
"""CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, and CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, in cuda.h."""


class _Edge(ctypes.Structure):
    """CUgraphEdgeData of cuda.h."""

    _fields_ = (
        ("from_port", ctypes.c_ubyte),
        ("to_port", ctypes.c_ubyte),
        ("type", ctypes.c_ubyte),
        ("reserved", ctypes.c_ubyte * 5),
    )


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute of cuda.h, whose value is a number of 4 bytes."""

    _fields_ = (("id", ctypes.c_uint), ("value", ctypes.c_int * 17))


class _Config(ctypes.Structure):
    """CUlaunchConfig of cuda.h."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint),
    )


_EDGE = _Edge(from_port=_PROGRAMMATIC, type=_PROGRAMMATIC)
"""An edge of a graph to a kernel that waits by itself: it may begin once all blocks of the one ahead have ended."""
_MAY_BEGIN = _Attribute(id=_STREAM_SERIALIZATION, value=(0, 1))


def config(grid: Sequence[int], block: Sequence[int], shared_bytes: int) -> ctypes.Structure:
    """Return how to launch, behind another kernel of its stream, one that waits by itself; the stream is left open."""
    sizes = (ctypes.c_uint * 3)(*grid), (ctypes.c_uint * 3)(*block)
    return _Config(*sizes, shared_bytes, None, ctypes.addressof(_MAY_BEGIN), 1)


def has_edges(driver: Any) -> bool:
    """True for a driver's library whose graphs have such edges: from CUDA 12.3 on."""
    return hasattr(driver, "cuGraphAddDependencies_v2")


def add_edge(driver: Any, graph: Any, before: Any, node: Any) -> int:
    """Have a kernel of a graph, that waits by itself, follow another one; returns the driver's status."""
    between = (ctypes.byref(before), ctypes.byref(node), ctypes.byref(_EDGE))
    return int(driver.cuGraphAddDependencies_v2(graph, *between, ctypes.c_size_t(1)))
