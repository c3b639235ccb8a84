"""Devices that regions run on: CPUs, and CUDA devices, on PyTorch's memory and its current stream."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...backends.cuda.driver import target_of_device
from ...backends.device_array import ALIGNMENT
from ...backends.targets import resolve_target
from ...dialects.target import Target
from ...graph.runtime.network import CompiledNetwork
from ...graph.runtime.on_llvm import LlvmNetwork
from .types import Array, Tensor, array_of

if TYPE_CHECKING:
    from ...graph.runtime.on_cuda import CudaFrame, CudaNetwork

_CONSTANT_BYTES = 256
"""Constants on a device take a multiple of so many bytes, so that each starts on a multiple of ALIGNMENT."""

_KEPT_WORKSPACE_BYTES = 1 << 20
"""Workspaces up to this are kept from run to run. To take one from PyTorch and give it back is 1.9 us of the 8.7 to
11.5 that calls take an H200's host (2026-11-27). The bound is a choice: it is memory that a region holds when idle."""
_MOST_STREAMS = 4
"""So many of them a frame keeps, for as many streams. A choice."""


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

    def empty(self, shape: Sequence[int], strides: Sequence[int], dtype: Any) -> Tensor:
        """Return a new tensor on the device."""

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
        """Return the target asked for, or this machine's with as many threads as PyTorch's operators take at most."""
        import torch

        if asked:
            return asked
        threads = torch.get_num_threads()
        return "llvm" if threads >= resolve_target("llvm").cores else f"llvm cores={threads}"

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
        self.frame, self.empty = network.frame, _allocator("cpu")


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
            self._parameters[array.ctypes.data] = parameter.detach(), array  # its memory: it may go itself
        return array

    def load(self, network: CompiledNetwork) -> Loaded:
        from ...graph.runtime.on_cuda import CudaNetwork

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
        import torch

        self.network, self.device, self.constants = network, device, constants
        self.index, self.alignment = device.index or 0, ALIGNMENT
        self.workspace = (network.binding.workspace_bytes,)
        self.captured = False
        self.streams: set[int] = set()
        """Those that were entered."""
        self._empty, self._slow_empty = _allocator("cuda"), torch.empty_strided
        self._current_device = getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device)

    def frame(self) -> Frame:
        return _CudaRun(self, self.network.frame(self.constants.addresses))

    def empty(self, shape: Sequence[int], strides: Sequence[int], dtype: Any) -> Tensor:
        if self._current_device() == self.index:
            return self._empty(shape, strides, dtype)
        return self._slow_empty(shape, strides, dtype=dtype, device=self.device)

    def enter(self, stream: int) -> None:
        """Have the constants kept, once nobody needs them, until what a stream holds by then is done."""
        import torch

        self.constants.own.record_stream(torch.cuda.current_stream(self.device))
        self.streams.add(stream)


class _CudaRun:
    """A frame that takes its workspace from PyTorch: a small one for good, a larger one for the time of a run.

    That is free as soon as the run is in the stream: whatever PyTorch gives it to comes after it there.
    """

    def __init__(self, region: _OnCuda, frame: CudaFrame) -> None:
        import torch

        self._region, self._frame = region, frame
        self._stream_of = torch._C._cuda_getCurrentRawStream
        self._is_capturing = getattr(torch._C, "_cuda_isCurrentStreamCapturing", torch.cuda.is_current_stream_capturing)
        self._byte, self._strides = torch.uint8, (1,)
        self._kept: dict[int, tuple[Tensor, int]] = {}
        """Small workspaces and their addresses, by the streams that they are used in."""

    def run(self, addresses: Sequence[int]) -> None:
        region = self._region
        stream, captured = self._stream_of(region.index), self._is_capturing()
        if captured:
            region.captured = True
        if stream not in region.streams:
            region.enter(stream)
        if not region.workspace[0]:
            self._frame.run(addresses, 0, stream, captured)
        elif captured or region.workspace[0] > _KEPT_WORKSPACE_BYTES:
            workspace = self._new_workspace()
            self._frame.run(addresses, workspace.data_ptr(), stream, captured)
        else:
            self._frame.run(addresses, (self._kept.get(stream) or self._keep(stream))[1], stream)

    def _new_workspace(self) -> Tensor:
        return self._region.empty(self._region.workspace, self._strides, self._byte)

    def _keep(self, stream: int) -> tuple[Tensor, int]:
        """Keep a workspace for the current stream, whose runs come one after the other; another's goes for it."""
        while len(self._kept) >= _MOST_STREAMS:
            self._kept.pop(next(iter(self._kept)))
        workspace = self._new_workspace()
        self._kept[stream] = workspace, workspace.data_ptr()
        return self._kept[stream]


def _allocator(kind: str) -> Callable[[Sequence[int], Sequence[int], Any], Tensor]:
    """Return a function that makes a tensor of a shape, strides and a type, on the current device of a kind.

    PyTorch has one for its own compiled code that takes 0.9 us here, where `torch.empty_strided` takes 2.3 us.
    """
    import torch

    quick: Callable[[Sequence[int], Sequence[int], Any], Tensor] | None
    quick = getattr(torch._C._dynamo.guards, f"_empty_strided_{kind}", None)
    return quick or (lambda shape, strides, dtype: torch.empty_strided(shape, strides, dtype=dtype, device=kind))


def region_device(device: Any) -> RegionDevice:
    """Return the device of a region's tensors; ValueError for one that regions are not compiled for."""
    if device.type == "cuda":
        return Cuda(device)
    if device.type == "cpu":
        return Cpu()
    raise ValueError(f"tensors on {device} stay PyTorch's")
