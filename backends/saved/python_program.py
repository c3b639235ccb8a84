"""A Python module of one file that runs a saved kernel on NumPy arrays: what is the same for all targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from ..signature import Argument
from .files import MADE_BY, beside

_HEAD = Template('''\
"""Runs kernel $name of $file, $made_by: from Python, without it.

    import $module
    $outputs = $module.run($inputs)

or, on files of raw bytes: python $module.py $files

It needs NumPy$needs.
"""

$standard
from pathlib import Path

import numpy as np
$others''')
_STANDARD = ("ctypes", "functools", "sys")
_PACKAGES = {
    "llvmlite": "import llvmlite.binding as llvm\n",
    "pyopencl": "import pyopencl as cl\n",
    "ml_dtypes": "import ml_dtypes  # makes NumPy know bfloat16\n",
}
_RUN = '''

def run(*inputs):
    """Return the output, or a tuple of several, of arrays in the order of ARGUMENTS."""
    wanted = sum(not is_output for _, _, _, is_output in ARGUMENTS)
    if len(inputs) != wanted:
        raise TypeError(f"{NAME} takes {wanted} arrays, got {len(inputs)}")
    given, arrays = iter(inputs), []
    for name, dtype, shape, is_output in ARGUMENTS:
        if is_output:
            arrays.append(np.empty(shape, dtype))
            continue
        array = np.require(next(given), requirements=["C_CONTIGUOUS", "ALIGNED"])
        if array.dtype != dtype or array.shape != shape:
            raise TypeError(f"{NAME}: '{name}' must be {dtype} of shape {shape}, got {array.dtype} of {array.shape}")
        arrays.append(array)
    launch(arrays)
    outputs = tuple(array for array, argument in zip(arrays, ARGUMENTS) if argument[3])
    return outputs[0] if len(outputs) == 1 else outputs


def main(files):
    """Run on files of raw bytes: the inputs are read, the outputs written."""
    if len(files) != len(ARGUMENTS):
        sys.exit(f"usage: {sys.argv[0]} " + " ".join(f"{name}.bin" for name, _, _, _ in ARGUMENTS))
    count = sum(not is_output for _, _, _, is_output in ARGUMENTS)
    outputs = run(*(np.fromfile(f, a[1]).reshape(a[2]) for f, a in zip(files[:count], ARGUMENTS)))
    for file, output in zip(files[count:], outputs if isinstance(outputs, tuple) else (outputs,)):
        output.tofile(file)


if __name__ == "__main__":
    main(sys.argv[1:])
'''


def python_program(
    path: Path,
    name: str,
    arguments: Sequence[Argument],
    tables: Mapping[str, Any],
    launch: str,
    imports: Sequence[str] = (),
    needs: str = "",
) -> str:
    """Return the text of `k_run.py`; `launch` defines a function of that name on arrays for all arguments.

    `tables` are constants of the module, which `launch` reads, and `imports` what it needs beyond the usual; `needs`
    says so to readers, behind "NumPy".
    """
    inputs, outputs = ([a.name for a in arguments if a.is_output == is_output] for is_output in (False, True))
    others = [each for each in imports if each in _PACKAGES]
    others += ["ml_dtypes"] if any(a.dtype == "bfloat16" for a in arguments) else []
    head = _HEAD.substitute(
        name=name,
        file=path.name,
        made_by=MADE_BY,
        module=beside(path, "_run").name,
        inputs=", ".join(inputs),
        outputs=", ".join(outputs),
        files=" ".join(f"{a.name}.bin" for a in arguments),
        needs=needs,
        standard="\n".join(f"import {each}" for each in sorted({*_STANDARD, *imports} - {*_PACKAGES})),
        others="".join(_PACKAGES[each] for each in others),
    )
    known: dict[str, Any] = {
        "NAME": name,
        "FILE": path.name,
        "ARGUMENTS": tuple((a.name, a.dtype, a.shape, a.is_output) for a in arguments),
        **tables,
    }
    texts = [f"{key} = {_table(value)}\n" for key, value in known.items()]
    return "".join([head, "\n", *texts, launch, _RUN])


def _table(value: Any) -> str:
    """Return a constant as Python has it, a tuple of tuples with a line for each."""
    if isinstance(value, tuple) and value and all(isinstance(each, tuple) for each in value):
        return "".join(["(\n", *(f"    {each!r},\n" for each in value), ")"])
    return repr(value)
