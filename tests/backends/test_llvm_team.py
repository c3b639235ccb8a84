"""Teams of threads that stay together for the kernels of a call: results, callers at once, and the work of a thread."""

import ctypes
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

import llvmlite.binding as llvm
import numpy as np
import pytest
from openmp_library import openmp_library
from parallel_kernel import is_right, parallel_kernel
from patience import PATIENCE_S
from xdsl.parser import Parser

from loopwright.backends.build import lower_to_kernel
from loopwright.backends.context import create_context
from loopwright.backends.llvm import team, work
from loopwright.backends.llvm.compile import compile_module
from loopwright.backends.llvm.cpu import architecture
from loopwright.backends.llvm.jit import LoadedSymbols, _initialize_all, compile_text
from loopwright.backends.llvm.loaded_object import LoadedObject
from loopwright.backends.llvm.runtime import OpenMp
from loopwright.backends.llvm.sequence import KernelSequence
from loopwright.backends.llvm.team_branches import BRANCHES_TEXT
from loopwright.backends.llvm.team_cores import CORES_BY_LINUX
from loopwright.backends.llvm.team_text import team_text
from loopwright.backends.llvm.team_waiting import FUTEX
from loopwright.dialects.target import Target

ROWS = 37
SHIFT = f"""
func.func @shift(%in : memref<{ROWS}xi32>, %out : memref<{ROWS}xi32> {{lw.output}}) {{
  %one = arith.constant 1 : i32
  %seven = arith.constant 7 : index
  %rows = arith.constant {ROWS} : index
  lw_kernel.parallel %i in {ROWS} {{
    %next = arith.addi %i, %seven : index
    %from = arith.remui %next, %rows : index
    %x = lw_kernel.load %in[%from] : memref<{ROWS}xi32> -> i32
    %y = arith.addi %x, %one : i32
    lw_kernel.store %y, %out[%i] : i32, memref<{ROWS}xi32>
  }}
  func.return
}}"""
"""Each row from one that another thread wrote in the loop before."""
STEPS = 24


@pytest.fixture(params=["own", "openmp", "openmp, late", "own, by pthreads", "openmp, by pthreads", "none"])
def helpers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, every_thread: None) -> str:
    """Helpers are threads of our own, or those of an OpenMP runtime, or there are none.

    They sleep as this system's do, or as those of others, by pthreads. OpenMP's may be late for each call, so that ours
    take turns with them.
    """
    openmp = _OPENMP if request.param.startswith("openmp") else None
    monkeypatch.setattr(team, "openmp_of_torch", lambda: openmp)
    if "late" in request.param:
        monkeypatch.setattr(team, "_LATE_NS", -1)
        monkeypatch.setattr(team, "_ASIDE_S", 1e-4)
        monkeypatch.setattr(team, "_MOST_ASIDE_S", 1e-3)
    if request.param == "none" or "pthreads" in request.param:
        monkeypatch.setattr(team, "_team", lambda openmp: _elsewhere(openmp, request.param != "none"))
    return str(request.param)


@cache
def _elsewhere(openmp: OpenMp | None, threaded: bool) -> team.Team:
    return team.Team(openmp, threaded, None)


_OPENMP = OpenMp(openmp_library())


class Steps:
    """The same kernel again and again, between two arrays and back."""

    def __init__(self, cores: int) -> None:
        module = Parser(create_context(), SHIFT).parse_module()
        _, artifact = compile_module(lower_to_kernel(module, Target(cores=cores, vector_bytes=64)))
        assert artifact.threads == cores
        self._code = LoadedObject(artifact.object_code, artifact.threads)
        self.arrays = [np.zeros(ROWS, np.int32), np.zeros(ROWS, np.int32)]
        places = [array.ctypes.data for array in self.arrays]
        calls = [(self._code.run, (places[n % 2], places[(n + 1) % 2], 0)) for n in range(STEPS)]
        self.sequence = KernelSequence(calls, cores)

    def are_right(self, seed: int) -> bool:
        start = np.random.default_rng(seed).integers(0, 1000, ROWS, dtype=np.int32)
        self.arrays[0][:] = start
        self.sequence.run()
        return bool(np.array_equal(self.arrays[STEPS % 2], np.roll(start, -7 * STEPS) + STEPS))


