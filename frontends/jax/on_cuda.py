"""Calls of a compiled network on JAX's arrays of a CUDA device, by DLPack: nothing goes through the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...backends.cuda.dlpack import CUDA
from ...backends.cuda.driver import current
from ...backends.device_array import DeviceArray
from ...backends.forkable import ForkableLock
from ...graph.runtime.on_cuda import CudaNetwork


class CudaCalls:
    """A network on a device: it reads arguments where JAX has them, and writes results to memory of their own."""

    def __init__(self, network: CudaNetwork) -> None:
        self._network = network
        self._frame = network.frame([int(constant) for constant in network.constants])
        self._workspace = network.allocate(network.binding.workspace_bytes)
        self._lock = ForkableLock()
        with current(network.index) as driver:
            self._stream = driver.Stream()

    def __call__(self, leaves: Sequence[Any]) -> list[DeviceArray]:
        """Run on arrays once JAX has computed them, and return results that are there."""
        network = self._network
        given = [self._view(leaf) for leaf in leaves]
        made = [network.empty(port.shape, port.dtype) for port in network.plan.outputs]
        addresses = [int(array.buffer) for array in (*given, *made)]
        with self._lock, current(network.index):
            self._frame.run(addresses, int(self._workspace), self._stream.handle)
            self._stream.synchronize()
        return made

    def _view(self, leaf: Any) -> DeviceArray:
        """An array of JAX's as one of ours: the same memory, or a copy where that does not start on 16 bytes."""
        leaf.block_until_ready()
        try:
            found = self._network.view(leaf)
        except ValueError:
            found = None
        return self._network.array(np.asarray(leaf)) if found is None else found


def cuda_index(leaf: Any) -> int | None:
    """The number of the CUDA device that an array is on; None for one elsewhere."""
    kind, index = map(int, leaf.__dlpack_device__())
    return index if kind == CUDA else None
