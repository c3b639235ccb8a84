"""Kernels as callables: what they accept, refuse and return; determinism, artifacts, and memory given back."""

import gc
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from loopwright.backends import kernel_function
from loopwright.backends.build import build
from loopwright.backends.context import create_context
from loopwright.backends.llvm.compile import compile_module
from loopwright.backends.llvm.emit import emit
from loopwright.backends.llvm.executable import Artifact, LlvmExecutable
from loopwright.backends.llvm.host import host_target
from loopwright.backends.llvm.jit import compile_text
from loopwright.backends.llvm.loaded_object import LoadedObject
from loopwright.backends.signature import Argument
from loopwright.backends.unsupported import UnsupportedError
from loopwright.dialects.target import Target, TargetAttr
from loopwright.passes.analysis.packing import Packing

TARGET = Target(vector_bytes=64)
AXPY = """
func.func @axpy(%x : memref<4x8xf32> {lw.name = "x"}, %y : memref<32xf32> {lw.name = "y"},
                %sum : memref<4x8xf32> {lw.name = "sum", lw.output},
                %low : memref<32xf32> {lw.name = "low", lw.output}) {
  %zero = arith.constant 0 : index
  %a = lw_kernel.load %x[%zero] : memref<4x8xf32> -> vector<32xf32>
  %b = lw_kernel.load %y[%zero] : memref<32xf32> -> vector<32xf32>
  %c = arith.addf %a, %b : vector<32xf32>
  %d = arith.minimumf %a, %b : vector<32xf32>
  lw_kernel.store %c, %sum[%zero] : vector<32xf32>, memref<4x8xf32>
  lw_kernel.store %d, %low[%zero] : vector<32xf32>, memref<32xf32>
  func.return
}"""


def parse(text: str) -> ModuleOp:
    return Parser(create_context(), text).parse_module()


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((4, 8)).astype(np.float32), rng.standard_normal(32).astype(np.float32)


def test_returns_its_outputs() -> None:
    x, y = data()
    total, low = build(parse(AXPY), TARGET)(x, y)
    np.testing.assert_array_equal(total, x + y.reshape(4, 8))
    np.testing.assert_array_equal(low, np.minimum(x.reshape(32), y))


def test_writes_to_outputs_given() -> None:
    x, y = data()
    total, low = np.empty((4, 8), np.float32), np.empty(64, np.float32)[::2]
    returned = build(parse(AXPY), TARGET)(x, y, total, low)
    assert returned[0] is total and returned[1] is low
    np.testing.assert_array_equal(total, x + y.reshape(4, 8))
    np.testing.assert_array_equal(low, np.minimum(x.reshape(32), y))


def test_contiguous_arrays_are_used_where_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = build(parse(AXPY), TARGET)
    seen: list[int] = []
    run = LlvmExecutable.run

    def spy(self: LlvmExecutable, args: list[np.ndarray]) -> None:
        seen.extend(array.ctypes.data for array in args)
        run(self, args)

    monkeypatch.setattr(LlvmExecutable, "run", spy)
    x, y = data()
    odd = np.empty(33 * 4, np.uint8)[4:].view(np.float32)  # aligned for its elements, for no vector
    odd[...] = y
    total, low = np.empty((4, 8), np.float32), np.empty(32, np.float32)
    kernel(x, odd, total, low)
    assert seen == [array.ctypes.data for array in (x, odd, total, low)]
    np.testing.assert_array_equal(total, x + y.reshape(4, 8))


def test_other_layouts_are_copied() -> None:
    x, y = data()
    kernel = build(parse(AXPY), TARGET)
    expected = kernel(x, y)
    unaligned = np.frombuffer(b"\0" + y.tobytes(), np.uint8)[1:].view(np.float32)
    for a, b in ((np.asfortranarray(x), y), (x, np.repeat(y, 2)[::2]), (x, y[::-1][::-1]), (x, unaligned)):
        for got, right in zip(kernel(a, b), expected, strict=True):
            np.testing.assert_array_equal(got, right)


