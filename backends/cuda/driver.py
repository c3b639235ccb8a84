"""The CUDA devices of this machine: their primary contexts, which other packages share, and their limits."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from ...dialects.gpu_models import MAX_VTHREADS
from ...dialects.presets import MAKERS, model_of
from ...dialects.target import Target
from ..device_lost import DeviceLost
from ..missing import MissingRequirement

INSTALL = "pip install 'loopwright[cuda]' where CUDA's headers are (CUDA_ROOT)"
_FATAL = (
    "illegal",
    "misaligned",
    "launch failed",
    "launch failure",
    "launch timed out",
    "assert",
    "ECC",
    "lost",
    "invalid program counter",
    "address space",
    "hardware stack error",
    "context is destroyed",
)
"""Words of the errors after which a context is of no use (CUDA driver API, CUresult 214, 700 to 719)."""


class MissingCuda(MissingRequirement):
    """pycuda, the driver, or the device asked for is not here."""


@cache
def library() -> Any:
    """Return the driver's library; raises MissingCuda where there is none."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise MissingCuda(f"CUDA's driver does not load ({error}): install NVIDIA's driver") from error


@cache
def pycuda_driver() -> Any:
    """Return pycuda's driver module, initialized; raises MissingCuda saying what is missing."""
    if importlib.util.find_spec("pycuda") is None:
        raise _missing(f"running on CUDA needs pycuda, which is not installed: {INSTALL}")
    try:
        import pycuda.driver as driver
    except ImportError as error:
        raise _missing(f"CUDA's driver does not load ({error}): install NVIDIA's driver") from error
    try:
        driver.init()
    except driver.Error as error:
        raise _missing(f"CUDA's driver finds no device that works ({error})") from error
    return driver


def _missing(why: str) -> MissingCuda:
    return MissingCuda(f"no GPU here to run on: {why}; to compile without one, name it: 'cuda model=h200'")


def device_count() -> int:
    """Return how many devices there are; raises MissingCuda without pycuda or a driver."""
    return int(pycuda_driver().Device.count())


def device_at(index: int = 0) -> Any:
    """Return a device by its number; raises MissingCuda if there is none."""
    count = device_count()
    if not count:
        raise _missing("CUDA's driver finds no device")
    if index >= count:
        raise MissingCuda(f"there is no CUDA device {index}; this machine has {count}")
    return pycuda_driver().Device(index)


@cache
def _context(index: int) -> Any:
    return device_at(index).retain_primary_context()


@cache
def context_handle(index: int) -> Any:
    """Return the address of a device's primary context, as calls of the driver's library take it."""
    return ctypes.c_void_p(_context(index).handle)


def is_fatal(text: str) -> bool:
    """True for the text of an error after which a context is of no use."""
    return any(word in text for word in _FATAL)


@contextmanager
def current(index: int) -> Iterator[Any]:
    """Make a device's primary context current, and give pycuda's driver module.

    Nothing stays on pycuda's stack of contexts, which must be empty when the process ends. Errors after which a
    context is of no use are DeviceLost.
    """
    driver = pycuda_driver()
    context = _context(index)
    context.push()
    try:
        yield driver
    except driver.Error as error:
        if is_fatal(str(error)):
            raise DeviceLost(f"CUDA device {index}: {error}") from error
        raise
    finally:
        with suppress(driver.Error):
            driver.Context.pop()


def describe(index: int = 0) -> str:
    """Return a device's name and the version of CUDA that its driver speaks."""
    version = pycuda_driver().get_driver_version()
    return f"{device_at(index).name()} (CUDA {version // 1000}.{version % 1000 // 10} driver)"


def target_of_device(index: int = 0) -> Target:
    """Return the target that a device's own attributes give."""
    device, names = device_at(index), pycuda_driver().device_attribute
    major, minor = device.compute_capability()

    def get(*attributes: str) -> int:
        known = next((a for a in attributes if hasattr(names, a)), None)
        return int(device.get_attribute(getattr(names, known))) if known else 0

    warp_size = get("WARP_SIZE")
    return Target(
        kind="cuda",
        model=model_name(device.name()),
        cores=get("MULTIPROCESSOR_COUNT"),
        vector_bytes=16,
        l1_bytes=get("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
        l2_bytes=get("L2_CACHE_SIZE"),
        max_threads_per_block=get("MAX_THREADS_PER_BLOCK"),
        max_shared_bytes=get("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", "MAX_SHARED_MEMORY_PER_BLOCK"),
        warp_size=warp_size,
        max_vthreads=MAX_VTHREADS,
        compute_capability=10 * major + minor,
    )


def model_name(name: str) -> str:
    """Return a device's name as the presets have it: `NVIDIA GeForce RTX 4090` is `rtx4090`."""
    words = "".join(c if c.isalnum() else " " for c in name.lower()).split()
    return model_of("cuda", name) or "".join(word for word in words if word not in MAKERS) or "generic"
