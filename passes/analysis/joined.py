"""Nests that join what the blocks of threads of the launch before have written, in that launch: which may."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from xdsl.ir import Operation

from ...dialects.loop import ForOp, is_bound, loops_in


def launch_sizes(nests: Iterable[Operation]) -> dict[str, int]:
    """The blocks and threads of a launch on each axis that a loop of its nests is bound to."""
    sizes: dict[str, int] = {}
    for nest in nests:
        for loop in [nest, *loops_in(nest)]:
            if isinstance(loop, ForOp) and is_bound(loop):
                sizes[loop.loop_kind] = max(loop.size, sizes.get(loop.loop_kind, 1))
    return sizes


MOST_IN_CLUSTER = 8
"""Blocks of a cluster on any device that has them (CUDA C++ Programming Guide, thread block clusters)."""


def arriving_axes(before: Mapping[str, int], joining: Mapping[str, int], cluster: str) -> tuple[str, ...]:
    """The axes of blocks of a launch that a nest which joins it has no loop on, or that of clusters: blocks arrive."""
    if cluster:
        return (cluster,)
    kinds = sorted(kind for kind in before if kind.startswith("blockIdx"))
    return tuple(kind for kind in kinds if before[kind] > 1 and joining.get(kind, 1) == 1)


def join_problem(before: Mapping[str, int], joining: Mapping[str, int], cluster: str) -> str:
    """Say why a nest with loops on some axes cannot be part of a launch with others; nothing where it can.

    Blocks along the axis `cluster`, if one is named, wait for each other, and all of them run the nest.
    """
    arriving = arriving_axes(before, joining, cluster)
    if cluster and not 2 <= before.get(cluster, 1) <= MOST_IN_CLUSTER:
        return (
            f"a cluster has 2 to {MOST_IN_CLUSTER} blocks, the launch before has {before.get(cluster, 1)} on {cluster}"
        )
    if prod(before[kind] for kind in arriving) < 2:
        return "the launch before must have an axis of blocks that the nest has no loop on, along which they arrive"
    for kind, size in sorted(joining.items()):
        there = before.get(kind, 1)
        if kind.startswith("blockIdx") and size != there:
            return f"the launch before has {there} blocks on {kind}, and the nest {size}"
        if kind.startswith("threadIdx") and size > there:
            return f"the launch before has {there} threads on {kind}, and the nest {size}"
    return ""
