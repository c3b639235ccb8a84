"""The loop dialect: named loops around blocks on buffers, the only level that schedule primitives rewrite.

What a block computes never changes while the loops around it do: a block has iterators of its own, each bound to an
expression of the loops around it, and its body reads and writes through the iterators only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    opt_region_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .attributes import (
    AxesAttr,
    Axis,
    IndicesAttr,
    format_conditions,
    format_where,
    parse_conditions,
    parse_optional_where,
)
from .buffers import SCOPES as SCOPES
from .buffers import AllocOp as AllocOp
from .buffers import buffer_shape as buffer_shape
from .buffers import buffer_type as buffer_type
from .buffers import element_of_buffer as element_of_buffer
from .buffers import scope_of as scope_of
from .combiner import NAMED
from .index import IndexExpr
from .kernel.async_copy import CommitOp, WaitOp
from .kernel.warp_group import ProxyFenceOp, WarpGroupCommitOp, WarpGroupFenceOp, WarpGroupWaitOp
from .labels import LabelledApartInFunction, LabelledApartOnPath
from .layout import LayoutAttr
from .loop_guards import IfOp as IfOp
from .loop_guards import VersionsOp as VersionsOp
from .loop_header import format_iterators, parse_iterators, parse_writes, print_writes
from .loop_lanes import LanesAttr, verify_lanes
from .loop_load import LoadOp as LoadOp
from .loop_steps import ArrivalsOp as ArrivalsOp
from .loop_steps import AtOp as AtOp
from .loop_steps import BarrierOp as BarrierOp
from .loop_steps import JoinOp as JoinOp
from .loop_steps import WrittenAttr, names_around, parse_optional_written, verify_ends, verify_written
from .names import check_axis_name, check_name
from .te import YieldOp, parse_combiner, print_combiner, verify_axes, verify_body

SERIAL = "serial"
CPU_KINDS = ("serial", "parallel", "vectorized", "unrolled")
THREAD_KINDS = tuple(f"{level}.{d}" for level in ("blockIdx", "threadIdx") for d in "xyz")
KINDS = (*CPU_KINDS, *THREAD_KINDS, "vthread")


KernelStep = CommitOp | WaitOp | ProxyFenceOp | WarpGroupFenceOp | WarpGroupCommitOp | WarpGroupWaitOp
"""Operations of kernels that lowering puts into loops as they are."""


@irdl_op_definition
class ForOp(IRDLOperation):
    """A named loop over `[0, extent)`: `lw_loop.for i in 64 parallel { ... }`.

    On its way to a kernel it may be written in another way than its kind says, and may end before its extent, at the
    first iteration in which a condition fails: `lw_loop.for i in 4 as unrolled`, `lw_loop.for i in 64 while (29 - i >=
    0)`.
    """

    name = "lw_loop.for"
    label = prop_def(StringAttr)
    extent = prop_def(IntAttr)
    kind = prop_def(StringAttr)
    written = opt_prop_def(WrittenAttr)
    ends = opt_prop_def(IndicesAttr)
    annotations = opt_prop_def(DictionaryAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), RecursiveMemoryEffect(), LabelledApartOnPath())

    def __init__(
        self,
        label: str,
        extent: int,
        body: Region,
        kind: str = SERIAL,
        annotations: dict[str, Attribute] | None = None,
        written: WrittenAttr | None = None,
        ends: IndicesAttr | None = None,
    ) -> None:
        properties: dict[str, Attribute] = {
            "label": StringAttr(label),
            "extent": IntAttr(extent),
            "kind": StringAttr(kind),
        }
        if written is not None:
            properties["written"] = written
        if ends is not None:
            properties["ends"] = ends
        if annotations:
            properties["annotations"] = DictionaryAttr(annotations)
        Operation.__init__(self, properties=properties, regions=[body])  # schedules make hundreds of loops

    @property
    def loop_name(self) -> str:
        return self.label.data

    @property
    def size(self) -> int:
        return int(self.extent.data)

    @property
    def loop_kind(self) -> str:
        return self.kind.data

    @property
    def notes(self) -> dict[str, Attribute]:
        return dict(self.annotations.data) if self.annotations is not None else {}

    def annotate(self, key: str, value: Attribute) -> None:
        """Set one annotation, keeping the others."""
        self.annotations = DictionaryAttr({**self.notes, key: value})

    def verify_(self) -> None:
        check_axis_name("a loop", self.loop_name)
        if self.size < 1:
            raise VerifyException(f"loop '{self.loop_name}' has extent {self.size}, at least 1 is needed")
        if self.loop_kind not in KINDS:
            raise VerifyException(f"loop '{self.loop_name}' has kind '{self.loop_kind}', known: {', '.join(KINDS)}")
        if self.written is not None:
            verify_written(self, self.written)
        if self.ends is not None:
            verify_ends(self, self.ends)
        for op in self.body.block.ops:
            placed = isinstance(op, AllocOp) and op.layout is not None
            steps = BarrierOp | AtOp | ArrivalsOp | IfOp | VersionsOp
            if not placed and not isinstance(op, ForOp | BlockOp | steps | KernelStep):
                raise VerifyException(f"loop '{self.loop_name}' holds '{op.name}', only loops and blocks belong there")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.loop_name} in {self.size}")
        if self.loop_kind != SERIAL:
            printer.print_string(f" {self.loop_kind}")
        if self.written is not None:
            printer.print_string(f" {self.written.data}")
        if self.ends is not None:
            printer.print_string(f" while {format_conditions(self.ends.data)}")
        if self.annotations is not None:
            printer.print_string(" annotated ")
            printer.print_attribute(self.annotations)
        printer.print_string(" ")
        printer.print_region(self.body, print_empty_block=False)

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        label = parser.parse_identifier()
        parser.parse_keyword("in")
        extent = parser.parse_integer(allow_boolean=False, allow_negative=False)
        kind = parser.parse_optional_keyword_in(KINDS) or SERIAL
        written = parse_optional_written(parser)
        ends = IndicesAttr(parse_conditions(parser)) if parser.parse_optional_keyword("while") else None
        notes: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("annotated"):
            notes = parser.parse_optional_dictionary_attr_dict()
        return cls(label, extent, parser.parse_region(), kind, notes, written, ends)


@irdl_op_definition
class BlockOp(IRDLOperation):
    """One statement with iterators of its own:

    `lw_loop.block c (i in 64 = i0 * 16 + i1, j in 64 = j, reduce k in 128 = k) where (63 - i0 * 16 - i1 >= 0)
       writes %c[i, j] : memref<64x64xf32> add { ... lw_te.yield %p : f32 }`

    `where` is over the loops; the body and the write indices are over the iterators. A reduction initialises its
    element in the instance whose reduce iterators are all zero, unless `no_init` says a block before it does.

    In a loop whose iterations are lanes, lowering says which elements these write (`writes %c[i, j] as vector`), and
    which parts of the predicate they answer each for itself: `where (...) masked (63 - j0 * 16 - j1 >= 0)`.
    """

    name = "lw_loop.block"
    label = prop_def(StringAttr)
    iterators = prop_def(AxesAttr)
    bindings = prop_def(IndicesAttr)
    where = opt_prop_def(IndicesAttr)
    masked = opt_prop_def(IndicesAttr)
    outputs = var_operand_def(MemRefType)
    writes = prop_def(ArrayAttr[IndicesAttr])
    lanes = opt_prop_def(ArrayAttr[LanesAttr])
    combiner = prop_def(StringAttr)
    identity = opt_prop_def(ArrayAttr)
    no_init = opt_prop_def(UnitAttr)
    annotations = opt_prop_def(DictionaryAttr)
    body = region_def("single_block")
    combine = opt_region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect(), LabelledApartInFunction())

    def __init__(
        self,
        label: str,
        iterators: Sequence[Axis],
        bindings: Sequence[IndexExpr],
        outputs: Sequence[SSAValue],
        writes: Sequence[Sequence[IndexExpr]],
        body: Region,
        combiner: str = "none",
        where: Sequence[IndexExpr] = (),
        identity: Sequence[Attribute] | None = None,
        combine: Region | None = None,
        no_init: bool = False,
        annotations: dict[str, Attribute] | None = None,
        lanes: Sequence[LanesAttr] = (),
        masked: Sequence[IndexExpr] = (),
    ) -> None:
        super().__init__(
            operands=[outputs],
            properties={
                "label": StringAttr(label),
                "iterators": AxesAttr(tuple(iterators)),
                "bindings": IndicesAttr(tuple(bindings)),
                "where": IndicesAttr(tuple(where)) if where else None,
                "masked": IndicesAttr(tuple(masked)) if masked else None,
                "writes": ArrayAttr([IndicesAttr(tuple(w)) for w in writes]),
                "lanes": ArrayAttr(lanes) if lanes else None,
                "combiner": StringAttr(combiner),
                "identity": ArrayAttr(identity) if identity is not None else None,
                "no_init": UnitAttr() if no_init else None,
                "annotations": DictionaryAttr(annotations) if annotations else None,
            },
            regions=[body, combine],
        )

    @property
    def block_name(self) -> str:
        return self.label.data

    @property
    def notes(self) -> dict[str, Attribute]:
        return dict(self.annotations.data) if self.annotations is not None else {}

    @property
    def axes(self) -> tuple[Axis, ...]:
        return self.iterators.data

    @property
    def bound(self) -> dict[str, IndexExpr]:
        """Each iterator's expression over the loops around the block."""
        return {a.name: e for a, e in zip(self.iterators.data, self.bindings.data, strict=True)}

    @property
    def conditions(self) -> tuple[IndexExpr, ...]:
        return self.where.data if self.where is not None else ()

    @property
    def masks(self) -> tuple[IndexExpr, ...]:
        """The parts of the predicate that lanes answer each for itself."""
        return self.masked.data if self.masked is not None else ()

    @property
    def write_lanes(self) -> tuple[LanesAttr | None, ...]:
        """For each output, which elements of it lanes write; None where there are none, or it is not decided."""
        return self.lanes.data if self.lanes is not None else (None,) * len(self.outputs)

    @property
    def is_reduction(self) -> bool:
        return self.combiner.data != "none"

    @property
    def has_init(self) -> bool:
        return self.is_reduction and self.no_init is None

    @property
    def write_indices(self) -> tuple[tuple[IndexExpr, ...], ...]:
        return tuple(w.data for w in self.writes.data)

    @property
    def loads(self) -> tuple[LoadOp, ...]:
        return tuple(op for op in self.body.block.ops if isinstance(op, LoadOp))

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        last = self.body.block.last_op
        assert isinstance(last, YieldOp)
        return tuple(last.values)

    @property
    def enclosing_loops(self) -> list[ForOp]:
        """The loops around the block, outermost first."""
        loops: list[ForOp] = []
        block = self.parent
        while block is not None and block.parent is not None:
            parent = block.parent.parent
            if parent is None or type(parent) not in _NESTS:
                break
            if type(parent) is ForOp:
                loops.append(parent)
            block = parent.parent
        loops.reverse()
        return loops

    def rebind(self, bindings: Sequence[IndexExpr], where: Sequence[IndexExpr]) -> None:
        """Replace the iterators' expressions and the predicate."""
        self.bindings = IndicesAttr(tuple(bindings))
        self.where = IndicesAttr(tuple(where)) if where else None

    def verify_(self) -> None:
        name = self.block_name
        check_name("a block", name)
        verify_axes(f"block '{name}'", self.axes)
        if len(self.bindings.data) != len(self.axes):
            raise VerifyException(f"block '{name}': {len(self.axes)} iterators, {len(self.bindings.data)} bindings")
        if len(self.writes) != len(self.outputs):
            raise VerifyException(f"block '{name}': {len(self.outputs)} outputs, {len(self.writes)} lists of indices")
        for output, write in zip(self.outputs, self.writes.data, strict=True):
            assert isinstance(output.type, MemRefType)
            if len(write.data) != output.type.get_num_dims():
                raise VerifyException(f"block '{name}': {len(write.data)} indices for {output.type}")
        combiner = self.combiner.data
        if combiner not in (*NAMED, "custom", "none"):
            raise VerifyException(f"block '{name}': unknown combiner '{combiner}'")
        if (combiner == "custom") != (self.combine is not None):
            raise VerifyException(f"block '{name}': a custom combiner has a region, others do not")
        iterators = {a.name for a in self.axes}
        for expr in (e for w in self.write_indices for e in w):
            if missing := expr.axes() - iterators:
                raise VerifyException(f"block '{name}': writes at '{min(missing)}', which is no iterator of it")
        loops = names_around(self)
        for expr in (*self.bindings.data, *self.conditions):
            if missing := expr.axes() - loops:
                raise VerifyException(f"block '{name}': bound to '{min(missing)}', which is no loop around it")
        self._verify_lanes()
        last = self.body.block.last_op
        if not isinstance(last, YieldOp) or len(last.values) != len(self.outputs):
            raise VerifyException(f"block '{name}': the body yields one value per output")
        verify_body(f"block '{name}'", self.body.block, self.axes, [o.type for o in self.outputs])

    def _verify_lanes(self) -> None:
        for lanes in self.lanes.data if self.lanes is not None else ():
            verify_lanes(self, f"what block '{self.block_name}' writes", lanes)
        if self.lanes is not None and len(self.lanes) != len(self.outputs):
            outputs, decided = len(self.outputs), len(self.lanes)
            raise VerifyException(f"block '{self.block_name}': {outputs} outputs, lanes of {decided}")
        if self.masked is not None and (self.lanes is None or not set(self.masks) <= set(self.conditions)):
            raise VerifyException(f"block '{self.block_name}': lanes are masked by parts of its predicate")

    def print(self, printer: Printer) -> None:
        iterators = format_iterators(self.axes, self.bindings.data)
        printer.print_string(f" {self.block_name} {iterators}{format_where(self.conditions)}")
        if self.masked is not None:
            printer.print_string(f" masked {format_conditions(self.masks)}")
        if self.annotations is not None:
            printer.print_string(" annotated ")
            printer.print_attribute(self.annotations)
        printer.print_string(" writes ")
        print_writes(printer, self.outputs, self.write_indices, self.write_lanes)
        print_combiner(printer, self.combiner.data, self.identity)
        printer.print_string(" no_init " if self.no_init is not None else " ")
        printer.print_region(self.body)
        if self.combine is not None:
            printer.print_string(" combine ")
            printer.print_region(self.combine)

    @classmethod
    def parse(cls, parser: Parser) -> BlockOp:
        label = parser.parse_identifier()
        iterators = parse_iterators(parser)
        where = parse_optional_where(parser)
        masked = parse_conditions(parser) if parser.parse_optional_keyword("masked") else ()
        notes = parser.parse_optional_dictionary_attr_dict() if parser.parse_optional_keyword("annotated") else {}
        parser.parse_keyword("writes")
        writes = parse_writes(parser)
        combiner, identity = parse_combiner(parser)
        no_init = parser.parse_optional_keyword("no_init") is not None
        body = parser.parse_region()
        combine = parser.parse_region() if parser.parse_optional_keyword("combine") else None
        return cls(
            label,
            [axis for axis, _ in iterators],
            [binding for _, binding in iterators],
            [buffer for buffer, _, _ in writes],
            [indices for _, indices, _ in writes],
            body,
            combiner,
            where.data if where is not None else (),
            identity,
            combine,
            no_init,
            notes,
            [lanes for _, _, lanes in writes if lanes is not None],
            masked,
        )