@pytest.mark.parametrize("cores", [1, 2, 3, 7])
@pytest.mark.few(10)
def test_a_loop_sees_all_that_the_loops_before_wrote(helpers: str, cores: int) -> None:
    steps = Steps(cores)
    for seed in range(60):
        assert steps.are_right(seed)
        if seed % 20 == 0:
            time.sleep(0.002)  # helpers fall asleep


@pytest.mark.few(3)
def test_more_callers_than_there_are_teams(helpers: str) -> None:
    callers = [Steps(3) for _ in range(11)]
    with ThreadPoolExecutor(len(callers)) as pool:
        for _ in range(5):
            assert all(pool.map(lambda steps: all(steps.are_right(seed) for seed in range(10)), callers))


def test_teams_of_different_sizes_take_turns(helpers: str) -> None:
    sizes = [Steps(cores) for cores in (6, 2, 4, 1, 3)]
    assert all(steps.are_right(seed) for seed in range(8) for steps in sizes)


def test_called_in_a_parallel_region_of_others(helpers: str) -> None:
    found: list[bool] = []
    callers = [Steps(3), Steps(3)]
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    library = openmp_library()
    region = kind(lambda _: found.append(callers[library.omp_get_thread_num()].are_right(1)))
    library.GOMP_parallel(region, None, 2, 0)
    assert found == [True, True]


class Branches:
    """A loop on several threads, chains on one each, of a kernel between two arrays of their own, and a loop again."""

    def __init__(self, cores: int, lengths: Sequence[int]) -> None:
        self._codes, self.lengths = [], lengths
        for target in (Target(cores=cores, vector_bytes=64), Target(cores=1, vector_bytes=64)):
            module = Parser(create_context(), SHIFT).parse_module()
            _, artifact = compile_module(lower_to_kernel(module, target))
            self._codes.append(LoadedObject(artifact.object_code, artifact.threads))
        self.arrays = [np.zeros((2, ROWS), np.int32) for _ in range(len(lengths) + 1)]
        together, alone = (code.run for code in self._codes)
        calls = [self._call(together, 0, 0)]
        bounds = [1]
        for chain, length in enumerate(lengths):
            calls += [self._call(alone, chain + 1, n) for n in range(length)]
            bounds.append(len(calls))
        calls.append(self._call(together, 0, 1))
        self.sequence = KernelSequence(calls, cores, [bounds])

    def _call(self, kernel: int, chain: int, step: int) -> tuple[int, Sequence[int]]:
        places = [array.ctypes.data for array in self.arrays[chain]]
        return kernel, (places[step % 2], places[(step + 1) % 2], 0)

    def are_right(self, seed: int) -> bool:
        start = np.random.default_rng(seed).integers(0, 1000, (len(self.arrays), ROWS), dtype=np.int32)
        for array, row in zip(self.arrays, start, strict=True):
            array[0] = row
        self.sequence.run()
        return all(
            np.array_equal(array[length % 2], np.roll(row, -7 * length) + length)
            for array, row, length in zip(self.arrays, start, (2, *self.lengths), strict=True)
        )


@pytest.mark.parametrize("lengths", [(9, 8), (1, 30, 5, 2, 7), (4,)])
@pytest.mark.parametrize("cores", [1, 2, 3])
@pytest.mark.few(5)
def test_branches_run_once_each_between_the_loops_around_them(helpers: str, cores: int, lengths: Sequence[int]) -> None:
    branches = Branches(cores, lengths)
    for seed in range(60):
        assert branches.are_right(seed)
        if seed % 20 == 0:
            time.sleep(0.002)  # helpers fall asleep
    callers = [Branches(cores, lengths) for _ in range(10)]
    with ThreadPoolExecutor(len(callers)) as pool:
        assert all(pool.map(lambda each: all(each.are_right(seed) for seed in range(5)), callers))


