"""CUDA graphs: launches recorded on a stream once and replayed; pycuda has none, the driver's own interface does."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from .driver import MissingCuda


def can_replay() -> bool:
    """True where CUDA graphs can be recorded: the package that they need is installed."""
    return importlib.util.find_spec("cuda") is not None and importlib.util.find_spec("cuda.bindings") is not None


class Graph:
    """A CUDA graph of what `record` launches on a stream, given by its handle; `launch` runs it again."""

    def __init__(self, stream: int, record: Callable[[], None]) -> None:
        self._graph: Any = None
        try:
            from cuda.bindings import driver
        except ImportError as error:
            raise MissingCuda("replaying graphs needs cuda-bindings: pip install 'loopwright[nvrtc]'") from error
        self._driver = driver
        self._stream = driver.CUstream(stream)
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self._checked(driver.cuStreamBeginCapture(self._stream, mode))
        try:
            record()
        finally:
            graph = self._checked(driver.cuStreamEndCapture(self._stream))
        try:
            self._graph = self._checked(driver.cuGraphInstantiate(graph, 0))
        finally:
            self._checked(driver.cuGraphDestroy(graph))

    def launch(self) -> None:
        """Put one replay into the stream."""
        self._checked(self._driver.cuGraphLaunch(self._graph, self._stream))

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free it; harmless when repeated."""
        graph, self._graph = self._graph, None
        if graph is not None:
            self._checked(self._driver.cuGraphExecDestroy(graph))

    def _checked(self, result: tuple[Any, ...]) -> Any:
        if result[0] != self._driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"CUDA graph: {result[0]}")
        return result[1] if len(result) > 1 else None
