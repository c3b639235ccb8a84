"""Arrivals of thread blocks in the interpreter of launches: who is last, what it may read, what counters come to."""

import numpy as np
import pytest
from gpu_programs import parse
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from loopwright.dialects.interpret import launch as launches
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.loop import InterpretationError

PARTS, TILES, THREADS = 4, 3, 8
X = np.arange(PARTS * TILES * THREADS, dtype=np.float32)
SUM = """
      scf.for %k = %c0 to %parts step %c1 {
        %p = arith.muli %k, %all : index
        %q = arith.addi %p, %at : index
        %v = lw_kernel.load %w[%q] : memref<96xf32> -> f32
        %s = lw_kernel.load %out[%at] : memref<24xf32> -> f32
        %n = arith.addf %s, %v : f32
        lw_kernel.store %n, %out[%at] : f32, memref<24xf32>
      }"""

WRITES_ITS_PART = """\
        %tile = lw_kernel.thread "blockIdx.x" : index
        %part = lw_kernel.thread "blockIdx.y" : index
        %t = lw_kernel.thread "threadIdx.x" : index
        %a = arith.muli %tile, %threads : index
        %at = arith.addi %a, %t : index
        %b = arith.muli %part, %all : index
        %own = arith.addi %b, %at : index
        %x = lw_kernel.load %in[%own] : memref<96xf32> -> f32
        lw_kernel.store %x, %w[%own] : f32, memref<96xf32>
"""
"""The places of a thread, and the store of its element of what its block adds, which others read."""


def program(inside: str, behind: str = "", before: str = "", counter: str = "%tile", parts: int = PARTS) -> ModuleOp:
    """Blocks write their parts, arrive, and the last of each tile runs what is `inside`."""
    return parse(f"""
    func.func @f(%in : memref<96xf32>, %out : memref<24xf32> {{lw.output}}) {{
      %w = lw_kernel.alloc "w" : memref<96xf32>
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %parts = arith.constant {PARTS} : index
      %threads = arith.constant {THREADS} : index
      %all = arith.constant {TILES * THREADS} : index
      %zero = arith.constant 0.0 : f32
      lw_kernel.launch grid [{TILES}, {PARTS}, 1] block [{THREADS}, 1, 1] {{
        %counters = lw_kernel.alloc "arrived" : memref<{TILES}xi32, "counters">
{WRITES_ITS_PART}        {before}
        %last = lw_kernel.arrive %counters[{counter}] of {parts} : memref<{TILES}xi32, "counters">
        scf.if %last {{
          lw_kernel.store %zero, %out[%at] : f32, memref<24xf32>
          {inside}
        }}
        {behind}
      }}
      func.return
    }}""")


def clustered(
    read: str, wait: str = "lw_kernel.cluster_barrier", cluster: str = f"cluster [1, {PARTS}, 1]"
) -> ModuleOp:
    """Blocks write their parts, wait for those of their tile, and copy what the next block along y wrote."""
    text = f"""
    func.func @f(%in : memref<96xf32>, %out : memref<96xf32> {{lw.output}}) {{
      %w = lw_kernel.alloc "w" : memref<96xf32>
      %c1 = arith.constant 1 : index
      %parts = arith.constant {PARTS} : index
      %threads = arith.constant {THREADS} : index
      %all = arith.constant {TILES * THREADS} : index
      lw_kernel.launch grid [{TILES}, {PARTS}, 1] block [{THREADS}, 1, 1] {cluster} {{
{WRITES_ITS_PART}        %first = arith.cmpi slt, %t, %c1 : index
        {wait}
        %n = arith.addi %part, %c1 : index
        %next = arith.remui %n, %parts : index
        %d = arith.muli %next, %all : index
        %e = arith.addi %d, {read} : index
        %y = lw_kernel.load %w[%e] : memref<96xf32> -> f32
        lw_kernel.store %y, %out[%own] : f32, memref<96xf32>
      }}
      func.return
    }}"""
    return parse(text)


def refusal(module: ModuleOp) -> str:
    with pytest.raises(InterpretationError) as caught:
        run_kernel(module, [X])
    return str(caught.value)


@pytest.mark.parametrize("at_once", [1, 5, 100])
def test_the_last_block_of_a_tile_sees_all_parts_in_any_order(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "MOST_THREADS", at_once * THREADS)
    module, expected = program(SUM), X.reshape(PARTS, -1).sum(axis=0)
    for order in range(6):
        (found,) = run_kernel(module, [X], order)
        np.testing.assert_array_equal(found, expected)


