"""Operations that CUDA has its own forms for: exchanges in a warp, asynchronous copies, dot products, matrices."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith
from xdsl.ir import Operation

from ...dialects import kernel
from ..c_family.expression import ATOM, Expr, cast_to, joined_reads
from ..c_family.printer import Handler, KernelPrinter
from ..c_family.types import element_name
from . import dot
from .arrival import ARRIVALS
from .async_copy import ASYNC_COPIES
from .bulk_copy import BULK_COPIES
from .matrix import MATRICES
from .ptx import ptx
from .remainder import remainder
from .transpose import transpose_quad
from .warp_group import WARP_GROUPS


def own_operations(compute_capability: int) -> Mapping[type[Operation], Handler]:
    """Return what prints them for a compute capability, such as 90 for sm_90."""
    dots = dot.DOT_PRODUCTS if compute_capability >= dot.OLDEST else {}
    own: dict[type[Operation], Handler] = {
        kernel.PtxOp: ptx,
        kernel.ShuffleOp: shuffle,
        kernel.TransposeQuadOp: transpose_quad,
        arith.RemUIOp: remainder,
    }
    return {
        **own,
        **ARRIVALS,
        **ASYNC_COPIES,
        **MATRICES,
        **WARP_GROUPS,
        **BULK_COPIES,
        **dots,
    }


def shuffle(p: KernelPrinter, op: Operation) -> None:
    """Print a warp shuffle."""
    assert isinstance(op, kernel.ShuffleOp)
    kind = element_name(op.value.type)
    mask = (
        "0xffffffffu" if p.threads % 32 == 0 else f"0x{(1 << p.threads) - 1:x}u" if p.threads < 32 else "__activemask()"
    )
    lanes = [
        Expr(f"__shfl_xor_sync({mask}, {lane.text}, {op.distance.data})", ATOM, joined_reads(lane))
        for lane in p.lanes(op.value)
    ]
    if kind in ("i1", "i8", "i16"):
        lanes = [cast_to(p.type_of(kind), lane) for lane in lanes]
    hint = op.result.name_hint or "other"
    p.define_literal(op.result, [p.variable(kind, hint, lane) for lane in lanes])
