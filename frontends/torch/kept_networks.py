"""Networks of regions on CPUs kept between processes, by graph, values of parameters, target, records and code.

Importing a region, its passes and the packing of its constants take longer than reading what came of them: 1.4 s of CPU
time and 0.6 for a ResNet-50 (Zen 3).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np

from ...backends.arrays import aligned_copy
from ...dialects.numpy_types import teach_numpy
from ...dialects.target import Target
from ...graph.builders import made_by
from ...graph.export import CpuNetwork
from ...graph.runtime.package import Package, data_of
from ...graph.runtime.plan import Plan
from ...search.applied import APPLIED
from ...search.measure.backend_api import backend_path
from ...search.sketch.foreign_rules import are_own_rules
from ...storage.binary_cache import BinaryCache
from ...storage.code_digest import KERNEL_CODE, code_digest, models_digest
from ...storage.folders import cache_folder
from .model_key import graph_key
from .types import Array, Tensor, array_of, memory_order

Key = tuple[str, ...]
_MOST_PARAMETER_BYTES = 1 << 30
"""Parameters of more bytes are not looked through. 100 MB of a ResNet-50 take 0.07 s (Zen 3)."""
_MOST_CONSTANT_BYTES = 1 << 28
"""Networks with more bytes of constants beside PyTorch's own memory are not kept."""
_MOST_BYTES = 1 << 30
"""Above this the oldest networks go. As much as kernels may take."""
NETWORK_CODE = (*KERNEL_CODE, "frontends", "graph", "templates", "topi")
"""The folders of the code that makes networks."""


def key_of(rows: Iterable[str], target: Target, parameters: Mapping[int, Tensor], records: str | None) -> Key | None:
    """Return what decides the network of a graph, by its rows, with arguments as constants; None where none is kept.

    That is so on other targets than CPUs, with large parameters, and where histories of tuning are applied around or
    sketch rules do not all come with loopwright.
    """
    if target.kind != "llvm" or APPLIED.get() or not are_own_rules():
        return None
    if sum(tensor.nbytes for tensor in parameters.values()) > _MOST_PARAMETER_BYTES:
        return None
    made_for = (str(target), *made_by(backend_path(target.kind)))
    digests = [code_digest(NETWORK_CODE), code_digest(("pretuned",), "*.jsonl"), models_digest()]
    known = "" if records is None else _digest(Path(records).read_bytes())
    constants = [
        (place, *map(str, (tensor.dtype, tuple(tensor.shape), tensor.stride())), _digest(_bytes(tensor)))
        for place, tensor in sorted(parameters.items())
    ]
    return graph_key(rows, str(target)), *made_for, *digests, known, json.dumps(constants)


def kept(key: Key, target: Target, parameters: Mapping[int, Tensor]) -> CpuNetwork | None:
    """Return the network kept for a key, on the memory of parameters where it reads them as they are."""
    entry = _cache().view(key)
    if entry is None:
        return None
    about, binary = json.loads(entry[0]), entry[1]
    parts = [binary[start:end] for start, end in pairwise(accumulate(about["sizes"], initial=0))]
    count = len(about["plan"]["kernels"])
    stored = iter(parts[count:])
    constants = [
        _stored(next(stored), dtype, shape) if place is None else _in_memory(parameters[place]).reshape(shape)
        for dtype, shape, place in about["constants"]
    ]
    package = Package(Plan.from_json(about["plan"]), tuple(map(bytes, parts[:count])), tuple(constants))
    return CpuNetwork(package, target, about["workloads"])


def keep(key: Key, network: CpuNetwork, parameters: Mapping[int, Tensor]) -> None:
    """Keep a network for other processes, unless it has too many constants."""
    package = network.package
    addresses = {(tensor.data_ptr(), tensor.nbytes): place for place, tensor in parameters.items()}
    places = [addresses.get((array.ctypes.data, array.nbytes)) for array in package.constants]
    own = [array for array, place in zip(package.constants, places, strict=True) if place is None]
    if sum(array.nbytes for array in own) > _MOST_CONSTANT_BYTES:
        return
    parts: Sequence[bytes | memoryview] = [*package.kernels, *map(data_of, own)]
    about = {
        "plan": package.plan.to_json(),
        "workloads": network.workloads,
        "sizes": [len(part) for part in parts],
        "constants": [
            (array.dtype.name, array.shape, place) for array, place in zip(package.constants, places, strict=True)
        ],
    }
    cache = _cache()
    cache.put(key, json.dumps(about), *parts)
    cache.prune()


def _cache() -> BinaryCache:
    return BinaryCache(cache_folder("networks"), _MOST_BYTES)


def _stored(data: memoryview, dtype: str, shape: Sequence[int]) -> Array:
    teach_numpy(dtype)
    return aligned_copy(np.frombuffer(data, np.dtype(dtype)).reshape(shape))


def _in_memory(tensor: Tensor) -> Array:
    """Return a tensor's elements as they lie in memory."""
    order = memory_order(tensor.shape, tensor.stride())
    return array_of(tensor.contiguous() if order is None else tensor.permute(order))


def _bytes(tensor: Tensor) -> memoryview:
    return data_of(_in_memory(tensor))


def _digest(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()
