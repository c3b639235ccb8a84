"""Refusals of the interpreter of launches, naming the operations: races, divergent barriers, unwritten memory."""

import re

import numpy as np
import pytest
from launches import COPY, LOAD, OUT, TO_SHARED, TURNED, X, launch, operations, refusal
from xdsl.utils.exceptions import VerifyException

from loopwright.dialects.interpret.kernel import run_kernel


def test_a_read_of_what_another_thread_writes_needs_a_barrier() -> None:
    module = launch(f"{LOAD}\n{TO_SHARED}\n{TURNED}\n{OUT}")
    error = refusal(module)
    assert error.startswith("data race: element ") and "no barrier stands in between" in error
    assert operations(error, module) == ["lw_kernel.store", "lw_kernel.load"]
    assert re.search(r"by thread \(\d+, 0, 0\) of block \(0, 0, 0\)", error)


def test_a_write_of_what_another_thread_still_reads_needs_a_barrier() -> None:
    module = launch(f"{LOAD}\n{TO_SHARED}\nlw_kernel.barrier\n{TURNED}\n{TO_SHARED}\n{OUT}")
    error = refusal(module)
    assert error.startswith("data race: element ")
    assert sorted(operations(error, module)) == ["lw_kernel.load", "lw_kernel.store"]


@pytest.mark.parametrize(("value", "is_refused"), [("%x", True), ("%one", False)])
def test_two_writes_to_one_element_are_of_one_value(value: str, is_refused: bool) -> None:
    store = f'lw_kernel.store {value}, %s[%c0] : f32, memref<64xf32, "shared">'
    end = f'lw_kernel.barrier\n%y = lw_kernel.load %s[%c0] : memref<64xf32, "shared"> -> f32\n{OUT}'
    module = launch(f"{LOAD}\n{store}\n{end}")
    if is_refused:
        assert operations(refusal(module), module) == ["lw_kernel.store"] * 2
    else:
        np.testing.assert_array_equal(run_kernel(module, [X])[0], np.ones(64))


def test_blocks_do_not_wait_for_each_other() -> None:
    other = "%y = lw_kernel.load %out[%t] : memref<64xf32> -> f32"
    first = f"""%is = arith.cmpi eq, %b, %c0 : index
      {LOAD}
      scf.if %is {{
        lw_kernel.store %x, %out[%t] : f32, memref<64xf32>
      }}
      lw_kernel.barrier
      {other}"""
    module = launch(first, grid=(2, 1, 1))
    error = refusal(module)
    assert "blocks of one launch do not wait for each other" in error
    assert operations(error, module) == ["lw_kernel.store", "lw_kernel.load"]
    run_kernel(launch(first), [X])


def test_threads_of_one_block_pass_values_on_through_global_memory() -> None:
    store = "lw_kernel.store %x, %out[%t] : f32, memref<64xf32>"
    again = "%u = arith.subi %c63, %t : index\n%y = lw_kernel.load %out[%u] : memref<64xf32> -> f32"
    (out,) = run_kernel(launch(f"{LOAD}\n{store}\nlw_kernel.barrier\n{again}\nlw_kernel.barrier\n{OUT}"), [X])
    np.testing.assert_array_equal(out, X[::-1])
    without = launch(f"{LOAD}\n{store}\nlw_kernel.barrier\n{again}\n{OUT}")
    assert sorted(operations(refusal(without), without)) == ["lw_kernel.load", "lw_kernel.store"]


def test_a_barrier_is_for_all_threads_of_a_block() -> None:
    body = "%is = arith.cmpi slt, {}, %c1 : index\nscf.if %is {{\nlw_kernel.barrier\n}}"
    module = launch(body.format("%t"), grid=(2, 1, 1))
    error = refusal(module)
    assert error.startswith("divergence: 1 of the 64 threads of a block ")
    assert operations(error, module) == ["lw_kernel.barrier", "scf.if"]
    run_kernel(launch(body.format("%b"), grid=(2, 1, 1)), [X])  # all threads of the first block, none of the second