def test_blocks_run_in_several_orders() -> None:
    """Who comes last is seen in what it writes."""
    module = program("""
          %mine = arith.index_cast %part : index to i32
          %m = arith.sitofp %mine : i32 to f32
          lw_kernel.store %m, %out[%at] : f32, memref<24xf32>""")
    assert len({run_kernel(module, [X], order)[0].tobytes() for order in range(8)}) > 3


def test_parts_of_another_tile_are_no_business_of_the_last_block() -> None:
    other = SUM.replace("%q = arith.addi %p, %at : index", "%q = arith.addi %p, %t : index")
    error = refusal(program(other))
    assert "data race" in error and "blocks of one launch do not wait for each other" in error


def test_parts_are_not_there_before_the_arrival() -> None:
    early = "%e = lw_kernel.load %w[%at] : memref<96xf32> -> f32"
    assert "data race" in refusal(program(SUM, before=early))


def test_blocks_that_are_not_the_last_see_nothing_of_others() -> None:
    late = "%e = lw_kernel.load %w[%at] : memref<96xf32> -> f32"
    assert "data race" in refusal(program(SUM, behind=late))


def test_what_is_written_behind_the_arrival_is_not_part_of_it() -> None:
    assert "data race" in refusal(program(SUM, behind="lw_kernel.store %x, %w[%own] : f32, memref<96xf32>"))


def test_a_counter_is_zero_at_the_end() -> None:
    error = refusal(program(SUM, parts=3))
    assert "1 blocks have come to counter 0 of 'arrived', and none is the last" in error


def test_a_counter_is_there() -> None:
    assert "counter 8 is outside of 3 counters" in refusal(program(SUM, counter="%threads"))


def test_all_threads_of_a_block_come_to_one_counter() -> None:
    assert "the threads of a block come to one counter" in refusal(program(SUM, counter="%t"))


def test_some_threads_of_a_block_cannot_arrive() -> None:
    text = str(program(SUM)).replace("%last =", "%first = arith.cmpi slt, %t, %c1 : index\n scf.if %first {\n %l =", 1)
    text = text.replace('memref<3xi32, "counters">\n      scf.if', 'memref<3xi32, "counters">\n }\n      scf.if', 1)
    assert "divergence" in refusal(parse(text.replace("scf.if %last", "scf.if %first")))


def test_arrivals_are_at_counters() -> None:
    with pytest.raises(VerifyException, match="in scope counters and of i32"):
        parse(str(program(SUM)).replace('memref<3xi32, "counters">', 'memref<3xf32, "counters">'))
    with pytest.raises(VerifyException, match="at least one block arrives"):
        program(SUM, parts=0)


@pytest.mark.parametrize("at_once", [1, 5, 100])
def test_blocks_of_a_cluster_see_what_the_others_wrote(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They run side by side, however few others do."""
    monkeypatch.setattr(launches, "MOST_THREADS", at_once * THREADS)
    (found,) = run_kernel(clustered("%at"), [X])
    np.testing.assert_array_equal(found.reshape(PARTS, -1), np.roll(X.reshape(PARTS, -1), -1, axis=0))


def test_blocks_of_other_clusters_are_not_waited_for() -> None:
    assert "blocks of one launch do not wait for each other" in refusal(clustered("%t"))


def test_blocks_of_a_cluster_see_nothing_before_they_wait() -> None:
    assert "blocks of one launch do not wait for each other" in refusal(clustered("%at", ""))
    assert "blocks of one launch do not wait for each other" in refusal(clustered("%at", "lw_kernel.barrier"))


def test_blocks_that_are_no_cluster_do_not_wait_for_each_other() -> None:
    assert "blocks of one launch do not wait for each other" in refusal(clustered("%at", cluster=""))


def test_all_threads_of_a_cluster_wait() -> None:
    some = "scf.if %first {\nlw_kernel.cluster_barrier\n}"
    assert "divergence" in refusal(clustered("%at", some))
    block = "%zero = arith.cmpi slt, %part, %c1 : index\nscf.if %zero {\nlw_kernel.cluster_barrier\n}"
    assert "threads of a cluster come to what all of them take part in" in refusal(clustered("%at", block))


def test_clusters_divide_the_grid() -> None:
    with pytest.raises(VerifyException, match=r"clusters of lw_kernel\.launch divide its grid"):
        clustered("%at", cluster="cluster [2, 4, 1]")
