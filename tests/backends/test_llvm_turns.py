"""Kernels timed with constants that are read from one copy after the other."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.llvm import device
from loopwright.backends.llvm.device import build, load
from loopwright.backends.llvm.turns import Array, Turns
from loopwright.backends.signature import Argument
from loopwright.search.measure.measurement import ErrorCode
from loopwright.search.measure.surroundings import Surroundings
from loopwright.search.measure.timing import CPU_TIMING
from loopwright.search.measure.worker import RunnerServer

ARGUMENTS = [Argument("x", "float32", (4,), False), Argument("w", "float32", (16,), False, constant=True)]


def test_runs_go_on_from_the_copy_that_is_next() -> None:
    turns, workspace = Turns(ARGUMENTS, 3 * 64), np.zeros(64, np.uint8)
    x, w = np.zeros(4, np.float32), np.arange(16, dtype=np.float32)

    def read(number: int) -> list[tuple[int, list[int | None]]]:
        """Count the runs of each sequence, with the places its calls read `w` at; `x` and the workspace never move."""
        found = []
        for sequence, times in turns.sequences(1, [x, w], workspace, number, 1):
            calls = [sequence.pointers[n : n + 3] for n in sequence.first]
            assert all((a, c) == (x.ctypes.data, workspace.ctypes.data) for a, _, c in calls)
            found.append((times, [b for _, b, _ in calls]))
        return found

    (rounds, copies), (times, rest) = read(8)
    assert (rounds, times, len(set(copies)), copies[0]) == (2, 1, 3, w.ctypes.data) and rest == copies[:2]
    assert read(1) == [(1, copies[2:])] and read(1) == [(1, copies[:1])]
    turns.forget()
    w = np.ones(16, np.float32)
    ((_, anew),) = read(3)
    assert len(set(anew)) == 3 and anew[2] == w.ctypes.data  # from the second copy on


def test_constants_of_many_bytes_have_no_copy() -> None:
    w = np.zeros(16, np.float32)
    assert len(Turns(ARGUMENTS, 64).sequences(1, [w[:4], w], w, 1, 1)[0][0].first) == 1
    assert Turns(ARGUMENTS[:1], 1 << 20).sequences(1, [w[:4]], w, 5, 1)[0][1] == 5


def test_kernels_are_right_behind_runs_in_turn() -> None:
    data, kernel = te.placeholder((1, 5, 6, 12), name="data"), te.placeholder((1, 1, 12, 21), name="k", constant=True)
    task = lw.SearchTask([data, kernel, topi.nn.conv2d_nhwc(data, kernel, 1, 0)], target="llvm cores=2")
    loaded = load(build(str(task.module), task.default_schedule))
    loaded.take_turns(1 << 16)
    found = np.zeros_like(task.reference.expected[0])
    args = [*map(np.ascontiguousarray, task.reference.inputs), found]
    for n in (1, 3, 100):
        loaded.run(args)
        found[...] = 0
        assert loaded.time(args, n) > 0
        np.testing.assert_allclose(found, task.reference.expected[0], rtol=1e-4, atol=1e-5)
    args[1] = 2 * args[1]  # other constants, packed anew
    loaded.run(args)
    loaded.time(args, 2)
    np.testing.assert_allclose(found, 2 * task.reference.expected[0], rtol=1e-4, atol=1e-5)


def test_kernels_of_a_race_keep_no_copies_between_laps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[int] = []
    copied = Turns._copied

    def counted(turns: Turns, arrays: Sequence[Array]) -> list[list[Array]]:
        found = copied(turns, arrays)
        copies.append(len(found))
        return found

    monkeypatch.setattr(Turns, "_copied", counted)
    monkeypatch.setattr(Surroundings, "changed", lambda self: None)  # tests run under a timer
    data, weight = te.placeholder((3, 12), name="data"), te.placeholder((12, 21), name="w", constant=True)
    task = lw.SearchTask([data, weight, topi.nn.matmul(data, weight)], target="llvm cores=1")
    runner, files = RunnerServer(device), []
    for number, array in enumerate((*task.reference.inputs, *task.reference.expected)):
        files.append(str(tmp_path / f"{number}.npy"))
        np.save(files[-1], array)
    runner.task({"inputs": files[:2], "expected": files[2:], "tolerances": [(1e-4, 1e-4)]})
    timing = asdict(replace(CPU_TIMING, repeat=2, min_repeat_ms=0.1, constant_bytes=1 << 14))
    blob = build(str(task.module), task.default_schedule)
    for lap in range(3):
        message = {"id": 7, "timing": timing, "alone": True, "best_s": None}
        reply, _ = runner.work(message, b"" if lap else blob, Surroundings())
        assert reply["code"] == ErrorCode.OK
        turns = runner._in_turn[7]._turns  # type: ignore[attr-defined]
        assert len(copies) == lap + 1 and copies[lap] > 1 and not turns._copies