def test_blocks_pass_as_many_barriers_as_they_like() -> None:
    """The second block writes what its other threads have read before, without the barrier that the first has."""
    body = f"""{LOAD}
      {TO_SHARED}
      lw_kernel.barrier
      {TURNED}
      %is = arith.cmpi slt, %b, %c1 : index
      scf.if %is {{
        lw_kernel.barrier
      }}
      {TO_SHARED}"""
    run_kernel(launch(body), [X])
    module = launch(body, grid=(2, 1, 1))
    error = refusal(module)
    assert sorted(operations(error, module)) == ["lw_kernel.load", "lw_kernel.store"]
    assert "of block (1, 0, 0)" in error and "of block (0, 0, 0)" not in error


def test_a_shuffle_is_for_all_threads_of_a_warp() -> None:
    body = (
        f"{LOAD}\n%is = arith.cmpi slt, %t, %c{{}} : index\nscf.if %is {{{{\n%y = lw_kernel.shuffle %x, 1 : f32\n}}}}"
    )
    module = launch(body.format(8))
    assert operations(refusal(module), module) == ["lw_kernel.shuffle", "scf.if"]
    run_kernel(launch(body.format(32)), [X])
    assert "a thread that is not there" in refusal(launch(f"{LOAD}\n%y = lw_kernel.shuffle %x, 16 : f32", (20, 1, 1)))


TRANSPOSED = """
        %p = arith.muli %t, %c4 : index
        %v = lw_kernel.load %in[%p] align 16 : memref<64xf32> -> vector<4xf32>
        {}
        %w = lw_kernel.transpose_quad %v : vector<4xf32>
        lw_kernel.store %w, %out[%p] align 16 : vector<4xf32>, memref<64xf32>
        {}"""


def test_four_threads_transpose() -> None:
    (out,) = run_kernel(launch(TRANSPOSED.format("", ""), (16, 1, 1)), [X])
    np.testing.assert_array_equal(out.reshape(4, 4, 4), X.reshape(4, 4, 4).swapaxes(1, 2))


def test_a_transpose_is_for_all_of_four_threads() -> None:
    module = launch(TRANSPOSED.format("%is = arith.cmpi slt, %t, %c4 : index\nscf.if %is {", "}"), (16, 1, 1))
    np.testing.assert_array_equal(run_kernel(module, [X])[0][:16], X[:16].reshape(4, 4).T.reshape(-1))
    module = launch(TRANSPOSED.format("%is = arith.cmpi sle, %t, %c4 : index\nscf.if %is {", "}"), (16, 1, 1))
    error = refusal(module)
    assert operations(error, module) == ["lw_kernel.transpose_quad", "scf.if"] and "four neighbours" in error
    assert "not made of fours" in refusal(launch(TRANSPOSED.format("", ""), (14, 1, 1)))


def test_transposed_vectors_have_four_parts() -> None:
    with pytest.raises(VerifyException, match="is not made of 4 parts"):
        launch(TRANSPOSED.format("", "").replace("vector<4xf32>", "vector<6xf32>"), (16, 1, 1)).verify()


WAITS = {
    "no wait": f"{COPY}\nlw_kernel.commit\nlw_kernel.barrier\n{TURNED}",
    "no commit": f"{COPY}\nlw_kernel.wait 0\nlw_kernel.barrier\n{TURNED}",
    "waits for an earlier group": f"{COPY}\nlw_kernel.commit\nlw_kernel.wait 1\nlw_kernel.barrier\n{TURNED}",
}


@pytest.mark.parametrize("name", WAITS)
def test_a_read_before_its_wait(name: str) -> None:
    module = launch(f"{WAITS[name]}\n{OUT}")
    error = refusal(module)
    assert "is read before the copy to it was waited for" in error
    assert operations(error, module) == ["lw_kernel.load", "lw_kernel.async_copy"]


def test_other_threads_see_a_copy_behind_a_barrier_only() -> None:
    module = launch(f"{COPY}\nlw_kernel.commit\nlw_kernel.wait 0\n{TURNED}\n{OUT}")
    error = refusal(module)
    assert error.startswith("data race")
    assert operations(error, module) == ["lw_kernel.async_copy", "lw_kernel.load"]