def test_threads_that_were_late_are_left_aside_for_longer_and_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenMP's threads are waited for by who calls; ours are not, so that calls have these meanwhile."""
    made = team.Team(_OPENMP, True, FUTEX.get(architecture()))
    now_s, calls = 0.0, list[str]()
    late = [5, 0, 5_000_000, 3_000_000, 7, 2_000_000]
    monkeypatch.setattr(team.time, "monotonic", lambda: now_s)
    monkeypatch.setattr(made, "_run", lambda *given: [calls.append("openmp"), late.pop(0)][1])
    monkeypatch.setattr(made._own, "_run", lambda *given: calls.append("own"))
    run = made.runner(2)
    for now_s, kind in [
        (1.0, "openmp"),
        (1.1, "openmp"),
        (1.2, "openmp"),  # late
        (1.21, "own"),
        (1.29, "own"),
        (1.31, "openmp"),  # late again
        (1.5, "own"),
        (1.52, "openmp"),
        (1.53, "openmp"),  # late after one that was not
        (1.62, "own"),
    ]:
        run(0, 1)
        assert calls.pop() == kind, now_s
    assert not calls and not late


@pytest.mark.slow(1.2)
def test_a_process_ends_right_after_a_call() -> None:
    """Its helpers are awake, and their code must be there until they are gone."""
    script = f"""
        import sys
        sys.path[:0] = {[os.path.join(os.path.dirname(__file__), "..", "support"), *sys.path]!r}
        from loopwright.backends.llvm import work
        work.CYCLES_A_THREAD = 1e-9
        from parallel_kernel import is_right, parallel_kernel
        print(is_right(parallel_kernel(4)))
        """
    for _ in range(3):
        command = [sys.executable, "-c", textwrap.dedent(script)]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
        assert (ran.returncode, ran.stdout) == (0, "True\n"), ran.stderr


def test_threads_are_as_many_as_there_is_work_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "lw_team" not in parallel_kernel(16).source
    module = Parser(create_context(), SHIFT).parse_module()
    (loop,) = (op for op in module.walk() if op.name == "lw_kernel.parallel")
    body = loop.regions[0].blocks[0]
    cycles = work.region_cycles(ROWS, body)
    assert work.region_cycles(10 * ROWS, body) > 5 * cycles > 0
    chosen = []
    for grain in (cycles * 2, cycles / 2, cycles / 5, cycles / 1000):
        monkeypatch.setattr(work, "CYCLES_A_THREAD", grain)
        chosen.append(work.threads_worth(ROWS, body, 16))
    assert chosen[0] == 1 and chosen[-1] == 16 and all(few <= many for few, many in pairwise(chosen))


@pytest.mark.usefixtures("every_thread")
def test_kernels_are_right_by_themselves(helpers: str) -> None:
    kernel = parallel_kernel(5)
    assert all(is_right(kernel) for _ in range(50))


SYSTEMS = {
    **{f"{arch}-unknown-linux-gnu": arch for arch in FUTEX},
    **{f"{arch}-unknown-linux-gnu": "" for arch in ("i686", "armv7", "mips64el", "powerpc64")},
    **{f"{arch}-apple-darwin": "" for arch in ("arm64", "x86_64")},
    "x86_64-unknown-freebsd": "",
}
"""Triples, and the architecture whose system call threads sleep by."""


