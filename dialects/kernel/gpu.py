"""GPU kernels: launches of grids, block and thread indices, barriers and warp shuffles."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntAttr, StringAttr, VectorType
from xdsl.ir import Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, NoTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .types import INDEX, lanes_of

CLUSTERS_SINCE = 90
"""Compute capability of the first devices that run blocks of a cluster at once (PTX ISA)."""

THREAD_AXES = tuple(f"{level}.{d}" for level in ("blockIdx", "threadIdx") for d in "xyz")


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """A grid of thread blocks that all run the body: `lw_kernel.launch grid [8, 4, 1] block [128, 1, 1] { ... }`.

    Launches of a function run one after the other. Inside, allocations of scope `shared` belong to a block of threads,
    those of scope `local` to one thread; `lw_kernel.barrier` is reached by all threads of a block or by none.
    `block [128, 1, 1] per_sm 2` asks for registers that are few enough for two blocks on a multiprocessor, `cluster [1,
    8, 1]` for eight blocks along y that run at once, and may wait for each other (`lw_kernel.cluster_barrier`).
    """

    name = "lw_kernel.launch"
    grid = prop_def(ArrayAttr[IntAttr])
    block = prop_def(ArrayAttr[IntAttr])
    per_sm = opt_prop_def(IntAttr)
    cluster = opt_prop_def(ArrayAttr[IntAttr])
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        body: Region,
        per_sm: int = 0,
        cluster: Sequence[int] = (),
    ) -> None:
        super().__init__(
            properties={
                "grid": ArrayAttr([IntAttr(n) for n in grid]),
                "block": ArrayAttr([IntAttr(n) for n in block]),
                "per_sm": IntAttr(per_sm) if per_sm else None,
                "cluster": ArrayAttr([IntAttr(n) for n in cluster]) if cluster else None,
            },
            regions=[body],
        )

    @property
    def grid_size(self) -> tuple[int, int, int]:
        x, y, z = (n.data for n in self.grid)
        return x, y, z

    @property
    def block_size(self) -> tuple[int, int, int]:
        x, y, z = (n.data for n in self.block)
        return x, y, z

    @property
    def blocks_per_sm(self) -> int:
        """Blocks that are to fit a multiprocessor at once; 0 where that is left open."""
        return self.per_sm.data if self.per_sm is not None else 0

    @property
    def cluster_size(self) -> tuple[int, int, int]:
        """Neighbouring blocks that run at once, and may wait for each other."""
        if self.cluster is None:
            return 1, 1, 1
        x, y, z = (n.data for n in self.cluster)
        return x, y, z

    def verify_(self) -> None:
        if self.blocks_per_sm < 0:
            raise VerifyException("lw_kernel.launch has at least one block a multiprocessor")
        for sizes in (self.grid, self.block):
            if len(sizes) != 3 or any(n.data < 1 for n in sizes):
                raise VerifyException("lw_kernel.launch has three positive sizes for its grid and for its block")
        if self.cluster is not None:
            clusters = [n.data for n in self.cluster]
            if len(clusters) != 3 or any(n < 1 or all_ % n for n, all_ in zip(clusters, self.grid_size, strict=True)):
                raise VerifyException("clusters of lw_kernel.launch divide its grid")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" grid {list(self.grid_size)} block {list(self.block_size)} ")
        if self.per_sm is not None:
            printer.print_string(f"per_sm {self.blocks_per_sm} ")
        if self.cluster is not None:
            printer.print_string(f"cluster {list(self.cluster_size)} ")
        printer.print_region(self.body, print_empty_block=False)

    @classmethod
    def parse(cls, parser: Parser) -> LaunchOp:
        parser.parse_keyword("grid")
        grid = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        parser.parse_keyword("block")
        block = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        per_sm = parser.parse_integer() if parser.parse_optional_keyword("per_sm") else 0
        clustered = parser.parse_optional_keyword("cluster") is not None
        cluster = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer) if clustered else ()
        return cls(grid, block, parser.parse_region(), per_sm, cluster)


@irdl_op_definition
class ThreadOp(IRDLOperation):
    """A block or thread index: `%t = lw_kernel.thread "threadIdx.x" : index`."""

    name = "lw_kernel.thread"
    axis = prop_def(StringAttr)
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "$axis `:` type($result) attr-dict"

    def __init__(self, axis: str) -> None:
        super().__init__(properties={"axis": StringAttr(axis)}, result_types=[INDEX])

    def verify_(self) -> None:
        if self.axis.data not in THREAD_AXES:
            raise VerifyException(f"'{self.axis.data}' is none of {', '.join(THREAD_AXES)}")


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """A barrier: all threads of a block wait, and see each other's writes to shared memory: `lw_kernel.barrier`."""

    name = "lw_kernel.barrier"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class ClusterBarrierOp(IRDLOperation):
    """A barrier of all threads of a cluster, which see each other's writes behind it: `lw_kernel.cluster_barrier`."""

    name = "lw_kernel.cluster_barrier"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class ClusterMeetOp(IRDLOperation):
    """All threads of a cluster wait for each other, and that alone: `lw_kernel.cluster_meet`.

    Behind it the copy engine may write what they have read. To make writes seen, as a barrier does, takes an H200 some
    500 cycles each time.
    """

    name = "lw_kernel.cluster_meet"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """A warp shuffle: the value of the lane whose number differs by `distance`'s bits: `lw_kernel.shuffle %a, 16 :
    f32`.

    All threads of a warp take part.
    """

    name = "lw_kernel.shuffle"
    value = operand_def()
    distance = prop_def(IntAttr)
    result = result_def()

    def __init__(self, value: SSAValue, distance: int) -> None:
        super().__init__(operands=[value], properties={"distance": IntAttr(distance)}, result_types=[value.type])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(f", {self.distance.data} : ")
        printer.print_attribute(self.value.type)

    @classmethod
    def parse(cls, parser: Parser) -> ShuffleOp:
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        distance = parser.parse_integer()
        parser.parse_punctuation(":")
        return cls(parser.resolve_operand(operand, parser.parse_type()), distance)


QUAD = 4
"""Neighbouring threads of a warp that transpose a vector together, the first of which is a multiple of four."""


@irdl_op_definition
class TransposeQuadOp(IRDLOperation):
    """A transpose among four neighbouring threads: `%t = lw_kernel.transpose_quad %v : vector<8xf16>`.

    Each has a vector of four parts. Thread t gets part t of all four threads' vectors, in the order of the threads.
    All four take part.
    """

    name = "lw_kernel.transpose_quad"
    value = operand_def(VectorType)
    result = result_def(VectorType)

    def __init__(self, value: SSAValue) -> None:
        super().__init__(operands=[value], result_types=[value.type])

    def verify_(self) -> None:
        if self.value.type != self.result.type or lanes_of(self.value.type) % QUAD:
            raise VerifyException(f"{self.value.type} is not made of {QUAD} parts of one type")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.value)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)

    @classmethod
    def parse(cls, parser: Parser) -> TransposeQuadOp:
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        return cls(parser.resolve_operand(operand, parser.parse_type()))