@pytest.mark.parametrize("again", [COPY, f"{LOAD}\n{TO_SHARED}"])
def test_nothing_is_written_where_a_copy_is_in_flight(again: str) -> None:
    module = launch(f"{COPY}\nlw_kernel.commit\nlw_kernel.barrier\n{again}")
    error = refusal(module)
    assert "is written while a copy to it is in flight" in error
    assert operations(error, module)[1] == "lw_kernel.async_copy"


def test_a_copy_to_what_others_still_read() -> None:
    module = launch(f"{LOAD}\n{TO_SHARED}\nlw_kernel.barrier\n{TURNED}\n{COPY}\n{OUT}")
    assert sorted(operations(refusal(module), module)) == ["lw_kernel.async_copy", "lw_kernel.load"]


@pytest.mark.parametrize("buffer", ["s", "r"])
def test_memory_that_nobody_has_written_must_not_show(buffer: str) -> None:
    scope = "shared" if buffer == "s" else "local"
    read = f'%x = lw_kernel.load %{buffer}[%c1] : memref<{64 if buffer == "s" else 4}xf32, "{scope}"> -> f32'
    copied = '%d = arith.addf %x, %one : f32\nlw_kernel.store %d, %r[%c0] : f32, memref<4xf32, "local">'
    again = '%y = lw_kernel.load %r[%c0] : memref<4xf32, "local"> -> f32'
    run_kernel(launch(f"{read}\n{copied}\n{again}"), [X])
    module = launch(f"{read}\n{copied}\n{again}\n{OUT}")
    error = refusal(module)
    assert error.startswith("what is stored depends on memory that nobody has written")
    assert f"element 1 of {scope} buffer '{buffer}'" in error and "lw_kernel.store %" in error
    branch = launch(f"{read}\n%is = arith.cmpf olt, %x, %one : f32\nscf.if %is {{\nlw_kernel.barrier\n}}")
    assert refusal(branch).startswith("a branch depends on memory that nobody has written")
    address = "%i = arith.fptosi %x : f32 to i32\n%j = arith.index_cast %i : i32 to index"
    address_mask = "%m = lw_kernel.mask %j step -1 : vector<4xi1>\n%z = lw_kernel.load %in[%c0] mask %m"
    masked = launch(f"{read}\n{address}\n{address_mask} : memref<64xf32> -> vector<4xf32>")
    assert refusal(masked).startswith("a mask depends on memory that nobody has written")
    load = launch(f"{read}\n{address}\n%z = lw_kernel.load %in[%j] : memref<64xf32> -> f32")
    assert refusal(load).startswith("an address depends on memory that nobody has written")


def test_what_is_not_chosen_may_be_unwritten() -> None:
    module = launch(f"""
      %x = lw_kernel.load %s[%t] : memref<64xf32, "shared"> -> f32
      %is = arith.cmpi slt, %t, %c0 : index
      %y = arith.select %is, %x, %one : f32
      {OUT}""")
    np.testing.assert_array_equal(run_kernel(module, [X])[0], np.ones(64))


def test_an_output_that_nobody_has_written_is_not_read() -> None:
    module = launch("%y = lw_kernel.load %out[%t] : memref<64xf32> -> f32\n" + OUT)
    assert "element 0 of buffer 'out' of 64 elements was not written" in refusal(module)


@pytest.mark.parametrize(
    ("access", "rule"),
    [
        ("%y = lw_kernel.load %in[%t + 1] : memref<64xf32> -> f32", "element 64 is outside of buffer 'in' of 64"),
        ('%y = lw_kernel.load %s[%t - 1] : memref<64xf32, "shared"> -> f32', "element -1 is outside of shared buffer"),
        (
            'lw_kernel.store %one, %r[%c4] : f32, memref<4xf32, "local">',
            "element 4 is outside of local buffer 'r' of 4",
        ),
        (
            "%y = lw_kernel.load %in[%t] align 16 : memref<64xf32> -> vector<4xf32>",
            "element 61 is outside of|misaligned access: element 1 of buffer 'in'",
        ),
        (
            'lw_kernel.async_copy 4 %in[%c4] -> %s[%c1] : memref<64xf32> -> memref<64xf32, "shared">',
            "misaligned access: element 1 of shared buffer 's' of 64 elements is where 4 elements",
        ),
    ],
)
def test_accesses_that_hardware_faults_on(access: str, rule: str) -> None:
    threads = (48, 1, 1) if "align" in access else (64, 1, 1)
    module = launch(access, threads)
    error = refusal(module)
    assert re.match(rule, error)
    assert operations(error, module) == [re.sub(r"%\w+ = ", "", access).split()[0]]


