"""Transposes among four neighbouring threads in CUDA C, by warp shuffles."""

from __future__ import annotations

from xdsl.ir import Operation

from ...dialects import kernel
from ..c_family.expression import Expr
from ..c_family.printer import KernelPrinter
from ..c_family.types import bytes_of, element_name
from ..unsupported import UnsupportedError

HELPER = """\
// Transpose words among four neighbouring threads: each gets those of its own number, of all four.
template <typename Vector> __device__ __forceinline__ void transpose_quad(Vector& value) {
    unsigned(&word)[4] = reinterpret_cast<unsigned(&)[4]>(value);
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    const unsigned four = 15u << (lane & 28u);
    const bool odd = lane & 1u, high = lane & 2u;
    const unsigned a = __shfl_xor_sync(four, odd ? word[0] : word[1], 1);
    const unsigned b = __shfl_xor_sync(four, odd ? word[2] : word[3], 1);
    const unsigned c = odd ? a : word[0], d = odd ? word[1] : a, e = odd ? b : word[2], f = odd ? word[3] : b;
    const unsigned g = __shfl_xor_sync(four, high ? c : e, 2);
    const unsigned h = __shfl_xor_sync(four, high ? d : f, 2);
    word[0] = high ? g : c, word[1] = high ? h : d, word[2] = high ? e : g, word[3] = high ? f : h;
}"""
"""Four shuffles, where each thread would take twelve words of others one by one."""
VECTOR_BYTES = 16
"""Bytes of a vector that four threads transpose: a word of 32 bits for each."""


def transpose_quad(p: KernelPrinter, op: Operation) -> None:
    """Print a transpose among four threads, of words of 32 bits."""
    assert isinstance(op, kernel.TransposeQuadOp)
    kind, lanes = element_name(op.value.type), p.lanes(op.value)
    if len(lanes) * bytes_of(kind) != VECTOR_BYTES:
        raise UnsupportedError(f"four threads transpose vectors of {VECTOR_BYTES} bytes, got {op.value.type}")
    name, vector = p.names.fresh(op.value.name_hint or "parts"), p.language.vector_type(kind, len(lanes))
    p.vectors.add((kind, len(lanes)))
    p.vector_names[name] = (kind, len(lanes))
    p.helpers.add("transpose_quad -")
    p.line(f"{vector} {name} = {vector}{{{{{', '.join(lane.text for lane in lanes)}}}}};")
    p.line(f"transpose_quad({name});")
    held = [Expr(p.language.vector_lane(name, kind, len(lanes), lane)) for lane in range(len(lanes))]
    p.define_literal(op.result, held)
