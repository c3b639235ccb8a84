"""A compiled kernel held once to what its workload says: run on random inputs, compared with the interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from ...backends.kernel_function import Kernel
from ...dialects.errors import Error
from ...dialects.interpret.te import run_te
from ...dialects.te import ComputeOp
from ...passes.analysis.argument_marks import argument_attributes
from .backend_api import Executable
from .buffers import poison_value, wrong_elements
from .reference import Reference, make_reference
from .tolerance import Tolerance

Array = npt.NDArray[Any]


class WrongKernelError(Error):
    """A kernel does not compute what its workload says."""


def check_kernel(kernel: Kernel, workload: ModuleOp, schedule: str, params: Mapping[str, Any] | None = None) -> None:
    """Run a kernel once on random inputs, and on the constants it holds; WrongKernelError where it is not right.

    `workload` is the te-level module that it was built from under a schedule, which the error names. ValueError for a
    module without computes on tensors, which are what there is to compare with.
    """
    if not any(isinstance(op, ComputeOp) for op in workload.walk()):
        raise ValueError(f"kernel {kernel.name}: a check compares with computes on tensors, and the workload has none")
    given = params or {}
    names = input_names(workload)
    reference = _with(make_reference(workload), workload, {names.index(n): np.asarray(a) for n, a in given.items()})
    open_inputs = [array for name, array in zip(names, reference.inputs, strict=True) if name not in given]
    results = kernel(*open_inputs)
    outputs = results if isinstance(results, tuple) else (results,)
    check_outputs(kernel.name, _output_names(kernel), outputs, reference, schedule)


def check_executable(name: str, executable: Executable, reference: Reference, schedule: str) -> None:
    """Run a loaded kernel once on the inputs of a reference; WrongKernelError where it is not right."""
    outputs = [np.full(e.shape, poison_value(e), e.dtype) for e in reference.expected]
    executable.run([*reference.inputs, *outputs])
    check_outputs(name, [str(n) for n in range(len(outputs))], outputs, reference, schedule)


def check_outputs(
    name: str, outputs: Sequence[str], arrays: Sequence[Array], reference: Reference, schedule: str
) -> None:
    """Compare what a kernel gave with the expected outputs; WrongKernelError names the first element that is wrong."""
    for output, got, expected, tolerance in zip(outputs, arrays, reference.expected, reference.tolerances, strict=True):
        bad = wrong_elements(got, expected, tolerance.bounds(expected))
        if bad is not None:
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            under = f"under schedule '{schedule}'" if schedule else "without a schedule"
            raise WrongKernelError(
                f"kernel {name} is wrong: {int(np.count_nonzero(bad))} of {got.size} elements of output '{output}', "
                f"the first at {at}: got {got[at]}, expected {expected[at]} within {tolerance}, {under}"
            )


def input_names(workload: ModuleOp) -> list[str]:
    """The names of the inputs of a te-level module, as its kernels call them."""
    func = next(f for f in workload.ops if isinstance(f, FuncOp))
    found = []
    for position, argument in enumerate(func.body.block.args):
        name = argument_attributes(func, position).get("lw.name")
        found.append(name.data if isinstance(name, StringAttr) else argument.name_hint or f"argument {position}")
    return found


def _output_names(kernel: Kernel) -> list[str]:
    return [argument.name for argument in kernel.arguments if argument.is_output]


def _with(reference: Reference, workload: ModuleOp, given: Mapping[int, Array]) -> Reference:
    """The reference for inputs of which some are given; outputs of another size have errors of another size."""
    if not given:
        return reference
    inputs = tuple(given.get(n, array) for n, array in enumerate(reference.inputs))
    expected = tuple(run_te(workload, list(inputs)))
    outputs = zip(expected, reference.expected, reference.tolerances, strict=True)
    tolerances = tuple(Tolerance(t.atol * _times_as_large(own, usual), t.rtol) for own, usual, t in outputs)
    return Reference(inputs, expected, tolerances)


def _times_as_large(array: Array, other: Array) -> float:
    """The largest finite magnitude of one array over that of another, 1 at least."""
    own, usual = (np.abs(a.astype(np.float64)) for a in (array, other))
    sizes = [float(a[np.isfinite(a)].max(initial=0.0)) for a in (own, usual)]
    return max(1.0, sizes[0] / max(sizes[1], np.finfo(np.float64).tiny))
