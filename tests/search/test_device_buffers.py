"""Checks on a device say what the checks on the host say, and CUDA's compile."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from loopwright.backends.c_family.checks import DTYPES, blocks, unlike_source, wrong_source
from loopwright.backends.cuda.nvrtc import compile_cubin
from loopwright.dialects.numpy_types import teach_numpy
from loopwright.search.measure.buffers import Buffers, poison_value
from loopwright.search.measure.device_buffers import Checks, DeviceBuffers
from loopwright.search.measure.tolerance import EXACT, Tolerance

Array = npt.NDArray[Any]
After = Callable[[Sequence[Any]], None]
"""Something more that a kernel does to its buffers."""

SPECIAL = [0.0, -0.0, 1.0, -1.0, 1.05, 0.5, 3e4, -3e4, np.inf, -np.inf, np.nan]


def known(dtype: str) -> np.dtype[Any]:
    try:
        teach_numpy(dtype)
    except ValueError:
        pytest.skip("no ml_dtypes")
    return np.dtype(dtype)


@pytest.fixture(scope="module")
def checks() -> Checks:
    pytest.importorskip("pyopencl")
    from loopwright.backends.opencl.device import checks

    return checks()


def saved(folder: Path, **arrays: Array) -> list[str]:
    paths: list[str] = []
    for name, array in arrays.items():
        paths.append(str(folder / f"{name}.npy"))
        np.save(paths[-1], array)
    return paths


class Copying:
    """A kernel on the host's side of a device: it writes given arrays to the outputs, and perhaps elsewhere."""

    def __init__(self, checks: Checks, outputs: Sequence[Array], after: After | None = None) -> None:
        self.checks, self.outputs, self.after = checks, outputs, after

    def run(self, args: Sequence[Array]) -> None:
        raise NotImplementedError

    def time(self, args: Sequence[Array], number: int) -> float:
        raise NotImplementedError

    def time_on(self, buffers: Sequence[Any], number: int) -> float:
        raise NotImplementedError

    def run_on(self, buffers: Sequence[Any], args: Sequence[Array]) -> None:
        for array, buffer in zip(self.outputs, buffers[-len(self.outputs) :], strict=True):
            self.checks.upload(buffer, array)
        if self.after is not None:
            self.after(buffers)


@pytest.mark.parametrize("dtype", [*DTYPES, "int32", "int8", "bool"])
@pytest.mark.parametrize("tolerance", [(0.0, 0.0), (0.1, 1e-2)])
@pytest.mark.few(2)
def test_the_device_judges_as_the_host_does(
    checks: Checks, tmp_path: Path, dtype: str, tolerance: tuple[float, float]
) -> None:
    kind = known(dtype)
    rng = np.random.default_rng(0)
    is_float = dtype in DTYPES
    pairs = [(a, b) for a in SPECIAL for b in SPECIAL] if is_float else [(0, 0), (1, 1), (0, 1), (1, 0)]
    right = np.array([b for _, b in pairs]).astype(kind)
    paths = saved(tmp_path, e=right)
    buffers = DeviceBuffers(checks, [], paths, [Tolerance(*tolerance)], dtypes=[dtype])
    host = Buffers([], paths, [Tolerance(*tolerance)], dtypes=[dtype])
    for trial in range(12):
        got = right.copy()
        chosen = rng.integers(len(pairs), size=trial)
        got[chosen] = np.array([a for a, _ in pairs]).astype(kind)[chosen]
        buffers.poison()
        assert dtype == "bool" or buffers.wrong() is not None, "poison is never right"
        buffers.run(Copying(checks, [got]))
        host.args[0][...] = got
        assert buffers.wrong() == host.wrong()
        assert buffers.memory_violation() is None


def test_what_was_written_beside_the_outputs_is_found(checks: Checks, tmp_path: Path) -> None:
    x, y = np.arange(37, dtype=np.float32), np.arange(7, dtype=np.float16)
    buffers = DeviceBuffers(checks, saved(tmp_path, x=x), saved(tmp_path, y=y), [EXACT])

    def at(argument: int, byte: int) -> After:
        """Write a word somewhere around an argument."""
        place = (*buffers._inputs, *buffers._outputs)[argument]

        def write(_: Sequence[Any]) -> None:
            whole = np.empty_like(place.whole)
            checks.download(whole, place.buffer)
            whole[4096 + byte : 4096 + byte + 4] ^= 0xFF
            checks.upload(place.buffer, whole)

        return write

    def judged(after: After | None) -> str | None:
        buffers.poison()
        buffers.run(Copying(checks, [y], after))
        found = buffers.memory_violation()
        buffers.restore_inputs()
        return found

    assert judged(None) is None
    assert judged(at(0, 0)) == judged(at(0, 37 * 4 - 4)) == "changed its input 0"
    assert judged(at(0, -4)) == judged(at(0, 37 * 4)) == judged(at(0, -4096)) == "wrote outside of argument 0"
    assert judged(at(1, -4)) == judged(at(1, 16)) == judged(at(1, 16 + 4092)) == "wrote outside of argument 1"
    assert judged(None) is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_cuda_checks_compile(dtype: str) -> None:
    assert compile_cubin(wrong_source("cuda", dtype), 90).resources[0].spill_store_bytes == 0
    assert compile_cubin(unlike_source("cuda"), 75).code


def test_as_many_blocks_as_are_of_use() -> None:
    assert [blocks(n) for n in (0, 1, 256, 257, 1 << 30)] == [1, 1, 1, 2, 2048]


def test_poison_fits_its_type() -> None:
    for dtype in ("float16", "float32", "float64", "int8", "int64"):
        for values in ([1, 2], [1, np.nan] if dtype.startswith("float") else [3, 4]):
            expected = np.array(values).astype(dtype)
            poison = np.full(2, poison_value(expected), dtype)
            assert not np.array_equal(poison, expected, equal_nan=dtype.startswith("float"))
            assert not np.isinf(poison.astype(float)).any()
