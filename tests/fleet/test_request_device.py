"""A device of a fleet from here: kernels, arrays and networks are sent, run and timed there."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fleets import fake_device

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.llvm.host import host_target
from loopwright.fleet.device import DeviceOptions
from loopwright.fleet.local_fleet import LocalFleet
from loopwright.fleet.protocol import FleetError
from loopwright.fleet.remote import RemoteArray, RemoteDevice, RemoteError

pytestmark = pytest.mark.usefixtures("quick_measuring")
ROWS, INNER, COLUMNS = 13, 40, 24


@pytest.fixture(scope="module")
def fleet(quick_measuring: None) -> Iterator[LocalFleet]:
    with LocalFleet([DeviceOptions("cpu", "here", host_target(cores=1)), fake_device("other", "fake")]) as running:
        yield running


@pytest.fixture(scope="module")
def remote(fleet: LocalFleet) -> Iterator[RemoteDevice]:
    with lw.request_device("cpu", fleet.tracker) as device:
        yield device


def product(target: lw.Target) -> lw.SearchTask:
    a, b = te.placeholder((ROWS, INNER), name="a"), te.placeholder((INNER, COLUMNS), name="b")
    return lw.SearchTask(te.create_module([a, b, topi.matmul(a, b)]), target=target)


def test_a_kernel_built_here_runs_there(remote: RemoteDevice) -> None:
    assert remote.target == host_target(cores=1) and remote.name == "here"
    task = product(remote.target)
    kernel = remote.load_kernel(task)
    assert kernel.inputs == ("a", "b")
    a, b = task.reference.inputs
    np.testing.assert_allclose(kernel(a, b), task.reference.expected[0], atol=1e-4)
    there = kernel.run(remote.array(a), remote.array(b))
    assert isinstance(there, RemoteArray) and there.shape == (ROWS, COLUMNS)
    np.testing.assert_allclose(there.numpy(), task.reference.expected[0], atol=1e-4)
    result = kernel.benchmark(number=2, repeat=3)
    assert len(result.times_s) == 3 and result.min > 0


def test_a_network_compiled_here_runs_there(remote: RemoteDevice, tmp_path: Path) -> None:
    net = lw.Network("small")
    x = net.input("x", (4, 8))
    weights = np.random.default_rng(0).standard_normal((3, 8), np.float32)
    net.output(net.relu(net.dense(x, net.constant(weights, "w"))))
    compiled = lw.compile(net, remote.target)
    data = np.random.default_rng(1).standard_normal((4, 8), dtype=np.float32)
    expected = compiled.executor()(data)
    compiled.save(tmp_path / "net.lw")
    for sent in (tmp_path / "net.lw", compiled):
        loaded = remote.load_network(sent)
        np.testing.assert_allclose(loaded.run(data), expected, atol=1e-5)
    assert len(loaded.benchmark(number=1, repeat=2).times_s) == 2
    profile = loaded.profile(repeat=2)
    assert len(profile.rows) == len(compiled.plan.steps) and "dense" in str(profile) and profile.total_s > 0


def test_what_fails_there_is_said_here(remote: RemoteDevice) -> None:
    with pytest.raises(RemoteError, match=r"^on device 'here': this is no LLVM kernel artifact of this version$"):
        remote.load_kernel(b"nonsense")
    kernel = remote.load_kernel(product(remote.target))
    with pytest.raises(RemoteError, match=r"^on device 'here': kernel .* takes 2 arrays"):
        kernel(np.zeros(3, np.float32))


def test_a_closed_device_takes_nothing(fleet: LocalFleet) -> None:
    with lw.request_device("cpu", fleet.tracker) as device:
        device.array([1.0])
    with pytest.raises(RemoteError, match=r"^device 'here' was closed: ask for it again$"):
        device.array([1.0])
    with pytest.raises(FleetError, match=r"^no device 'gpu' at .*; registered: cpu, fake "):
        lw.request_device("gpu", fleet.tracker)


def test_status_counts_by_key(fleet: LocalFleet) -> None:
    found = lw.fleet_status(fleet.tracker)
    assert [(q.key, q.total, q.pending) for q in found.queues] == [("cpu", 1, 0), ("fake", 1, 0)]
    assert [d.name for d in found.devices] == ["here", "other"] and str(found).startswith(
        "key   total  free  pending\n"
    )


def test_code_for_another_architecture_is_sent_and_refused_there(remote: RemoteDevice) -> None:
    other = "riscv64" if "riscv" not in str(remote.target) else "aarch64"
    with pytest.raises(RemoteError, match=f"is compiled for {other}, this CPU is"):
        remote.load_kernel(product(lw.resolve_target(f"llvm arch={other}")))


def test_without_dask_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    for ask in (lambda: lw.fleet_status("127.0.0.1:1"), lambda: lw.request_device("cpu", "127.0.0.1:1")):
        with pytest.raises(lw.MissingRequirement, match="pip install 'loopwright\\[fleet\\]'"):
            ask()
