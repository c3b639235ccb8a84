"""Functions on a CUDA device: loaded, launched and timed by pycuda."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from ..c_family.artifact import Artifact
from .arrays import CudaDevice
from .cubins import of_each_launch, separate_cubins
from .device_checks import check_device
from .driver import current, library
from .graph import Graph, can_replay
from .language import STATIC_SHARED_BYTES
from .launches import LoadedFunction, checked
from .tensor_maps import HostMap

_RUNS_A_GRAPH = 50
"""A graph of more runs costs more to make than it saves."""
_LONG_S = 1e-3
"""Seconds of a graph beside which its launch, of a few microseconds, is nothing."""
_MOST_GRAPHS = 4


class CudaRuntime(CudaDevice):
    """A CUDA device with the kernels of one function."""

    def __init__(self, artifact: Artifact, index: int = 0) -> None:
        super().__init__(index)
        self.artifact = artifact
        check_device(artifact, index)
        self.replays = can_replay()
        self._flush: Any = None
        self._stream: Any = None
        self._graphs: dict[tuple[int, ...], Graph] = {}
        self._took_s: dict[tuple[int, ...], float] = {}
        with current(index) as driver:
            loaded = [driver.module_from_buffer(cubin) for cubin in separate_cubins(artifact.binary)]
            self._maps = [[HostMap(each) for each in launch.maps] for launch in artifact.kernel.launches]
            self._loaded = LoadedFunction(artifact, index) if any(self._maps) else None
            launches = artifact.kernel.launches
            modules = of_each_launch(loaded, len(launches))
            self._functions = [m.get_function(launch.name) for launch, m in zip(launches, modules, strict=True)]
            for launch, function in zip(launches, self._functions, strict=True):
                function.prepare("P" * len(launch.buffers))
                if launch.dynamic_shared_bytes > STATIC_SHARED_BYTES:
                    attribute = driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
                    function.set_attribute(attribute, launch.dynamic_shared_bytes)

    def launch(self, buffers: Sequence[Any]) -> None:
        with current(self.index):
            self._launch([int(buffer) for buffer in buffers])

    def finish(self) -> None:
        with current(self.index) as driver:
            driver.Context.synchronize()

    def time(self, buffers: Sequence[Any], number: int, flush_bytes: int = 0, graph: bool = False) -> float:
        pointers = [int(buffer) for buffer in buffers]
        with current(self.index) as driver:
            if flush_bytes:
                return sum(self._timed_after_flush(driver, pointers, flush_bytes, graph) for _ in range(number))
            if graph and number > 1:  # the launch of a graph takes longer than that of one kernel
                return self._timed_graph(driver, pointers, number)
            return self._timed(driver, lambda stream: self._launch(pointers, stream, number), None)

    def time_in_turn(self, buffers: Sequence[Sequence[Any]], rounds: int) -> float:
        """Return the seconds that `rounds` of a run on each of several lists of buffers take, recorded and replayed.

        Runs on the weights of a network's layers read each from memory, where one that is run again finds them cached.
        """
        lists = [[int(buffer) for buffer in each] for each in buffers]

        def launch_each() -> None:
            for pointers in lists:
                self._launch(pointers, self._stream)

        with current(self.index) as driver:
            replay = self._recorded(driver, (0, *(pointer for each in lists for pointer in each)), launch_each)
            return self._timed_replays(driver, replay, rounds)

    def _launch(self, pointers: Sequence[int], stream: Any = None, number: int = 1) -> None:
        calls = [
            (function, launch.grid, launch.block, [pointers[n] for n in launch.buffers], launch.dynamic_shared_bytes)
            for launch, function in zip(self.artifact.kernel.launches, self._functions, strict=True)
        ]
        for _ in range(number):
            for place, (function, grid, block, arguments, shared_bytes) in enumerate(calls):
                if self._maps[place]:
                    self._launch_with_maps(place, pointers, stream)
                else:
                    function.prepared_async_call(grid, block, stream, *arguments, shared_size=shared_bytes)

    def _launch_with_maps(self, place: int, pointers: Sequence[int], stream: Any) -> None:
        """Launch a kernel that takes tensor maps first: packed by pycuda, they were an illegal instruction."""
        assert self._loaded is not None
        launch, maps = self.artifact.kernel.launches[place], self._maps[place]
        for each in maps:
            each.move(pointers[each.described.buffer])
        values = (ctypes.c_uint64 * len(launch.buffers))(*(pointers[n] for n in launch.buffers))
        own = [ctypes.addressof(values) + n * ctypes.sizeof(ctypes.c_uint64) for n in range(len(values))]
        parameters = (ctypes.c_void_p * (len(maps) + len(own)))(*(each.at for each in maps), *own)
        sizes = [ctypes.c_uint(n) for n in (*launch.grid, *launch.block, launch.dynamic_shared_bytes)]
        handle = ctypes.c_void_p(stream.handle if stream is not None else 0)
        checked(library().cuLaunchKernel(self._loaded.handles[place], *sizes, handle, parameters, None))

    def _timed(self, driver: Any, work: Any, stream: Any) -> float:
        start, end = driver.Event(), driver.Event()
        start.record(stream)
        work(stream)
        end.record(stream)
        end.synchronize()
        return float(end.time_since(start)) * 1e-3

    def _timed_after_flush(self, driver: Any, pointers: Sequence[int], flush_bytes: int, graph: bool) -> float:
        """Time one run behind a cache flush; it is enqueued before the flush is over, so no launch is counted."""
        if self._flush is None or self._flush[0] < flush_bytes:
            self._flush = (flush_bytes, driver.mem_alloc(flush_bytes))
        address = int(self._flush[1])
        if not graph:
            driver.memset_d8(address, 0, flush_bytes)
            return self._timed(driver, lambda stream: self._launch(pointers, stream), None)
        replay = self._graph(driver, pointers, 1)
        driver.memset_d8_async(address, 0, flush_bytes, self._stream)
        return self._timed(driver, lambda _: replay.launch(), self._stream)

    def _timed_graph(self, driver: Any, pointers: Sequence[int], number: int) -> float:
        """Time runs that are recorded in a graph, a few dozen at once, and replayed."""
        runs = self._runs_to_replay(pointers, number)
        replay = self._graph(driver, pointers, runs)
        repeats = -(-number // runs)
        took_s = self._timed_replays(driver, replay, repeats)
        self._took_s[runs, *pointers] = took_s / repeats
        return took_s * number / (repeats * runs)

    def _timed_replays(self, driver: Any, replay: Graph, number: int) -> float:
        def replay_all(_: Any) -> None:
            for _ in range(number):
                replay.launch()

        return self._timed(driver, replay_all, self._stream)

    def _runs_to_replay(self, pointers: Sequence[int], number: int) -> int:
        """Return the runs of a long graph that there is; making another one takes as long as replaying it."""
        long = [key[0] for key in self._graphs if key[1:] == (*pointers,) and self._took_s.get(key, 0.0) >= _LONG_S]
        return max([runs for runs in long if runs <= number], default=min(number, _RUNS_A_GRAPH))

    def _graph(self, driver: Any, pointers: Sequence[int], runs: int) -> Graph:
        """Return a graph of so many runs that has been replayed once; timing one kernel takes the same ones again."""
        return self._recorded(driver, (runs, *pointers), lambda: self._launch(pointers, self._stream, runs))

    def _recorded(self, driver: Any, key: tuple[int, ...], launch: Callable[[], None]) -> Graph:
        if key not in self._graphs:
            if self._stream is None:
                self._stream = driver.Stream()
            while len(self._graphs) >= _MOST_GRAPHS:
                self._graphs.pop(next(iter(self._graphs))).close()
            graph = Graph(self._stream.handle, launch)
            self._graphs[key] = graph
            graph.launch()
            self._stream.synchronize()
        return self._graphs[key]

    def __del__(self) -> None:
        if graphs := getattr(self, "_graphs", {}):
            with contextlib.suppress(Exception), current(self.index):  # the interpreter or the device may be ending
                for graph in graphs.values():
                    graph.close()
