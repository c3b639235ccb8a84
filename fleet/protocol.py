"""Messages between a tuner and a device: numbers, texts and bytes in dicts, so that Python versions may differ."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import __version__
from ..dialects.numpy_types import teach_numpy
from ..search.measure.measurement import MeasureError, MeasureTask
from ..search.measure.tolerance import tolerances_of

Order = dict[str, Any]
Answer = dict[str, Any]
Array = npt.NDArray[Any]

PROTOCOL = 2
"""Version of the messages, raised when one changes its meaning."""

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_KEY_RESOURCE = "loopwright-key-"
_MOST_BYTES = 1 << 34
"""Bytes of an array that a device takes."""


class FleetError(MeasureError):
    """A fleet cannot do what it is asked for; the sentence says why."""


class FleetInputError(FleetError):
    """An address, a key or numbers of devices cannot be used as they are given: nobody was asked."""


def require_key(key: str) -> str:
    """Return the key of a kind of device; ValueError where it is none."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise ValueError(f"a key is up to 64 letters, digits, '_', '.' and '-', got {key!r}")
    return key


def key_resource(key: str) -> str:
    """Dask's resource that each device under a key has one of, while it takes jobs."""
    return f"{_KEY_RESOURCE}{key}"


def key_of(resource: str) -> str:
    """The key that a resource of Dask's is of; empty where it is another one."""
    return resource[len(_KEY_RESOURCE) :] if resource.startswith(_KEY_RESOURCE) else ""


BUILDER_RESOURCE = "loopwright-builder"
"""Dask's resource that a machine without a device has one of for each candidate that it builds at once."""


def device_resource(identity: str) -> str:
    """Dask's resource that one device alone has."""
    return f"loopwright-device-{identity}"


def order(op: str, **fields: Any) -> Order:
    """Return what a device is asked for."""
    return {"op": op, "protocol": PROTOCOL, "version": __version__, **fields}


def why_refused(order: Mapping[str, Any], member: str) -> str | None:
    """The reason why a member of a fleet refuses an order of another version of the protocol; None where it does."""
    if order.get("protocol") == PROTOCOL:
        return None
    theirs = f"loopwright {order.get('version')} with protocol {order.get('protocol')}"
    return (
        f"the tuner is {theirs}, {member} is loopwright {__version__} with protocol {PROTOCOL}: install the "
        "same version on both"
    )


def pack_arrays(arrays: Sequence[Array]) -> list[dict[str, Any]]:
    """Return arrays as plain data."""
    return [{"dtype": a.dtype.name, "shape": [*a.shape], "data": np.ascontiguousarray(a).tobytes()} for a in arrays]


def unpack_arrays(packed: Sequence[Mapping[str, Any]]) -> list[Array]:
    """Return the arrays that `pack_arrays` made; ValueError where it is something else."""
    return [_unpack(each) for each in packed]


def _unpack(packed: Mapping[str, Any]) -> Array:
    name, shape, data = str(packed["dtype"]), [int(extent) for extent in packed["shape"]], packed["data"]
    teach_numpy(name)
    try:
        dtype = np.dtype(name)
    except TypeError as error:
        raise ValueError(f"an array of {name!r}, which is no element type") from error
    size = math.prod(shape) * dtype.itemsize
    if dtype.hasobject or min(shape, default=0) < 0 or size != len(data) or size > _MOST_BYTES:
        raise ValueError(f"an array of {name} and shape {shape} in {len(data)} bytes")
    return np.frombuffer(bytearray(data), dtype).reshape(shape)


def pack_task(task: MeasureTask) -> dict[str, Any]:
    """Return the data that candidates of a task are checked by, as plain data; a device needs no IR."""
    return {
        "inputs": pack_arrays(task.inputs),
        "expected": pack_arrays(task.expected),
        "tolerances": [[float(number) for number in each] for each in task.tolerances],
    }


def unpack_task(packed: Mapping[str, Any]) -> MeasureTask:
    """Return the task that `pack_task` packed, without its workload."""
    inputs, expected = unpack_arrays(packed["inputs"]), unpack_arrays(packed["expected"])
    return MeasureTask("", inputs, expected, tolerances_of(packed["tolerances"]))


def digest_of(packed: Mapping[str, Any]) -> str:
    """Return the name under which a device keeps a task's data: a hash of all of it."""
    found = hashlib.sha256(repr(packed["tolerances"]).encode())
    for kind in ("inputs", "expected"):
        for array in packed[kind]:
            found.update(repr((kind, array["dtype"], array["shape"])).encode())
            found.update(array["data"])
    return found.hexdigest()[:32]
