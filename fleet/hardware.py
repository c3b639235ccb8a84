"""The devices that a machine registers: its CPU, or each of its GPUs, with the limits that the hardware tells."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence

from ..backends.cuda import driver as cuda
from ..backends.llvm.host import named_elsewhere
from ..backends.opencl import platform as opencl
from ..backends.targets import resolve_target
from ..dialects.target import options_of
from .device import DeviceOptions, describe
from .protocol import FleetError, FleetInputError

_VISIBLE = "CUDA_VISIBLE_DEVICES"


def device_count(kind: str) -> int:
    """The number of devices of a kind here; MissingRequirement where its driver is not."""
    if kind == "cuda":
        return cuda.device_count()
    return len(opencl.devices()) if kind == "opencl" else 1


def device_numbers(text: str, kind: str) -> list[int]:
    """The numbers of the devices that `all`, or a list such as `0,2`, names; FleetError for one that is not here."""
    count = device_count(kind)
    if not count:
        raise FleetError(f"there is no {kind} device here to be registered")
    if text == "all":
        return list(range(count))
    if not re.fullmatch(r"\d+(,\d+)*", text):
        raise FleetInputError(f"devices are 'all' or numbers, as in 0,1; got {text!r}")
    wanted = [int(number) for number in text.split(",")]
    if max(wanted) >= count:
        raise FleetError(f"there is no {kind} device {max(wanted)}: this machine has {count}, from 0")
    return wanted


def usual_kind() -> str:
    """`cuda` where there is such a device, else the CPU."""
    try:
        return "cuda" if device_count("cuda") else "llvm"
    except RuntimeError:
        return "llvm"


def describe_device(key: str, target: str, number: int, name: str | None = None, backend: str = "") -> DeviceOptions:
    """A device of this machine as it is registered; its processes see no other GPU.

    The limits are the hardware's; what `target` says beyond its kind is kept. MissingRequirement without a driver.
    """
    kind = target.split()[0] if target.split() else "llvm"
    given = set(options_of(target)) - {"kind"}
    env = {}
    if kind == "cuda":
        env[_VISIBLE] = _visible(number)
        limits = resolve_target(target) if given - {"cores"} else cuda.target_of_device(number)
    elif kind == "opencl":
        if number:
            raise FleetError("kernels for opencl run on the first device of this machine: register 0")
        limits = resolve_target(target) if given - {"cores"} else opencl.target_of_device(opencl.devices()[number])
    else:
        limits = named_elsewhere(resolve_target(target))
    own = name or f"{host_name()}-{kind}{number}"
    return describe(key, own, limits, backend=backend, env=env)


def _visible(number: int) -> str:
    """The value by which the driver shows one device alone, as this process counts them."""
    seen: Sequence[str] = [each for each in os.environ.get(_VISIBLE, "").split(",") if each]
    return seen[number] if number < len(seen) else str(number)


def host_name() -> str:
    """The name of this machine, as names of devices are written."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", socket.gethostname()) or "device"
