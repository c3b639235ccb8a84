"""Builders are forked with their imports done, and end as processes that were started do."""

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopwright.search.measure.measurement import MeasureOptions
from loopwright.search.measure.nursery import Forked, Nursery
from loopwright.search.measure.process import WorkerProcess
from loopwright.search.measure.runners import LocalBuilders

MODULE = "tempfile"  # something that is imported soon
SAYS = """
import os, sys, time
def main():
    os.write(int(sys.argv[-1]), " ".join([sys.argv[1], os.environ["SAID"], str(os.getppid())]).encode())
    if sys.argv[1] == "ends":
        return 3
    if sys.argv[1] == "raises":
        raise KeyError("no such thing")
    time.sleep(60)
"""
FULL = """
import errno, os
fork, forked = os.fork, []
def once():
    if forked:
        raise BlockingIOError(errno.EAGAIN, "too many processes")
    forked.append(True)
    return fork()
os.fork = once
"""


@pytest.fixture
def nursery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nursery]:
    (tmp_path / "says.py").write_text(SAYS)
    monkeypatch.syspath_prepend(tmp_path)
    made = Nursery([MODULE, "no.such.module"], {})
    yield made
    made.close()
    made.close()


def forked(nursery: Nursery, word: str) -> tuple[Forked, str]:
    """A process that says a word, and what it said."""
    ours, theirs = socket.socketpair()
    with tempfile.TemporaryFile() as output, ours:
        with theirs:
            options = {"stdin": subprocess.PIPE, "stdout": output, "stderr": output, "start_new_session": True}
            process = nursery.spawn("says", [word], theirs, {"SAID": "environment"}, **options)
        said = ours.recv(4096).decode()
        if word == "raises":
            process.wait(10)
            said += os.pread(output.fileno(), 4096, 0).decode()
    assert isinstance(process, Forked)
    return process, said


def test_a_forked_process_has_its_arguments_and_environment_and_ends_as_it_says(nursery: Nursery) -> None:
    process, said = forked(nursery, "ends")
    assert said.split()[:2] == ["ends", "environment"] and process.wait(10) == process.wait() == 3


def test_the_versions_of_a_backend_are_asked_once_for_all_that_are_forked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "asked.py").write_text("TIMES = []\ndef versions():\n    TIMES.append(1)\n")
    (tmp_path / "says.py").write_text(SAYS.replace('os.environ["SAID"]', "str(sys.modules['asked'].TIMES)"))
    monkeypatch.syspath_prepend(tmp_path)
    made = Nursery(["asked"], {})
    process, said = forked(made, "ends")
    assert said.split()[:2] == ["ends", "[1]"] and process.wait(10) == 3
    made.close()


def test_one_that_raises_writes_a_traceback_and_ends_with_1(nursery: Nursery) -> None:
    process, said = forked(nursery, "raises")
    assert process.returncode == 1 and "KeyError: 'no such thing'" in said


def test_one_that_is_killed_says_by_what_and_may_be_waited_for_in_vain(nursery: Nursery) -> None:
    process, _ = forked(nursery, "stays")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(10) == -signal.SIGKILL


def test_without_its_nursery_a_process_is_started_by_itself(nursery: Nursery) -> None:
    first, said = forked(nursery, "stays")
    left = first.pid
    os.kill(int(said.split()[-1]), signal.SIGKILL)
    assert first.wait(10) == -signal.SIGKILL  # so that its candidate gets a second chance
    os.kill(left, signal.SIGKILL)
    nursery._process.wait(10)
    ours, theirs = socket.socketpair()
    with ours, theirs, tempfile.TemporaryFile() as output:
        second = nursery.spawn("no_such_module", [], theirs, {}, stdout=output, stderr=output)
        assert isinstance(second, subprocess.Popen) and second.wait(10) == 1


def test_one_that_is_let_go_before_it_is_forked_is_not_waited_for_nor_forked(nursery: Nursery, tmp_path: Path) -> None:
    first, said = forked(nursery, "ends")
    first.wait(10)
    parent = int(said.split()[-1])
    os.kill(parent, signal.SIGSTOP)
    ours, theirs = socket.socketpair()
    with ours, tempfile.TemporaryFile() as output:
        with theirs:
            process = nursery.spawn("says", ["stays"], theirs, {"SAID": "environment"}, stdout=output)
        assert process.stdin is not None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.stdin.close()
        with pytest.raises(ProcessLookupError):
            _ = process.pid
        assert process.wait() == -signal.SIGKILL
        os.kill(parent, signal.SIGCONT)
        assert ours.recv(4096) == b""
        assert b"let go" in os.pread(output.fileno(), 4096, 0)


def test_a_nursery_that_was_stopped_tells_of_who_ended(nursery: Nursery) -> None:
    process, said = forked(nursery, "stays")
    pid = process.pid
    os.kill(int(said.split()[-1]), signal.SIGSTOP)
    os.kill(pid, signal.SIGKILL)
    assert process.wait(10) == -signal.SIGKILL


def test_nobody_waits_without_end_for_a_process_of_which_nobody_tells() -> None:
    ours, theirs = socket.socketpair()
    told, _ = os.pipe()

    class Untold(Forked):
        def wait(self, timeout: float | None = None) -> int:
            assert timeout is not None
            return super().wait(0.01)

    def start(*_: object, **__: object) -> Forked:
        process = Untold(os.fdopen(os.pipe()[1], "wb"), told)
        process._pid = 1 << 30  # one that is not there
        return process

    with ours, theirs:
        worker = WorkerProcess("builder", "none", {}, start=start)
        worker.kill()


def test_others_live_on_where_one_cannot_be_forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "says.py").write_text(SAYS)
    (tmp_path / "full.py").write_text(FULL)
    monkeypatch.syspath_prepend(tmp_path)
    nursery = Nursery(["full"], {})
    first, _ = forked(nursery, "stays")
    ours, theirs = socket.socketpair()
    with ours, tempfile.TemporaryFile() as output:
        with theirs:
            second = nursery.spawn("says", ["stays"], theirs, {"SAID": "environment"}, stdout=output)
        assert second.wait(10) == -signal.SIGKILL
        assert b"cannot be forked" in os.pread(output.fileno(), 4096, 0)
    with pytest.raises(subprocess.TimeoutExpired):
        first.wait(0.1)
    nursery.close()
    assert first.wait(10) == -signal.SIGTERM


def test_builders_are_forked_and_end_with_their_nursery(tmp_path: Path) -> None:
    builders = LocalBuilders(MeasureOptions("loopwright.backends.llvm.device", builders=2), tmp_path)
    workers = [builders.start() for _ in range(2)]
    assert all(isinstance(worker._process, Forked) for worker in workers)
    for worker in workers:
        while not (said := worker.receive()):
            time.sleep(0.01)
        assert said[0][0]["op"] == "hello" and "versions" in said[0][0]
    builders.close()
    for worker in workers:
        assert "killed by SIGKILL" in worker.exit_reason()


@pytest.mark.parametrize("options", [{"builders": 1}, {"backend": "loopwright.backends.opencl.device"}])
def test_one_builder_and_those_that_may_have_threads_are_started_by_themselves(
    options: dict[str, object], tmp_path: Path
) -> None:
    asked = {"backend": "loopwright.backends.llvm.device", "builders": 2, **options}
    assert LocalBuilders(MeasureOptions(**asked), tmp_path)._nursery is None  # type: ignore[arg-type]
