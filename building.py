"""`lw.build`: from a schedule, or IR at any level, to a callable kernel; `lw.interpret` runs what it would compile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from .backends import build as backend
from .backends.interpreted import interpreted
from .backends.kernel_function import Kernel
from .dialects.classic_words import knows_classic_words
from .dialects.target import Target
from .passes.build_limits import USUAL_LIMITS, BuildLimits
from .search.measure.check import check_kernel
from .te import Tensor, create_module


@knows_classic_words
def build(
    x: Any,
    target: str | Target | None = None,
    params: Mapping[str, Any] | None = None,
    *,
    check: bool = False,
    check_addresses: bool = False,
    limits: BuildLimits = USUAL_LIMITS,
) -> Kernel:
    """Compile te tensors, a module at te, loop or kernel level, or a schedule, into a callable.

    Tensors, one or a list of inputs and outputs, are compiled as `te.create_module` has them, without a schedule.

    Without `target` the one the module carries is used, else this machine's CPU. `params` are arrays for inputs that
    were declared constant, by name: they are copied and packed now, and the callable takes the other inputs only.
    Raises TypeError for something that is neither, and TypeError or ValueError for a parameter of another name, type or
    shape. Building for `cuda` needs no device, only running and checking do.

    ScheduleError where a schedule asks for more code than `limits` allow, NotEnoughMemory where arguments and buffers
    are more than they allow or the machine has: both are counted before anything is written or compiled.

    With `check`, the kernel runs once on random inputs, and WrongKernelError says where it does not give what the
    interpreter makes of the workload on tensors; ValueError where there is none, as in a module of loops.

    With `check_addresses`, for `llvm` only, each call raises OutsideBufferError at the first access outside of a buffer
    instead of making it; tests use that, and it costs a branch for every access.
    """
    x = _program(x)
    kernel = backend.build(x, target, params, check_addresses=check_addresses, limits=limits)
    if check:
        check_kernel(kernel, getattr(x, "workload", x), getattr(x, "pipeline", ""), params)
    return kernel


def interpret(
    x: Any, *inputs: npt.ArrayLike, target: str | Target | None = None
) -> npt.NDArray[Any] | tuple[npt.NDArray[Any], ...]:
    """Run what `build` would compile of tensors, a module or a schedule by the interpreter, on copies of the inputs.

    Returns the output, or a tuple of several; TypeError or ValueError for inputs as a kernel's. It takes no device:
    the threads of a GPU run side by side in NumPy arrays. InterpretationError for what a device would do silently
    wrong: a data race, a read of what an asynchronous copy has not brought or nobody has written, a barrier that only
    some threads of a block reach, an access outside of a buffer or not aligned as it says. It names the operations by
    their lines in the printed kernel.
    """
    return interpreted(backend.lower_to_kernel(_program(x), target))(*inputs)


def _program(x: Any) -> Any:
    """The module of tensors, one or a list of inputs and outputs; what else there is to compile as it is."""
    return create_module(x) if isinstance(x, Tensor | list | tuple) else x
