"""Machine code: what ptxas makes of products of warp groups, and of copies under a predicate.

No sum of a warp group is read before it is waited for, whatever is done with it next: ptxas 13.0 and 13.5 move
conversions to 16 bits above the wait in their basic block once 16-bit arithmetic follows; on an H200 a product with a
fused `relu` then had a third of its results wrong, others at each run.
"""

from collections.abc import Callable, Sequence
from functools import partial

import pytest
from machine_code import disassembled, reads_of_sums_in_flight
from pipelined_matmul import CUDA, lower, matmul, tile

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.build import lower_to_kernel
from loopwright.backends.cuda.compile import compile_module

HOPPER = "cuda model=h200"
M, N, K = 4096, 1024, 1024


def relu(made: te.Tensor) -> tuple[Sequence[te.Tensor], te.Tensor]:
    return (), topi.nn.relu(made)


def biased(made: te.Tensor) -> tuple[Sequence[te.Tensor], te.Tensor]:
    bias = te.placeholder((N,), made.dtype, name="bias")
    return (bias,), topi.nn.relu(topi.add(made, bias))


def residual(made: te.Tensor) -> tuple[Sequence[te.Tensor], te.Tensor]:
    before = te.placeholder((M, N), made.dtype, name="before")
    return (before,), topi.add(made, before)


def product(dtype: str, after: Callable[[te.Tensor], tuple[Sequence[te.Tensor], te.Tensor]]) -> list[te.Tensor]:
    a, b = te.placeholder((M, K), dtype, name="a"), te.placeholder((K, N), dtype, name="b")
    others, result = after(topi.cast(topi.matmul(a, b, out_dtype="float32"), dtype))
    return [a, b, *others, result]


@pytest.mark.parametrize("after", [relu, biased, residual])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.few(1)
def test_sums_are_read_after_they_are_waited_for(dtype: str, after: Callable[..., object]) -> None:
    task = lw.SearchTask(lambda: product(dtype, after), target=HOPPER)  # type: ignore[arg-type]
    kernel = lower_to_kernel(task.schedule_module(task.default_schedule), task.target)
    instructions = disassembled(compile_module(kernel).binary)
    assert any("GMMA" in each for each in instructions), task.default_schedule
    assert reads_of_sums_in_flight(instructions) == []


def test_early_reads_are_seen() -> None:
    product, read = "HGMMA.64x64x16.F32 R24, gdesc[UR8].tnspB, R24, gsb0", "F2FP.F16.F32.PACK_AB R14, R55, R54"
    some, all_of_them = "WARPGROUP.DEPBAR.LE gsb0, 0x1", "WARPGROUP.DEPBAR.LE gsb0, 0x0"
    assert reads_of_sums_in_flight([product, some, "MOV R56, R23", all_of_them, read]) == []
    assert reads_of_sums_in_flight([product, some, read, all_of_them]) == [read]


def test_copies_under_a_predicate_share_their_addresses() -> None:
    """In a branch of its own each copy reads the buffer's address from the parameters again."""
    steps = partial(tile, stages=3, registers=0, vector=1, turned=True, depth=16)
    _, kernel = lower(matmul(50, 70, 61), steps, CUDA)
    instructions = disassembled(compile_module(kernel).binary)
    copies = [each for each in instructions if "LDGSTS" in each]
    reads = [each for each in instructions if "LDC" in each]
    assert len(copies) >= 16
    assert len(reads) < len(copies) / 2