REFUSALS = [
    (lambda x, y: (x,), TypeError, "kernel axpy takes 2 arrays (x, y), or 4 with its outputs (sum, low), got 1"),
    (lambda x, y: (x, y, x), TypeError, "takes 2 arrays (x, y), or 4 with its outputs (sum, low), got 3"),
    (lambda x, y: (x.astype("f8"), y), TypeError, "kernel axpy: input 'x' must be float32, got float64"),
    (lambda x, y: ([[1], [1, 2]], y), TypeError, "kernel axpy: argument 'x' must be an array of NumPy's, or what it"),
    (lambda x, y: (x, y.astype(">f4")), TypeError, "kernel axpy: input 'y' must be float32, got >f4"),
    (lambda x, y: (x.T, y), ValueError, "kernel axpy: input 'x' must have shape (4, 8), got (8, 4)"),
    (lambda x, y: (x, y, x.copy(), y.astype("f2")), TypeError, "output 'low' must be float32, got float16"),
    (lambda x, y: (x, y, x.copy().tolist(), y), TypeError, "output 'sum' must be a NumPy array, got list"),
    (lambda x, y: (x, y, np.broadcast_to(x, x.shape), y), ValueError, "output 'sum' must be writable"),
    (lambda x, y: (x, y, x, y.copy()), ValueError, "output 'sum' must not overlap 'x' in memory"),
    (lambda x, y: (x, y, x.copy(), y[...]), ValueError, "output 'low' must not overlap 'y' in memory"),
]


@pytest.mark.parametrize(("change", "error", "message"), REFUSALS)
def test_refuses_in_one_sentence(change: object, error: type[Exception], message: str) -> None:
    kernel = build(parse(AXPY), TARGET)
    with pytest.raises(error, match=re.escape(message)):
        kernel(*change(*data()))  # type: ignore[operator]


def test_build_refuses_what_is_no_program() -> None:
    with pytest.raises(TypeError, match="build takes te tensors, a module or a schedule, got int"):
        build(3)
    with pytest.raises(ValueError, match=r"then at least one `lw.output`"):
        build(parse(AXPY.replace(", lw.output", "")), TARGET)
    with pytest.raises(UnsupportedError, match="one function, got 2"):
        build(parse(AXPY + AXPY.replace("@axpy", "@other")), TARGET)


def test_build_leaves_its_module_alone() -> None:
    module = parse(AXPY)
    before = str(module)
    build(module, TARGET)
    assert str(module) == before


def test_target_of_the_module_counts() -> None:
    module = parse(AXPY)
    module.attributes["lw.target"] = TargetAttr(Target(vector_bytes=16))
    assert "prefer-vector-width" not in build(module).source
    assert "prefer-vector-width" in build(module, "llvm vector_bytes=64").source


def test_host_target() -> None:
    target = host_target()
    assert target.kind == "llvm" and target.cores >= 1 and target.l1_bytes >= 4096 and target.vector_bytes >= 16
    assert host_target(3) == target.with_cores(3)


def test_texts_and_benchmark() -> None:
    kernel = build(parse(AXPY), TARGET)
    assert "define internal void @kernel" in kernel.source
    assert "lw_run" in kernel.assembly
    assert "x: float32[4, 8]" in repr(kernel)
    result = kernel.benchmark(min_repeat_ms=2, repeat=4)
    assert len(result.times_s) == 4 and 0 < result.min <= result.median <= result.max
    assert result.mean > 0 and result.std >= 0


