"""Networks on arrays of a caller's: read where they are on CPUs, copied to other devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from ...backends.arrays import aligned_empty
from ...backends.of_this_process import OfThisProcess
from .executor import checked
from .network import CompiledNetwork

Array = npt.NDArray[Any]


class OnArrays(OfThisProcess):
    """A network as a function of arrays by the names of its inputs, which returns all outputs as new arrays.

    It is for one thread at a time.
    """

    def __init__(self, network: CompiledNetwork) -> None:
        self._plan = network.plan
        on_cpu = network.plan.kind == "llvm"
        self._frame: Any = network.loaded().frame() if on_cpu else None  # type: ignore[attr-defined]
        self._executor = None if on_cpu else network.executor()

    def __call__(self, given: Mapping[str, Array]) -> list[Array]:
        """Run once; TypeError or ValueError says what an input must be."""
        plan = self._plan
        if self._executor is not None:
            for port in plan.inputs:
                self._executor.set_input(port.name, given[port.name])
            self._executor.run()
            return [self._executor.get_output(number) for number in range(len(plan.outputs))]
        arrays = [checked(port, given[port.name]) for port in plan.inputs]
        made = [aligned_empty(port.shape, port.dtype) for port in plan.outputs]
        self._frame.run([array.ctypes.data for array in (*arrays, *made)])
        return made