def test_threads_that_a_branch_leaves_out_touch_nothing() -> None:
    module = launch("""
      %is = arith.cmpi slt, %t, %c32 : index
      scf.if %is {
        %x = lw_kernel.load %in[%t + 32] : memref<64xf32> -> f32
        lw_kernel.store %x, %out[%t] : f32, memref<64xf32>
      } else {
        lw_kernel.store %one, %out[%t] : f32, memref<64xf32>
      }""")
    np.testing.assert_array_equal(run_kernel(module, [X])[0], [*X[32:], *np.ones(32)])


def test_operations_without_a_meaning_are_named() -> None:
    assert "math.ctpop has no meaning in a kernel" in refusal(
        launch("%n = arith.constant 1 : i32\n%m = math.ctpop %n : i32")
    )


def test_many_blocks_are_taken_in_turns() -> None:
    """More threads than run side by side, and two of different turns that write to one element."""
    body = """%n = arith.constant 256 : index
      %m = arith.constant {} : index
      %base = arith.muli %b, %n : index
      %p = arith.addi %base, %t : index
      %q = arith.remsi %p, %m : index
      %f = arith.index_cast %p : index to i32
      %y = arith.sitofp %f : i32 to f32
      lw_kernel.store %y, %out[%q] : f32, memref<16384xf32>"""
    all_apart, two_meet = (launch(body.format(m), (256, 1, 1), (64, 1, 1), size=16384) for m in (16384, 16383))
    np.testing.assert_array_equal(run_kernel(all_apart, [X])[0], np.arange(16384))
    error = refusal(two_meet)
    assert "blocks of one launch do not wait" in error
    assert "of block (0, 0, 0)" in error and "thread (255, 0, 0) of block (63, 0, 0)" in error


def test_what_was_loaded_stays_as_it_was() -> None:
    """Two registers change places, one by one and as vectors."""
    module = launch(
        f"""
      {LOAD}
      %v = lw_kernel.load %in[%c0] : memref<64xf32> -> vector<2xf32>
      lw_kernel.store %x, %r[%c0] : f32, memref<4xf32, "local">
      lw_kernel.store %one, %r[%c1] : f32, memref<4xf32, "local">
      lw_kernel.store %v, %r[%c0 + 2] : vector<2xf32>, memref<4xf32, "local">
      %a = lw_kernel.load %r[%c0] : memref<4xf32, "local"> -> f32
      %b1 = lw_kernel.load %r[%c1] : memref<4xf32, "local"> -> f32
      %w = lw_kernel.load %r[%c0 + 2] : memref<4xf32, "local"> -> vector<2xf32>
      lw_kernel.store %b1, %r[%c0] : f32, memref<4xf32, "local">
      lw_kernel.store %a, %r[%c1] : f32, memref<4xf32, "local">
      %two = lw_kernel.load %r[%c0] : memref<4xf32, "local"> -> vector<2xf32>
      lw_kernel.store %two, %r[%c0 + 2] : vector<2xf32>, memref<4xf32, "local">
      %y1 = vector.extract %w[1] : f32 from vector<2xf32>
      %y2 = vector.extract %two[1] : f32 from vector<2xf32>
      %y3 = arith.mulf %a, %y1 : f32
      %y = arith.addf %y3, %y2 : f32
      {{OUT}}""".replace("{OUT}", OUT)
    )
    np.testing.assert_array_equal(run_kernel(module, [X])[0], 2 * X)
