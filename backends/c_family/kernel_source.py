"""Source of a function's kernels, and what launching them takes."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.pixel_walk import Walk
from ..signature import Argument


@dataclass(frozen=True)
class TensorMap:
    """A parameter by which a kernel copies boxes of a dense array: the buffer by number, its elements, and shapes.

    With a `walk`, a box is pixels and channels.
    """

    buffer: int
    element: str
    shape: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int
    walk: Walk | None = None


@dataclass(frozen=True)
class Launch:
    """One kernel to launch: `buffers` are its parameters, arguments first, then workspaces, by number.

    `maps` are parameters ahead of those, which are made on the host of the address of a buffer. One that `counts` keeps
    counters in the loaded program while it runs, so that it runs once at a time there. One that `waits`
    does so, before all else, for the end of the launch ahead of it, and may begin before that.
    """

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    buffers: tuple[int, ...]
    static_shared_bytes: int
    dynamic_shared_bytes: int
    uses_shuffles: bool
    maps: tuple[TensorMap, ...] = ()
    counts: bool = False
    waits: bool = False


@dataclass(frozen=True)
class KernelSource:
    """Source of all kernels of a function; `workspaces` are sizes in bytes of the buffers between launches."""

    name: str
    arguments: tuple[Argument, ...]
    workspaces: tuple[int, ...]
    launches: tuple[Launch, ...]
    source: str
