"""A kernel that is interpreted instead of compiled, called as others are."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ..dialects.interpret.kernel import run_kernel
from .constants import Constants
from .function_arguments import arguments_of
from .kernel_function import Kernel


class InterpretedExecutable:
    """Runs the function of a kernel-level module by the interpreter, on copies of its inputs."""

    def __init__(self, function: FuncOp) -> None:
        self.function = function
        self.arguments = arguments_of(function)
        self._constants = Constants(function.sym_name.data, self.arguments)

    def run(self, args: Sequence[npt.NDArray[Any]]) -> None:
        """Run once; InterpretationError for what a device would do wrong."""
        pairs = list(zip(self.arguments, self._constants.complete(args), strict=True))
        results = run_kernel(self.function, [array for argument, array in pairs if not argument.is_output])
        for output, result in zip((array for argument, array in pairs if argument.is_output), results, strict=True):
            np.copyto(output, result)

    def time(self, args: Sequence[npt.NDArray[Any]], number: int) -> float:
        """Return the seconds that the interpreter takes for `number` runs."""
        started_s = time.perf_counter()
        for _ in range(number):
            self.run(args)
        return time.perf_counter() - started_s


def interpreted(module: ModuleOp) -> Kernel:
    """Return the kernel of a kernel-level module, interpreted: its source is the module's text, it has no assembly."""
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    executable = InterpretedExecutable(function)
    return Kernel(function.sym_name.data, executable.arguments, executable, str(module), lambda _: "")
