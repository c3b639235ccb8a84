"""Devices that regions run on: CPUs, and CUDA devices, on PyTorch's memory and its current stream."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...backends.cuda.driver import target_of_device
from ...backends.device_array import ALIGNMENT
from ...backends.targets import resolve_target
from ...dialects.target import Target
from ...graph.runtime.network import CompiledNetwork
from ...graph.runtime.on_cuda import CudaFrame, CudaNetwork
from ...graph.runtime.on_llvm import LlvmNetwork
from .types import Array, Tensor, array_of

_CONSTANT_BYTES = 256
"""Constants on a device take a multiple of so many bytes, so that each starts on a multiple of ALIGNMENT."""


class Frame(Protocol):
    """Memory to run a region in, for one thread at a time."""

    def run(self, addresses: Sequence[int]) -> None:
        """Run on arrays at these addresses, inputs then outputs; on a GPU, in PyTorch's current stream."""


class Loaded(Protocol):
    """A compiled region on its device; `alignment` is that of inputs, which start on multiples of so many bytes."""

    alignment: int

    @property
    def captured(self) -> bool:
        """True where a CUDA graph has runs of it, which read its constants whenever it is replayed."""

    def frame(self) -> Frame:
        """Return a frame."""


class RegionDevice(Protocol):
    """A device while one region is compiled for it and loaded."""

    def target(self, asked: str | None) -> str | Target:
        """Return the target to compile for, the device's own unless one is asked for."""

    def array_of(self, parameter: Tensor) -> Array:
        """Return a contiguous tensor, as an array in main memory for the compiler."""

    def load(self, network: CompiledNetwork) -> Loaded:
        """Put a compiled region on the device; parameters that it reads as they are stay PyTorch's memory."""

    def must_wait(self) -> bool:
        """True where nothing can be loaded now."""


class Cpu:
    """The CPU: what is compiled reads PyTorch's memory."""

    def target(self, asked: str | None) -> str | Target:
        return asked or "llvm"

    def array_of(self, parameter: Tensor) -> Array:
        return array_of(parameter)

    def load(self, network: CompiledNetwork) -> Loaded:
        loaded = network.loaded()
        assert isinstance(loaded, LlvmNetwork)
        return _OnCpu(loaded)

    def must_wait(self) -> bool:
        return False


class _OnCpu:
    alignment, captured = 1, False

    def __init__(self, network: LlvmNetwork) -> None:
        self.frame = network.frame


class Cuda:
    """A CUDA device, in the primary context that PyTorch uses too."""

    def __init__(self, device: Any) -> None:
        self._device, self._index = device, device.index or 0
        self._parameters: dict[int, tuple[Tensor, Array]] = {}
        """By the addresses of their copies in main memory, which are kept so that nothing else comes to lie there."""

    def target(self, asked: str | None) -> str | Target:
        return resolve_target(asked) if asked and asked != "cuda" else target_of_device(self._index)

    def array_of(self, parameter: Tensor) -> Array:
        array = array_of(parameter)
        if parameter.data_ptr() % ALIGNMENT == 0:
            self._parameters[array.ctypes.data] = parameter, array
        return array

    def load(self, network: CompiledNetwork) -> Loaded:
        loaded = network.loaded(self._index)
        assert isinstance(loaded, CudaNetwork)
        return _OnCuda(loaded, self._device, self._constants(network.package.constants))

    def must_wait(self) -> bool:
        import torch

        return bool(torch.cuda.is_current_stream_capturing())

    def _constants(self, arrays: Sequence[Array]) -> _Constants:
        """Return constants on the device: parameters as they are, where a kernel reads them so, and the others."""
        import torch

        given = [self._parameters.get(array.ctypes.data, (None,))[0] for array in arrays]
        own = [array for array, parameter in zip(arrays, given, strict=True) if parameter is None]
        sizes = [math.ceil(array.nbytes / _CONSTANT_BYTES) * _CONSTANT_BYTES for array in own]
        packed = np.zeros(sum(sizes), np.uint8)
        starts = list(itertools.accumulate(sizes, initial=0))[:-1]
        for array, start in zip(own, starts, strict=True):
            packed[start : start + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        tensor = torch.from_numpy(packed).to(self._device)
        torch.cuda.current_stream(self._device).synchronize()  # other streams read them too
        places = iter(starts)
        addresses = [tensor.data_ptr() + next(places) if each is None else each.data_ptr() for each in given]
        return _Constants(tuple(addresses), tensor, tuple(each for each in given if each is not None))


@dataclass(frozen=True)
class _Constants:
    """The addresses of constants on a device: in `own` memory, or that of parameters, kept alive."""

    addresses: tuple[int, ...]
    own: Tensor
    parameters: tuple[Tensor, ...]


class _OnCuda:
    """A region on a CUDA device, with its constants, which each stream that reads them is known to PyTorch for."""

    def __init__(self, network: CudaNetwork, device: Any, constants: _Constants) -> None:
        self.network, self.device, self.constants = network, device, constants
        self.index, self.alignment = device.index or 0, ALIGNMENT
        self.workspace_bytes = network.binding.workspace_bytes
        self.captured = False
        self._streams: set[int] = set()

    def frame(self) -> Frame:
        return _CudaRun(self, self.network.frame(self.constants.addresses))

    def enter(self, stream: int) -> None:
        """Have the constants kept, once nobody needs them, until what a stream holds by then is done."""
        import torch

        self.captured = self.captured or torch.cuda.is_current_stream_capturing()
        if stream not in self._streams:
            self.constants.own.record_stream(torch.cuda.current_stream(self.device))
            self._streams.add(stream)


class _CudaRun:
    """A frame that takes its workspace from PyTorch for the time of a run.

    It is free as soon as the run is in the stream: whatever PyTorch gives it to comes after it there.
    """

    def __init__(self, region: _OnCuda, frame: CudaFrame) -> None:
        import torch

        self._region, self._frame = region, frame
        self._options = {"dtype": torch.uint8, "device": region.device}
        self._empty, self._stream_of = torch.empty, torch._C._cuda_getCurrentRawStream

    def run(self, addresses: Sequence[int]) -> None:
        region = self._region
        stream = self._stream_of(region.index)
        region.enter(stream)
        nbytes = region.workspace_bytes
        workspace = self._empty(nbytes, **self._options) if nbytes else None
        self._frame.run(addresses, 0 if workspace is None else workspace.data_ptr(), stream)


def region_device(device: Any) -> RegionDevice:
    """Return the device of a region's tensors; ValueError for one that regions are not compiled for."""
    if device.type == "cuda":
        return Cuda(device)
    if device.type == "cpu":
        return Cpu()
    raise ValueError(f"tensors on {device} stay PyTorch's")
