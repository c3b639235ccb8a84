"""Kernels that check their addresses: an access outside of a buffer is reported and not made, others are as ever."""

from random import Random

import numpy as np
import pytest
from random_workloads import random_workload
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import loopwright as lw
from loopwright import te
from loopwright.backends.build import build
from loopwright.backends.context import create_context
from loopwright.backends.llvm.compile import compile_module
from loopwright.backends.llvm.executable import Artifact, LlvmExecutable
from loopwright.backends.llvm.outside import OutsideBufferError
from loopwright.dialects.target import Target

N = 64


def parse(text: str) -> ModuleOp:
    return Parser(create_context(), text).parse_module()


def body(lines: str) -> str:
    """A kernel of one input and one output of 64 floats, and a buffer of 40 on the stack and one in the workspace."""
    return f"""
    func.func @probe(%in : memref<{N}xf32> {{lw.name = "in"}}, %places : memref<8xi64> {{lw.name = "places"}},
                     %out : memref<{N}xf32> {{lw.name = "out", lw.output}}) {{
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %raw = lw_kernel.load %places[%zero] : memref<8xi64> -> i64
      %at = arith.index_cast %raw : i64 to index
      %value = arith.constant 1.0 : f32
      %wide = arith.constant dense<1.0> : vector<8xf32>
      %stack = lw_kernel.alloc "stack" : memref<40xf32, "local">
      %common = lw_kernel.alloc "common" : memref<40xf32>
      {lines}
      func.return
    }}"""


ACCESSES = {
    "scalar load": ("%x = lw_kernel.load %in[%at] : memref<64xf32> -> f32", "in", 64, 1),
    "scalar load behind": ("%x = lw_kernel.load %in[%at + 3] : memref<64xf32> -> f32", "in", 61, 1),
    "scalar load before": ("%x = lw_kernel.load %in[%at - 3] : memref<64xf32> -> f32", "in", 2, 1),
    "vector load": ("%x = lw_kernel.load %in[%at] : memref<64xf32> -> vector<8xf32>", "in", 57, 8),
    "odd vector load": ("%x = lw_kernel.load %in[%at] : memref<64xf32> -> vector<3xf32>", "in", 62, 3),
    "strided load": ("%x = lw_kernel.load %in[%at] stride 3 : memref<64xf32> -> vector<8xf32>", "in", 43, 8),
    "far strided load": ("%x = lw_kernel.load %in[%at] stride 7 : memref<64xf32> -> vector<8xf32>", "in", 15, 8),
    "reversed load": ("%x = lw_kernel.load %in[%at] stride -1 : memref<64xf32> -> vector<8xf32>", "in", 6, 8),
    "broadcast load": ("%x = lw_kernel.load %in[%at] stride 0 : memref<64xf32> -> vector<8xf32>", "in", 64, 8),
    "scalar store": ("lw_kernel.store %value, %out[%at] : f32, memref<64xf32>", "out", 64, 1),
    "vector store": ("lw_kernel.store %wide, %out[%at] : vector<8xf32>, memref<64xf32>", "out", 57, 8),
    "strided store": ("lw_kernel.store %wide, %out[%at] stride -2 : vector<8xf32>, memref<64xf32>", "out", 13, 8),
    "local store": ('lw_kernel.store %wide, %stack[%at] : vector<8xf32>, memref<40xf32, "local">', "stack", 33, 8),
    "load of the workspace": ("%x = lw_kernel.load %common[%at] : memref<40xf32> -> f32", "common", 40, 1),
    "gather": (
        """%lanes = lw_kernel.lanes : vector<8xindex>
        %first = vector.broadcast %at : index to vector<8xindex>
        %i = arith.addi %first, %lanes : vector<8xindex>
        %on = arith.constant dense<true> : vector<8xi1>
        %x = lw_kernel.gather %in[%i] mask %on : memref<64xf32>, vector<8xindex>, vector<8xi1> -> vector<8xf32>""",
        "in",
        57,
        8,
    ),
    "scatter": (
        """%lanes = lw_kernel.lanes : vector<8xindex>
        %first = vector.broadcast %at : index to vector<8xindex>
        %i = arith.addi %first, %lanes : vector<8xindex>
        %on = arith.constant dense<true> : vector<8xi1>
        lw_kernel.scatter %wide, %out[%i] mask %on : vector<8xf32>, memref<64xf32>, vector<8xindex>, vector<8xi1>""",
        "out",
        -1,
        8,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCESSES)
def test_an_access_one_beyond_is_reported_and_one_before_is_not(name: str) -> None:
    """The first place that is outside; the neighbour towards the middle is inside."""
    lines, buffer, place, lanes = ACCESSES[name]
    kernel = build(parse(body(lines)), Target(cores=1), check_addresses=True)
    data, out = np.ones(N, np.float32), np.zeros(N, np.float32)
    places = np.arange(8) + 20
    places[0] = place
    with pytest.raises(OutsideBufferError, match=f"touches element -?[0-9]+ of buffer '{buffer}'") as caught:
        kernel(data, places, out)
    extent = 40 if buffer in ("stack", "common") else N
    assert (caught.value.access.buffer, caught.value.access.extent) == (buffer, extent)
    assert caught.value.access.lanes == lanes
    assert caught.value.index in (-1, extent)
    assert not out.any(), "nothing is written after an access outside"
    places[0] = place + 1 if caught.value.index < 0 else place - 1
    kernel(data, places, out)  # and the report before is forgotten


@pytest.mark.parametrize("store", [False, True])
def test_lanes_that_are_off_may_point_anywhere(store: bool) -> None:
    access = (
        "lw_kernel.store %wide, %out[%at] mask %m : vector<8xf32>, memref<64xf32>"
        if store
        else "%x = lw_kernel.load %in[%at] mask %m : memref<64xf32> -> vector<8xf32>"
    )
    lines = f"""
      %rawleft = lw_kernel.load %places[%one] : memref<8xi64> -> i64
      %left = arith.index_cast %rawleft : i64 to index
      %m = lw_kernel.mask %left step -1 : vector<8xi1>
      {access}"""
    kernel = build(parse(body(lines)), Target(cores=1), check_addresses=True)
    data, out = np.ones(N, np.float32), np.zeros(N, np.float32)
    kernel(data, np.array([60, 3, 0, 0, 0, 0, 0, 0]), out)  # lanes 0 to 3: elements 60 to 63
    with pytest.raises(OutsideBufferError, match="touches element 64 "):
        kernel(data, np.array([60, 4, 0, 0, 0, 0, 0, 0]), out)
    kernel(data, np.array([1 << 40, -1, 0, 0, 0, 0, 0, 0]), out)


PARALLEL = f"""
func.func @each(%in : memref<{N}xf32> {{lw.name = "in"}}, %places : memref<{N}xi64> {{lw.name = "places"}},
                %out : memref<{N}xf32> {{lw.name = "out", lw.output}}) {{
  %zero = arith.constant 0 : index
  lw_kernel.parallel %i in {N} {{
    %own = lw_kernel.alloc "own" : memref<{N}xf32>
    %raw = lw_kernel.load %places[%i] : memref<{N}xi64> -> i64
    %at = arith.index_cast %raw : i64 to index
    %x = lw_kernel.load %in[%i] : memref<{N}xf32> -> f32
    lw_kernel.store %x, %own[%at] : f32, memref<{N}xf32>
    %y = lw_kernel.load %own[%at] : memref<{N}xf32> -> f32
    lw_kernel.store %y, %out[%i] : f32, memref<{N}xf32>
  }}
  %last = lw_kernel.load %in[%zero] : memref<{N}xf32> -> f32
  lw_kernel.store %last, %out[%zero] : f32, memref<{N}xf32>
  func.return
}}"""


@pytest.mark.parametrize("cores", [1, 2])
def test_threads_report_too(cores: int) -> None:
    kernel = build(parse(PARALLEL), Target(cores=cores), check_addresses=True)
    data, places, out = np.arange(N, dtype=np.float32), np.arange(N), np.zeros(N, np.float32)
    np.testing.assert_array_equal(kernel(data, places), data)
    places[N - 1] = N
    for _ in range(10):
        with pytest.raises(OutsideBufferError, match="a store, touches element 64 of buffer 'own'"):
            kernel(data, places, out)
        assert out[N - 1] == 0 and out[0] == 0, "the kernel ends behind the loop in which a thread left"
    places[N - 1] = 0
    np.testing.assert_array_equal(kernel(data, places), data)


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_right_kernels_give_the_same_bits(cores: int) -> None:
    for seed in range(6):
        module = te.create_module(random_workload(Random(seed)))
        task = lw.SearchTask(module, target=f"llvm cores={cores} vector_bytes=32")
        schedule = task.sketches[-1].schedule(task.sketches[-1].default)
        scheduled = task.schedule_module(schedule)
        plain = build(scheduled, task.target)(*task.reference.inputs)
        checked = build(scheduled, task.target, check_addresses=True)(*task.reference.inputs)
        for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (plain, checked)), strict=True):
            np.testing.assert_array_equal(a.view(np.uint32), b.view(np.uint32), err_msg=f"seed {seed}: {schedule}")