def test_benchmark_runs_as_often_as_a_repeat_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten microseconds a run, by a clock that no other program disturbs."""
    kernel = build(parse(AXPY), TARGET)
    monkeypatch.setattr(kernel._executable, "time", lambda args, number: 1e-5 * number)
    result = kernel.benchmark(min_repeat_ms=2, repeat=4)
    assert result.times_s == pytest.approx([1e-5] * 4) and 200 <= result.number <= 300


def test_benchmark_draws_the_data_that_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = build(parse(AXPY), TARGET)
    (x, _), (_, y) = data(), data()
    drawn: list[tuple[str, int]] = []
    draw = kernel_function._random

    def noted(argument: Argument, seed: int) -> np.ndarray:
        drawn.append((argument.name, seed))
        return draw(argument, seed)

    monkeypatch.setattr(kernel_function, "_random", noted)
    outputs = kernel(x, y)
    for given, wanted in (((), "x y sum low"), ((x, y), "sum low"), ((x, y, *outputs), "")):
        drawn.clear()
        kernel.benchmark(*given, number=1, repeat=1)
        assert [name for name, _ in drawn] == wanted.split()
        assert [seed for _, seed in drawn] == [*range(len(given), 4)]


def test_same_bytes_for_the_same_program() -> None:
    texts = {emit(parse(AXPY)).source for _ in range(3)}
    assert len(texts) == 1
    (text,) = texts
    assert len({compile_text(text).object_code for _ in range(3)}) == 1


def test_artifact_travels_as_bytes() -> None:
    module = parse(AXPY)
    _, artifact = compile_module(module)
    again = Artifact.from_bytes(artifact.to_bytes())
    assert again == artifact
    x, y = data()
    total, low = np.empty((4, 8), np.float32), np.empty(32, np.float32)
    executable = LlvmExecutable(again)
    executable.run([x, y, total, low])
    np.testing.assert_array_equal(total, x + y.reshape(4, 8))
    assert executable.time([x, y, total, low], 10) > 0
    with pytest.raises(ValueError, match="no LLVM kernel artifact"):
        Artifact.from_bytes(b"something else")


CONSTANT = """
func.func @scale(%x : memref<5xf32> {lw.name = "x"},
                 %w : memref<3x2x2xf32> {lw.name = "w", lw.constant, lw.layout = ["j/2", "i", "j%2"],
                                         lw.packed_from = #lw.axes<i = 2, j = 5>},
                 %out : memref<12xf32> {lw.name = "out", lw.output}) {
  %zero = arith.constant 0 : index
  %w0 = lw_kernel.load %w[%zero] : memref<3x2x2xf32> -> vector<12xf32>
  lw_kernel.store %w0, %out[%zero] : vector<12xf32>, memref<12xf32>
  func.return
}"""


def test_constants_come_in_their_original_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = build(parse(CONSTANT), TARGET)
    assert kernel.arguments[1].shape == (2, 5)
    packed: list[int] = []
    pack = Packing.pack
    monkeypatch.setattr(Packing, "pack", lambda self, array: packed.append(1) or pack(self, array))
    x, w = np.zeros(5, np.float32), np.arange(10, dtype=np.float32).reshape(2, 5)
    expected = [0, 1, 5, 6, 2, 3, 7, 8, 4, 0, 9, 0]
    for array in (w, np.asfortranarray(w)):
        for _ in range(3):
            np.testing.assert_array_equal(kernel(x, array), expected)
    assert len(packed) == 6  # it may have been changed in between
    np.testing.assert_array_equal(kernel(x, 2 * w), 2 * np.array(expected))
    with pytest.raises(ValueError, match=r"input 'w' must have shape \(2, 5\), got \(3, 2, 2\)"):
        kernel(x, np.zeros((3, 2, 2), np.float32))
    _, artifact = compile_module(parse(CONSTANT))
    assert Artifact.from_bytes(artifact.to_bytes()) == artifact
    assert kernel.benchmark(min_repeat_ms=1, repeat=2).min > 0


def test_unknown_symbols_are_an_error_not_a_crash() -> None:
    source = "declare void @no_such_symbol()\ndefine void @lw_run(ptr %p) {\ncall void @no_such_symbol()\nret void\n}\n"
    source += "define void @lw_time(ptr %p, i64 %n) {\nret void\n}\n"
    with pytest.raises(RuntimeError, match="materialize"):
        LoadedObject(compile_text(source).object_code, 1)


def test_building_from_several_threads() -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            x, y = data()
            for _ in range(5):
                total, _ = build(parse(AXPY), TARGET)(x, y)
                np.testing.assert_array_equal(total, x + y.reshape(4, 8))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def resident_kib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


@pytest.mark.slow
def test_kernels_give_their_memory_back() -> None:
    module = parse(AXPY)
    x, y = data()

    def once() -> None:
        build(module, TARGET)(x, y)

    for _ in range(50):
        once()
    gc.collect()
    before = resident_kib()
    for _ in range(200):
        once()
    gc.collect()
    assert resident_kib() - before < 200 * 10, "each build may leave a few KiB to the allocator, no more"