@pytest.mark.parametrize("triple", SYSTEMS)
@pytest.mark.parametrize("openmp", [False, True])
def test_code_of_a_team_is_made_for_each_system(triple: str, openmp: bool) -> None:
    _initialize_all()
    try:
        target = llvm.Target.from_triple(triple)
    except RuntimeError:
        pytest.skip(f"LLVM here is without {triple}")
    text = team_text(triple.partition("-")[0], openmp, FUTEX.get(SYSTEMS[triple])) + BRANCHES_TEXT
    assert ("@syscall" in text) == (SYSTEMS[triple] != "") != ("@pthread_cond_wait" in text)
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        machine = target.create_target_machine(reloc="pic", codemodel="default")
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        assert machine.emit_object(module)


def test_a_team_is_made_where_no_architecture_is_known(monkeypatch: pytest.MonkeyPatch, every_thread: None) -> None:
    monkeypatch.setattr(team, "FUTEX", {})
    team._team.cache_clear()
    try:
        assert Steps(3).are_right(1)
        monkeypatch.setattr(os, "name", "nt")
        team._team.cache_clear()
        assert team.team().table[0] is None and Steps(3).are_right(2)
    finally:
        team._team.cache_clear()


@pytest.mark.skipif(os.name != "posix", reason="the threads are those of pthreads")
def test_callers_who_are_late_at_once_have_one_team(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[team.Team] = []

    class Slow(team.Team):
        """A team that takes its time to be made."""

        def __init__(self, openmp: OpenMp | None, threaded: bool, futex: int | None) -> None:
            time.sleep(0.05)
            super().__init__(openmp, threaded, futex)
            made.append(self)

    asked = team.Team(None, True, None)
    monkeypatch.setattr(team, "Team", Slow)
    with ThreadPoolExecutor(4) as callers:
        found = list(callers.map(lambda _: asked._own, range(4)))
    assert len(made) == 1 and all(each is made[0] for each in found)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads are placed by the system alone")
def test_a_thread_moves_to_another_core_and_may_be_on_all_of_its_own_again() -> None:
    wrapped = """
define i32 @moved(ptr %before) {
  %from = call i32 @core()
  store i32 %from, ptr %before
  call void @move()
  %to = call i32 @core()
  ret i32 %to
}
"""
    code = LoadedSymbols(compile_text(CORES_BY_LINUX + wrapped).object_code, ("moved",))
    moved = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_int32))(code.addresses["moved"])
    before, cores = ctypes.c_int32(), os.sched_getaffinity(0)
    try:
        others = [moved(before) != before.value for _ in range(20)]
        assert any(others) == (len(cores) > 1)
        assert os.sched_getaffinity(0) == cores
        os.sched_setaffinity(0, {min(cores)})
        assert moved(before) == before.value == min(cores)
        assert os.sched_getaffinity(0) == {min(cores)}
    finally:
        os.sched_setaffinity(0, cores)
        code.close()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads are placed by the system alone")
def test_cores_that_a_thread_is_given_while_it_moves_stay_its_own() -> None:
    """Of 400 times that a caller gave its threads other cores behind a call, helpers had the old ones again in 334."""
    text = CORES_BY_LINUX.replace(
        "declare i32 @sched_getaffinity(i32, i64, ptr)",
        """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define i32 @sched_getaffinity(i32 %thread, i64 %bytes, ptr %mask) {
  call void @llvm.memset.p0.i64(ptr %mask, i8 -1, i64 %bytes, i1 false)
  ret i32 0
}
""",
    ).replace(
        "declare i32 @sched_setaffinity(i32, i64, ptr)",
        """
@given = internal global i32 0
define i32 @sched_setaffinity(i32 %thread, i64 %bytes, ptr %mask) {
  %before = load i32, ptr @given
  %after = add i32 %before, 1
  store i32 %after, ptr @given
  ret i32 0
}
define i32 @moved() {
  call void @move()
  %times = load i32, ptr @given
  ret i32 %times
}
""",
    )
    code = LoadedSymbols(compile_text(text).object_code, ("moved",))
    assert ctypes.CFUNCTYPE(ctypes.c_int32)(code.addresses["moved"])() == 1
    code.close()
