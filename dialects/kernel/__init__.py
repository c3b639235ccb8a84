"""The kernel dialect: one operation per thing the backends print, on flat buffers with simplified addresses.

Plain control flow is `scf.for` and `scf.if`; scalar and vector arithmetic is `arith`, `math`, `vector.broadcast` and
`vector.reduction`; addresses are values of type `index`. This dialect adds what those lack: parallel loops, flat
buffers in a scope, loads and stores with a constant part, a lane stride and a mask, lane masks and prefetches, and
lane by lane the comparisons, conversions and choices that `arith` has for scalars only. Operations that kernels have
hundreds of start as plain operations, past the checks of declared ones, which cost more than all the rest.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from .async_copy import ASYNC_BYTES, AsyncCopyOp, CommitOp, WaitOp
from .control import ParallelOp
from .gpu import THREAD_AXES, BarrierOp, LaunchOp, ShuffleOp, ThreadOp
from .lanes import CONVERSIONS, FLOAT_PREDICATES, INTEGER_PREDICATES, CompareOp, ConvertOp, LanesOp, MaskOp, SelectOp
from .matrix import FragmentLoadOp, MatrixProductOp
from .memory import AllocOp, GatherOp, LoadOp, PrefetchOp, ScatterOp, StoreOp
from .tile import TileLoadOp, TileProductOp
from .types import INDEX, element_of, int_attr, lanes_of, mask_type, vector_of

__all__ = [
    "ASYNC_BYTES",
    "CONVERSIONS",
    "FLOAT_PREDICATES",
    "INDEX",
    "INTEGER_PREDICATES",
    "THREAD_AXES",
    "AllocOp",
    "AsyncCopyOp",
    "BarrierOp",
    "CommitOp",
    "CompareOp",
    "ConvertOp",
    "FragmentLoadOp",
    "GatherOp",
    "LanesOp",
    "LaunchOp",
    "LoadOp",
    "LwKernel",
    "MaskOp",
    "MatrixProductOp",
    "ParallelOp",
    "PrefetchOp",
    "ScatterOp",
    "SelectOp",
    "ShuffleOp",
    "StoreOp",
    "ThreadOp",
    "TileLoadOp",
    "TileProductOp",
    "WaitOp",
    "element_of",
    "int_attr",
    "lanes_of",
    "mask_type",
    "vector_of",
]

LwKernel = Dialect(
    "lw_kernel",
    [
        AllocOp,
        LoadOp,
        StoreOp,
        GatherOp,
        ScatterOp,
        LanesOp,
        MaskOp,
        CompareOp,
        ConvertOp,
        SelectOp,
        PrefetchOp,
        ParallelOp,
        LaunchOp,
        ThreadOp,
        BarrierOp,
        ShuffleOp,
        AsyncCopyOp,
        CommitOp,
        WaitOp,
        FragmentLoadOp,
        MatrixProductOp,
        TileLoadOp,
        TileProductOp,
    ],
    [],
)
