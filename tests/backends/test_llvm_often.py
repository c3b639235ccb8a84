"""Loops tell LLVM how often they run, by which it keeps in registers what they use most."""

import re

import loopwright as lw
from loopwright import te, topi

SCHEDULE = ",".join(
    (
        "lw-lower-te-to-loop",
        "lw-compute-inline{block=T_add}",
        "lw-split{block=T_dense loop=j factors=0,2,16}",
        "lw-split{block=T_dense loop=i factors=0,14}",
        "lw-reorder{block=T_dense loops=i0,j0,k,i1,j1,j2}",
        "lw-vectorize{block=T_dense loop=j2}",
        "lw-unroll{block=T_dense loop=i1}",
        "lw-unroll{block=T_dense loop=j1}",
        "lw-set-scope{block=T_dense scope=local}",
        "lw-reverse-compute-at{block=T_gelu loop=j0}",
        "lw-vectorize{block=T_gelu loop=j2}",
    )
)
"""Tiles of 14 rows x 2 vectors, whose 28 sums leave 4 registers, and behind them loops that have 23 constants."""


def test_sums_are_in_registers_beside_an_epilogue_of_many_constants() -> None:
    data, weight, bias = (te.placeholder(shape) for shape in ((140, 514), (384, 514), (384,)))
    out = topi.nn.gelu(topi.nn.dense(data, weight, bias))
    target = "llvm model=emeraldrapids vector_bytes=64 vector_registers=32 cores=1"
    kernel = lw.SearchTask(out, target=target).build(SCHEDULE)
    (loop,) = [b for b in re.split(r"^\.LBB|\tjne\t", kernel.assembly, flags=re.M) if b.count("vfmadd") == 28]
    assert "(%rsp)" not in loop and "(%rbp)" not in loop


def test_weights_are_said_once_for_loops_of_as_many_trips() -> None:
    a = te.placeholder((6, 5, 5))
    source = lw.SearchTask(topi.transpose(a, (2, 0, 1)), target="llvm cores=1").build("lw-lower-te-to-loop").source
    assert sorted(re.findall(r'"branch_weights", i32 (\d+), i32 1', source)) == ["4", "5"]
    assert source.count("!prof") == 3
