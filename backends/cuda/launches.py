"""Kernels launched on streams of other packages, which pycuda does not take: by calls of the driver's own library."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..c_family.artifact import Artifact
from ..device_lost import DeviceLost
from .driver import MissingCuda, context_handle, current, is_fatal
from .language import STATIC_SHARED_BYTES
from .runtime import check_device

_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES in cuda.h."""
BoundLaunch = tuple[tuple[Any, ...], Any]
"""A launch on addresses in an array: the arguments of cuLaunchKernel before the stream, and the array of parameters."""


@cache
def library() -> Any:
    """Return the driver's library; raises MissingCuda where there is none."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise MissingCuda(f"CUDA's driver does not load ({error}): install NVIDIA's driver") from error


def checked(status: int) -> None:
    """Raise the words of the driver for a status that is an error: DeviceLost where the context is lost by it."""
    if status == 0:
        return
    text = ctypes.c_char_p()
    library().cuGetErrorString(status, ctypes.byref(text))
    why = (text.value or b"").decode() or f"error {status}"
    if is_fatal(why):
        raise DeviceLost(f"CUDA: {why}")
    raise RuntimeError(f"CUDA: {why}")


class LoadedFunction:
    """The kernels of an artifact in a device's primary context, loaded whole, so that a capture may launch them."""

    def __init__(self, artifact: Artifact, index: int) -> None:
        check_device(artifact, index)
        self.kernel, self._index = artifact.kernel, index
        driver, self._module = library(), ctypes.c_void_p()
        self._heads: list[tuple[Any, ...]] = []
        with current(index):
            checked(driver.cuModuleLoadData(ctypes.byref(self._module), artifact.binary))
            for launch in artifact.kernel.launches:
                function = ctypes.c_void_p()
                checked(driver.cuModuleGetFunction(ctypes.byref(function), self._module, launch.name.encode()))
                if launch.dynamic_shared_bytes > STATIC_SHARED_BYTES:
                    checked(
                        driver.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED_SIZE_BYTES, launch.dynamic_shared_bytes)
                    )
                if hasattr(driver, "cuFuncLoad"):  # from CUDA 12.4 on; before it, the first launch loads a kernel
                    checked(driver.cuFuncLoad(function))
                sizes = (*launch.grid, *launch.block, launch.dynamic_shared_bytes)
                self._heads.append((function, *map(ctypes.c_uint, sizes)))

    def bound(self, pointers: Any) -> list[BoundLaunch]:
        """Return its launches on an array of 64-bit addresses, which is read when they start, and must be kept."""
        size = ctypes.sizeof(ctypes.c_uint64)
        made: list[BoundLaunch] = []
        for head, launch in zip(self._heads, self.kernel.launches, strict=True):
            places = [ctypes.addressof(pointers) + size * number for number in launch.buffers]
            made.append((head, (ctypes.c_void_p * len(places))(*places)))
        return made

    def __del__(self) -> None:
        if module := getattr(self, "_module", None):
            with contextlib.suppress(Exception), current(self._index):  # the interpreter or the device may be ending
                library().cuModuleUnload(module)


@dataclass(frozen=True)
class DeviceCopy:
    """A copy of so many bytes from one address to another."""

    target: int
    source: int
    nbytes: int

    def start(self, driver: Any, stream: Any) -> int:
        """Put it into a stream; returns the driver's status."""
        addresses = (ctypes.c_uint64(self.target), ctypes.c_uint64(self.source))
        return int(driver.cuMemcpyDtoDAsync_v2(*addresses, ctypes.c_size_t(self.nbytes), stream))


def enqueue(index: int, launches: Sequence[BoundLaunch], copies: Sequence[DeviceCopy], stream: int) -> None:
    """Put launches, then copies, into a stream of a device's primary context, given by its handle; waits for nothing.

    The context is made the thread's current one meanwhile: threads that only use memory at hand have none yet.
    """
    driver, handle = library(), ctypes.c_void_p(stream)
    checked(driver.cuCtxPushCurrent_v2(context_handle(index)))
    try:
        start = driver.cuLaunchKernel
        for head, parameters in launches:
            if status := start(*head, handle, parameters, None):
                checked(status)
        for copy in copies:
            checked(copy.start(driver, handle))
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
