"""The kernel dialect: one operation per thing the backends print, on flat buffers with simplified addresses.

Plain control flow is `scf.for` and `scf.if`; scalar and vector arithmetic is `arith`, `math`, `vector.broadcast` and
`vector.reduction`; addresses are values of type `index`. This dialect adds what those lack: parallel loops, flat
buffers in a scope, loads and stores with a constant part, a lane stride and a mask, lane masks and prefetches, and
lane by lane the comparisons, conversions and choices that `arith` has for scalars only. Operations that kernels have
hundreds of start as plain operations, past the checks of declared ones, which cost more than all the rest.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from .arrival import COUNTERS, ArriveOp, counters_type
from .async_copy import ASYNC_BYTES, AsyncCopyOp, CommitOp, WaitOp
from .bulk_copy import (
    BLOCK_AXES,
    BULK_COPIES_SINCE,
    MOST_BOX,
    BarrierAwaitOp,
    BarrierExpectOp,
    BarrierInitOp,
    BulkCopyOp,
    array_problem,
    box_problem,
    walk_problem,
)
from .control import UNROLL, ParallelOp
from .gpu import (
    CLUSTERS_SINCE,
    QUAD,
    THREAD_AXES,
    BarrierOp,
    ClusterBarrierOp,
    ClusterMeetOp,
    LaunchOp,
    ShuffleOp,
    ThreadOp,
    TransposeQuadOp,
)
from .lanes import CONVERSIONS, FLOAT_PREDICATES, INTEGER_PREDICATES, CompareOp, ConvertOp, LanesOp, MaskOp, SelectOp
from .matrix import FragmentLoadOp, FragmentPackOp, MatrixProductOp
from .memory import (
    BACKWARDS,
    SHARED_ALIGNMENT,
    AllocOp,
    GatherOp,
    LoadOp,
    PrefetchOp,
    ScatterOp,
    StoreOp,
    shared_offsets,
)
from .tile import TileLoadOp, TileProductOp, TileStartOp
from .types import INDEX, element_of, int_attr, lanes_of, mask_type, numbers_of, vector_of
from .warp_group import (
    ATOM_ROWS,
    ProxyFenceOp,
    SharedMatrix,
    WarpGroupCommitOp,
    WarpGroupFenceOp,
    WarpGroupProductOp,
    WarpGroupWaitOp,
)

__all__ = [
    "ASYNC_BYTES",
    "ATOM_ROWS",
    "BACKWARDS",
    "BLOCK_AXES",
    "BULK_COPIES_SINCE",
    "CLUSTERS_SINCE",
    "CONVERSIONS",
    "COUNTERS",
    "FLOAT_PREDICATES",
    "INDEX",
    "INTEGER_PREDICATES",
    "MOST_BOX",
    "QUAD",
    "SHARED_ALIGNMENT",
    "THREAD_AXES",
    "UNROLL",
    "AllocOp",
    "ArriveOp",
    "AsyncCopyOp",
    "BarrierAwaitOp",
    "BarrierExpectOp",
    "BarrierInitOp",
    "BarrierOp",
    "BulkCopyOp",
    "ClusterBarrierOp",
    "ClusterMeetOp",
    "CommitOp",
    "CompareOp",
    "ConvertOp",
    "FragmentLoadOp",
    "FragmentPackOp",
    "GatherOp",
    "LanesOp",
    "LaunchOp",
    "LoadOp",
    "LwKernel",
    "MaskOp",
    "MatrixProductOp",
    "ParallelOp",
    "PrefetchOp",
    "ProxyFenceOp",
    "ScatterOp",
    "SelectOp",
    "SharedMatrix",
    "ShuffleOp",
    "StoreOp",
    "ThreadOp",
    "TileLoadOp",
    "TileProductOp",
    "TileStartOp",
    "TransposeQuadOp",
    "WaitOp",
    "WarpGroupCommitOp",
    "WarpGroupFenceOp",
    "WarpGroupProductOp",
    "WarpGroupWaitOp",
    "array_problem",
    "box_problem",
    "counters_type",
    "element_of",
    "int_attr",
    "lanes_of",
    "mask_type",
    "numbers_of",
    "shared_offsets",
    "vector_of",
    "walk_problem",
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
        ClusterBarrierOp,
        ClusterMeetOp,
        ArriveOp,
        ShuffleOp,
        TransposeQuadOp,
        AsyncCopyOp,
        CommitOp,
        WaitOp,
        FragmentLoadOp,
        FragmentPackOp,
        MatrixProductOp,
        WarpGroupProductOp,
        WarpGroupFenceOp,
        WarpGroupCommitOp,
        WarpGroupWaitOp,
        ProxyFenceOp,
        BulkCopyOp,
        BarrierInitOp,
        BarrierExpectOp,
        BarrierAwaitOp,
        TileLoadOp,
        TileProductOp,
        TileStartOp,
    ],
    [],
)
