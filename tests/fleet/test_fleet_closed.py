"""A fleet is closed to strangers: certificates, addresses, and what a device makes of what it is sent."""

import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import fake_backend
import pytest
from fleets import KEY, fake_fleet, options_on

import loopwright as lw
from loopwright.fleet.job import serve
from loopwright.fleet.protocol import FleetError, pack_arrays, unpack_arrays
from loopwright.fleet.security import make_certificates, require_closed, security_of
from loopwright.search.measure.measurer import Measurer, MeasureTask
from loopwright.search.measure.tolerance import EXACT

pytest.importorskip("cryptography")


@pytest.mark.usefixtures("quick_measuring")
def test_with_certificates_only_their_holders_take_part(tmp_path: Path) -> None:
    ours, others = make_certificates(tmp_path / "ours"), make_certificates(tmp_path / "others")
    assert stat.S_IMODE((ours / "key.pem").stat().st_mode) == 0o600
    before = (ours / "ca.pem").read_bytes()
    assert make_certificates(ours) == ours and (ours / "ca.pem").read_bytes() == before
    source, expected = fake_backend.data()
    with fake_fleet(1, tls_dir=ours) as fleet:
        with Measurer(options_on(fleet, tls_dir=ours)) as measurer:
            measurer.use(MeasureTask("t", [source], [expected], [EXACT]))
            assert measurer.measure(["time=0.001"])[0].ok
        with pytest.raises(
            FleetError, match=r"^the tracker at 127.0.0.1:\d+ is not of this fleet \(.*\): use the ca.pem"
        ):
            lw.fleet_status(fleet.tracker, tls_dir=others)
        with pytest.raises(
            FleetError,
            match=r"^the tracker at .* is not of this fleet \(it speaks TLS, and no --tls-dir was given\): use",
        ):
            lw.fleet_status(fleet.tracker)
    (ours / "cert.pem").write_text("none")
    with pytest.raises(FleetError, match=r"^the certificates in .* cannot be used"):
        security_of(ours)
    (ours / "cert.pem").unlink()
    with pytest.raises(FleetError, match=r"^.* has no cert.pem: `loopwright fleet tracker --tls-dir` makes a set"):
        lw.FleetRunner(KEY, "127.0.0.1:1", tls_dir=ours).options(options_on_nothing()).runners(  # type: ignore[misc]
            options_on_nothing(), tmp_path, print
        )


def options_on_nothing() -> lw.MeasureOptions:
    return lw.MeasureOptions("fake_backend")


def test_an_address_for_strangers_takes_certificates_or_the_word() -> None:
    plain = security_of(None)
    require_closed("127.0.0.1", plain, insecure=False)
    require_closed("localhost", plain, insecure=False)
    require_closed("0.0.0.0", plain, insecure=True)
    with pytest.raises(FleetError, match=r"^0.0.0.0 can be reached by others, .*: give --tls-dir, or --insecure"):
        require_closed("0.0.0.0", plain, insecure=False)


ONLY_PLAIN = """
import pickle, sys
from loopwright.fleet.job import serve
from loopwright.fleet.register import take_plain_data_only
take_plain_data_only()
from distributed.protocol import pickle as dask_pickle
for data in pickle.load(sys.stdin.buffer):
    for loads in (pickle.loads, pickle._loads, dask_pickle.loads):
        try:
            found = loads(data)
            print("taken", found.func is serve and found.args[0]["artifact"] == b"code")
        except pickle.UnpicklingError as error:
            print(error)
"""


def test_a_device_unpickles_its_job_and_plain_data_only() -> None:
    pytest.importorskip("distributed")
    from dask._task_spec import Task

    task = Task("key", serve, {"op": "run", "artifact": b"code", "timing": {"number": 1}})
    sent = [task, os.system, eval, Task("key", os.system, "true"), fake_backend.Kernel("time=1")]
    done = subprocess.run(
        [sys.executable, "-c", ONLY_PLAIN],
        input=pickle.dumps([pickle.dumps(each) for each in sent]),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        check=True,
    )
    refused = "a device of a fleet takes jobs of plain data, and no "
    names = ["posix.system", "builtins.eval", "posix.system", "fake_backend.Kernel"]
    assert done.stdout.decode().splitlines() == ["taken True"] * 3 + [refused + name for name in names for _ in "123"]


@pytest.mark.parametrize(
    "packed",
    [
        {"dtype": "object", "shape": [1], "data": b"12345678"},
        {"dtype": "float32", "shape": [3], "data": b"1234"},
        {"dtype": "float32", "shape": [-1], "data": b""},
        {"dtype": "no such", "shape": [1], "data": b"1"},
    ],
)
def test_arrays_from_the_wire_are_checked(packed: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"^an array of "):
        unpack_arrays([packed])


def test_arrays_travel_as_they_are() -> None:
    import ml_dtypes
    import numpy as np

    arrays: list[Any] = [
        np.arange(6, dtype=np.int8).reshape(2, 3),
        np.ones((2, 0), ml_dtypes.bfloat16),
        np.float32(3).reshape(()),
    ]
    for sent, got in zip(arrays, unpack_arrays(pack_arrays(arrays)), strict=True):
        assert sent.dtype == got.dtype and sent.shape == got.shape and sent.tobytes() == got.tobytes()
