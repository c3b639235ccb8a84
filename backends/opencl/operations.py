"""Operations that OpenCL has its own forms for: shuffles of a sub-group."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation

from ...dialects import kernel
from ..c_family.expression import Expr, joined_reads
from ..c_family.printer import Handler, KernelPrinter
from ..c_family.types import element_name


def shuffle(p: KernelPrinter, op: Operation) -> None:
    """Print a shuffle of a sub-group (a warp)."""
    assert isinstance(op, kernel.ShuffleOp)
    p.helpers.add("shuffle i32")
    kind = element_name(op.value.type)
    hint = op.result.name_hint or "other"
    texts = [f"sub_group_shuffle_xor({lane.text}, {op.distance.data}u)" for lane in p.lanes(op.value)]
    reads = [joined_reads(lane) for lane in p.lanes(op.value)]
    lanes = [p.variable(kind, hint, Expr(t, reads=r)) for t, r in zip(texts, reads, strict=True)]
    p.define_literal(op.result, lanes)


OWN_OPERATIONS: Mapping[type[Operation], Handler] = {kernel.ShuffleOp: shuffle}
