"""What is known of a loop, buffer or block is never taken for another one's of the same name."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

import loopwright as lw
from loopwright import te
from loopwright.backends.context import create_context
from loopwright.dialects.loop import blocks_in, loops_in
from loopwright.passes.lower.tell_loops_apart import spelled, tell_loops_apart
from loopwright.passes.primitive import ScheduleError
from loopwright.passes.schedule.parallel import Parallel
from loopwright.search.sketch.draft import Draft


def parsed(text: str) -> ModuleOp:
    return Parser(create_context(), text).parse_module()


def guarded_window(rows: int, columns: int) -> list[te.Tensor]:
    """A padded copy, and maxima of windows of it: both nests have loops `i` and `j`, of other extents."""
    p = te.placeholder((rows, columns), name="p")
    inside = lambda i, j: te.select(te.all(i < rows, j < columns), p[i, j], 0.0)  # noqa: E731
    q = te.compute((rows + 5, columns + 7), inside, name="q")
    down, across = te.reduce_axis((0, 3), "k8"), te.reduce_axis((0, 5), "k9")
    shape = (rows + 1, (columns + 7 - 5) // 2 + 1)
    out = te.compute(shape, lambda i, j: te.max(q[i + down, 2 * j + across], axis=(down, across)), name="out")
    return [p, out]


def windows(p: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    q = np.zeros((p.shape[0] + 5, p.shape[1] + 7), p.dtype)
    q[: p.shape[0], : p.shape[1]] = p
    parts = [q[i : i + shape[0], j : j + 2 * shape[1] - 1 : 2] for i in range(3) for j in range(5)]
    return np.max(np.stack(parts), axis=0)


@pytest.mark.parametrize("target", ["llvm", "opencl"])
@pytest.mark.parametrize("extents", [(9, 13), (7, 4), (1, 31)])
def test_a_guard_is_judged_by_the_loops_around_its_block(target: str, extents: tuple[int, int]) -> None:
    """`j < 13` holds for the reader's `j`, and not for the `j` of the copy beside it."""
    tensors = guarded_window(*extents)
    sch = lw.Schedule(tensors, target=target)
    sch.compute_at("q", "i")
    if target == "opencl":
        sch.set_scope("q", "local")
    data = np.random.default_rng(3).standard_normal(extents).astype(np.float32)
    expected = windows(data, tuple(int(n) for n in tensors[-1].shape))
    np.testing.assert_array_equal(lw.build(sch)(data), expected)


def test_lowering_tells_loops_apart() -> None:
    module = parsed("""
      func.func @f(%a: memref<8xf32>, %b: memref<8xf32> {lw.output}, %c: memref<4xf32> {lw.output}) {
        lw_loop.for i in 8 {
          lw_loop.block b (x in 8 = i) where (6 - i >= 0) writes %b[x] : memref<8xf32> {
            %0 = lw_loop.load %a[x] : memref<8xf32>
            lw_te.yield %0 : f32
          }
        }
        lw_loop.for i in 4 {
          lw_loop.block c (x in 4 = i) where (3 - i >= 0) writes %c[x] : memref<4xf32> {
            %0 = lw_loop.load %a[x] : memref<8xf32>
            lw_te.yield %0 : f32
          }
        }
        func.return
      }""")
    func = next(iter(module.ops))
    tell_loops_apart(func)
    names = [loop.loop_name for loop in loops_in(func)]
    assert len(set(names)) == 2 and [spelled(name) for name in names] == ["i", "i"]
    for block in blocks_in(func):
        (around,) = (loop.loop_name for loop in block.enclosing_loops)
        assert [e.axes() for e in (*block.bindings.data, *block.conditions)] == [{around}] * 2


@pytest.mark.parametrize("name", ["_0", "i", "box", "place"])
def test_an_analysis_has_names_that_no_loop_has(name: str) -> None:
    """Two blocks that write neighbouring elements: the box of both must not be mistaken for the loop around them."""
    body = "{ %0 = lw_loop.load %a[x] : memref<9xf32>\n lw_te.yield %0 : f32 }"
    module = parsed(f"""
      func.func @f(%a: memref<9xf32>, %b: memref<9xf32> {{lw.output}}) {{
        lw_loop.for {name} in 8 {{
          lw_loop.block left (x in 9 = {name}) writes %b[x] : memref<9xf32> {body}
          lw_loop.block right (x in 9 = {name} + 1) writes %b[x] : memref<9xf32> {body}
        }}
        func.return
      }}""")
    with pytest.raises(ScheduleError, match="may touch the same elements of 'b'"):
        Parallel("left", name).check(module)


LOAD = "%0 = lw_loop.load %a[x] : memref<8xf32>\n lw_te.yield %0 : f32"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            f"lw_loop.for i in 2 {{ lw_loop.for i in 8 {{ lw_loop.block b (x in 8 = i) writes %b[x] : memref<8xf32> "
            f"{{ {LOAD} }} }} }}",
            "'lw_loop.for' called 'i' stands in another one called 'i'",
        ),
        (
            f"lw_loop.for i in 8 {{ lw_loop.block b (x in 8 = i) writes %b[x] : memref<8xf32> {{ {LOAD} }}\n"
            f"lw_loop.block b (x in 8 = i) writes %b[x] : memref<8xf32> {{ {LOAD} }} }}",
            "function 'f' has two 'lw_loop.block' called 'b'",
        ),
        (
            f"lw_loop.for i in 8 {{ lw_loop.block b (x in 8 = i, x in 8 = i) writes %b[x] : memref<8xf32> "
            f"{{ {LOAD} }} }}",
            "block 'b': axis names repeat: x, x",
        ),
        (
            '%c = lw_loop.alloc "c" : memref<8xf32>\n %d = lw_loop.alloc "c" : memref<4xf32>',
            "function 'f' has two 'lw_loop.alloc' called 'c'",
        ),
    ],
)
def test_names_that_could_mean_two_things_are_refused(body: str, message: str) -> None:
    text = f"func.func @f(%a: memref<8xf32>, %b: memref<8xf32>) {{ {body}\n func.return }}"
    with pytest.raises(VerifyException, match=message):
        parsed(text).verify()


def test_a_block_that_two_functions_have_is_not_chosen_silently() -> None:
    one = f"""(%a: memref<8xf32>, %b: memref<8xf32>) {{
        lw_loop.for i in 8 {{ lw_loop.block b (x in 8 = i) writes %b[x] : memref<8xf32> {{ {LOAD} }} }}
        func.return }}"""
    module = parsed(f"func.func @f{one}\nfunc.func @g{one}")
    module.verify()
    with pytest.raises(ScheduleError, match="functions 'f' and 'g' each have a block 'b'"):
        Parallel("b", "i").check(module)


def test_numbers_of_a_sketch_have_names_of_their_own() -> None:
    draft = Draft.of(lw.SearchTask(guarded_window, args=(9, 13)).module)
    draft.hole("rows", (1, 2), 1)
    with pytest.raises(ValueError, match="'rows' is there already"):
        draft.derive("rows", lambda columns: columns["rows"] * 2)