_NESTS = frozenset((ForOp, AtOp, IfOp, VersionsOp))
"""Operations that hold loops and blocks, compared as types: `isinstance` asks an abstract class, and is slower."""


def blocks_in(op: Operation) -> Iterator[BlockOp]:
    """Every block under `op`, in program order."""
    waiting = [op]
    while waiting:
        current = waiting.pop()
        if type(current) is BlockOp and current is not op:
            yield current
            continue
        for region in reversed(current.regions):
            block = region.last_block
            while block is not None:
                child = block.last_op
                while child is not None:
                    if child.regions:
                        waiting.append(child)
                    child = child.prev_op
                block = block.prev_block


def statements(op: ForOp | AtOp) -> list[ForOp | BlockOp]:
    """The loops and blocks directly in a loop, in order."""
    return [child for child in op.body.block.ops if isinstance(child, ForOp | BlockOp)]


def is_bound(loop: ForOp) -> bool:
    """True for a loop whose iterations are the blocks or threads of a launch along one axis."""
    return loop.loop_kind in THREAD_KINDS


def is_thread_kind(kind: str) -> bool:
    """True for the loop kinds of a GPU: threads, and virtual ones."""
    return kind in THREAD_KINDS or kind == "vthread"


def loops_in(op: Operation) -> Iterator[ForOp]:
    """Every loop under `op`, in program order, outer before inner."""
    for child in nested_in(op):
        if type(child) is ForOp:
            yield child


def nested_in(op: Operation) -> Iterator[Operation]:
    """Every operation under `op` but for those in blocks, in program order, outer before inner."""
    ends: list[Operation] = []
    current = _first_in(op)
    while current is not None or ends:
        if current is None:
            current = ends.pop().next_op
            continue
        yield current
        inner = _first_in(current) if type(current) in _NESTS else None
        if inner is None:
            current = current.next_op
        else:
            ends.append(current)
            current = inner


def _first_in(op: Operation) -> Operation | None:
    """The first operation of the first region, the only one of nests and of functions."""
    block = op.regions[0].first_block if op.regions else None
    return block.first_op if block is not None else None


LwLoop = Dialect(
    "lw_loop",
    [ForOp, BlockOp, LoadOp, AllocOp, BarrierOp, ArrivalsOp, AtOp, JoinOp, IfOp, VersionsOp],
    [LayoutAttr, WrittenAttr, LanesAttr],
)
