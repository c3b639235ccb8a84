"""The OpenCL devices of this machine, in a fixed order: GPUs first; simulators are left out."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

from ...dialects.target import Target
from ..missing import MissingRequirement

NVIDIA_DRIVER = "libnvidia-opencl.so.1"
INSTALL = "pip install 'loopwright[opencl]'"
_SIMULATORS = ("oclgrind",)
"""Platforms that check kernels and run them a thousand times slower."""


class MissingOpenCl(MissingRequirement):
    """OpenCL, or the device asked for, is not here."""


def devices() -> tuple[Any, ...]:
    """Return all devices that kernels may run on; raises MissingOpenCl naming what to install."""
    try:
        import pyopencl as cl
    except ImportError as error:
        raise MissingOpenCl(_nothing(f"it needs pyopencl, which does not load ({error}): {INSTALL}")) from error
    try:
        platforms = cl.get_platforms()
    except cl.LogicError as error:
        instead = unregistered_driver(()) or f"install a driver, for CPUs {INSTALL}"
        raise MissingOpenCl(_nothing(f"it finds no platform ({error}): {instead}")) from error
    found = [
        device
        for platform in platforms
        if platform.name.lower() not in _SIMULATORS
        for device in platform.get_devices()
    ]
    return tuple(sorted(found, key=lambda device: not device.type & cl.device_type.GPU))


def _nothing(why: str) -> str:
    return f"no device here to run OpenCL on: {why}; to make kernels without one, name it: 'opencl model=mali-g610'"


def unregistered_driver(platforms: Sequence[str]) -> str | None:
    """Return how to make a driver known to OpenCL that is here and of none of the platforms found, by their names.

    NVIDIA's driver in a container often comes without the file that names it.
    """
    if any("nvidia" in name.lower() for name in platforms):
        return None
    try:
        ctypes.CDLL(NVIDIA_DRIVER)
    except OSError:
        return None
    return (
        "NVIDIA's driver is here, but no file tells OpenCL so: write "
        f"{NVIDIA_DRIVER} into /etc/OpenCL/vendors/nvidia.icd, or into nvidia.icd in a folder that OCL_ICD_VENDORS "
        "and OPENCL_VENDOR_PATH name"
    )


def device_at(index: int = 0) -> Any:
    """Return a device by its number; raises MissingOpenCl naming those there are."""
    found = devices()
    if index >= len(found):
        names = ", ".join(device.name.strip() for device in found) or "none"
        more = unregistered_driver([device.platform.name for device in found])
        raise MissingOpenCl(f"there is no OpenCL device {index}; devices here: {names}{f'; {more}' if more else ''}")
    return found[index]


@cache
def context_of(index: int) -> Any:
    """Return the context of a device, one in a process."""
    import pyopencl as cl

    return cl.Context([device_at(index)])


@cache
def queue_of(index: int) -> Any:
    """Return the queue of a device, one in a process: what is put in runs in order, and is timed."""
    import pyopencl as cl

    return cl.CommandQueue(context_of(index), properties=cl.command_queue_properties.PROFILING_ENABLE)


def describe(device: Any) -> str:
    """Return a device's name with its driver's version, as records keep it."""
    return f"{device.name.strip()} ({device.platform.name.strip()} {device.driver_version.strip()})"


def target_of_device(index: int = 0) -> Target:
    """Return the target that a device's own description gives."""
    device = device_at(index)
    return Target(
        kind="opencl",
        model=model_name(device.name),
        cores=int(device.max_compute_units),
        vector_bytes=16,
        l1_bytes=0,
        l2_bytes=int(device.global_mem_cache_size),
        max_threads_per_block=int(min(device.max_work_group_size, device.max_work_item_sizes[0])),
        max_shared_bytes=int(device.local_mem_size),
        max_vthreads=8,
    )


def model_name(name: str) -> str:
    """Return a device's name as a word: `NVIDIA H200` is `nvidia-h200`."""
    return "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())
