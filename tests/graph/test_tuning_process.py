"""Tuning in a process beside: it tells of what it finds, and ends with its parent, however that ends."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import wait_until
from processes import alive, marked_processes

import loopwright as lw
from loopwright.graph.compiler import compile
from loopwright.graph.export import CpuNetwork
from loopwright.graph.tuning_process import TuningJob, TuningProcess, tune
from loopwright.search.measure import wire

pytestmark = pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")


def network(records: Any = None) -> CpuNetwork:
    net = lw.Network()
    x = net.input("x", (8, 32))
    for _ in range(2):
        x = net.relu(net.matmul(x, net.constant(np.ones((32, 32), np.float32), "w")))
    net.output(net.matmul(x, net.constant(np.ones((32, 16), np.float32), "v")))
    made = compile(net, "llvm cores=2", records)
    assert isinstance(made, CpuNetwork)
    return made


def test_jobs_count_how_often_kernels_run(tmp_path: Path) -> None:
    job = TuningJob.of(network(), str(tmp_path / "r.jsonl"), 6, 1.0)
    assert [kernel.weight for kernel in job.kernels] == [2, 1]


@pytest.mark.usefixtures("quick_measuring")
def test_news_follow_records_whose_kernels_are_compiled(tmp_path: Path) -> None:
    records = str(tmp_path / "new" / "records.jsonl")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        tune(TuningJob.of(network(), records, 4, 0.0), theirs)
        theirs.shutdown(socket.SHUT_WR)
        found = wire.receive(ours, wire.Decoder())
    assert found is not None and found[0]["latency_s"] > 0
    assert all(kernel.tuned for kernel in network(records).kernels)
    again, theirs = socket.socketpair()
    with again, theirs:
        tune(TuningJob.of(network(), records, 4, 0.0), theirs)
        theirs.shutdown(socket.SHUT_WR)
        assert wire.receive(again, wire.Decoder()) is None, "all trials are on record: there is nothing new"


_PARENT = """
import os, signal, sys, time
from test_tuning_process import network
from loopwright.graph.tuning_process import TuningJob, TuningProcess

process = TuningProcess(TuningJob.of(network(), sys.argv[1], 100_000, 1.0))
if sys.argv[2] == "forks" and not os.fork():
    time.sleep(600)  # a child that holds the other end of the process's connection
print(process.number, flush=True)
sys.stdin.readline()
if sys.argv[2] == "raises":
    raise RuntimeError
"""


@pytest.mark.slow(1.2)
@pytest.mark.few(1)
@pytest.mark.parametrize("way", ["killed", "ends", "raises", "forks"])
def test_the_process_ends_with_its_parent(tmp_path: Path, way: str) -> None:
    mark = f"LW_TEST_MARK={tmp_path}"
    paths = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]
    env = {**os.environ, "LW_TEST_MARK": str(tmp_path), "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-c", _PARENT, str(tmp_path / "r.jsonl"), way]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as parent:
        assert parent.stdout is not None and parent.stdin is not None
        tuner = int(parent.stdout.readline())
        assert wait_until(lambda: (tmp_path / "r.jsonl").exists() and len(marked_processes(mark)) >= 4)
        if way in ("killed", "forks"):
            parent.send_signal(signal.SIGKILL)
        else:
            parent.stdin.write("\n")
            parent.stdin.flush()
        parent.stdout.close()
    left = 1 if way == "forks" else 0
    assert wait_until(lambda: not alive(tuner) and len(marked_processes(mark)) == left)
    for number in marked_processes(mark):
        os.kill(number, signal.SIGKILL)


def test_a_process_that_is_not_wanted_is_ended(tmp_path: Path) -> None:
    process = TuningProcess(TuningJob.of(network(), str(tmp_path / "r.jsonl"), 100_000, 1.0))
    assert not process.wait_for_news(lambda: False)
    process.close()
    assert not alive(process.number)


def test_a_process_that_dies_has_no_news(tmp_path: Path) -> None:
    process = TuningProcess(TuningJob.of(network(), str(tmp_path / "r.jsonl"), 100_000, 1.0))
    os.kill(process.number, signal.SIGKILL)
    assert not process.wait_for_news(lambda: True)
    process.close()