def test_the_error_names_all() -> None:
    lines = "lw_kernel.store %wide, %out[%at] : vector<8xf32>, memref<64xf32>"
    kernel = build(parse(body(lines)), Target(cores=1), check_addresses=True)
    with pytest.raises(OutsideBufferError) as caught:
        kernel(np.ones(N, np.float32), np.full(8, 1000))
    assert str(caught.value) == (
        "kernel probe: access 1, a store of 8 lanes, touches element 1000 of buffer 'out', which has 64 elements"
    )


def test_artifacts_keep_what_they_check() -> None:
    module = parse(body(ACCESSES["gather"][0]))
    artifact = compile_module(module, check_addresses=True)[1]
    assert Artifact.from_bytes(artifact.to_bytes()) == artifact
    executable = LlvmExecutable(Artifact.from_bytes(artifact.to_bytes()))
    arrays = [np.ones(N, np.float32), np.full(8, N), np.zeros(N, np.float32)]
    for call in (lambda: executable.run(arrays), lambda: executable.time(arrays, 3)):
        with pytest.raises(OutsideBufferError, match="access 1, a gather of 8 lanes"):
            call()
    assert not compile_module(module)[1].accesses


def test_other_targets_refuse_it() -> None:
    task = lw.SearchTask(lambda: random_workload(Random(3)), target="opencl model=mali-t860")
    with pytest.raises(ValueError, match="addresses are checked in kernels for llvm only"):
        build(task.schedule_module(task.default_schedule), check_addresses=True)
