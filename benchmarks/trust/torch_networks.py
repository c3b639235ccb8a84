"""Random PyTorch networks, and operators of drawn shapes in many types, beside PyTorch in double precision.

Networks are exported and compiled for this CPU, on one thread and on two, compiled by torch.compile, and exported to
ONNX; some run on an OpenCL device, some on a CUDA device in each of the ways. Operators are those of `drawn_cases.py`
with operands of 16 bits, whole numbers and doubles, and with epilogues, under their untuned schedules. `python
tests/support/torch_trials.py llvm SEED` and `operator_trials.py llvm SEED PLACE` show one again.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable

from ._devices import has_cuda, has_opencl
from ._ended import own_cache, row_of
from .row import Row

_NETWORK, _OPERATOR = "torch_trials:try_network", "operator_trials:try_operator"
_NOTES = {
    "refused": "refused in a sentence",
    "unexported": "that PyTorch does not export",
    "driver": "that the driver's compiler fails",
}
_OPERATORS_A_SEED = 96
"""As `drawn_cases.DRAWN`."""


def run(scale: float, seed: int, jobs: int) -> Iterable[Row]:
    """3,500 networks and 1,000 operators here, 100 networks on OpenCL, 1,000 and 500 on CUDA."""
    if importlib.util.find_spec("torch") is None:
        print("    PyTorch networks: left out, torch is not installed", file=sys.stderr, flush=True)
        return
    with own_cache():
        yield _networks("llvm", 1_500, scale, seed, jobs)
        yield _networks("torch", 1_000, scale, seed, jobs)
        yield _networks("onnx", 1_000, scale, seed, jobs)
        for cores in (1, 2):
            yield _operators(f"llvm cores={cores}", 500, scale, seed, jobs)
        if has_opencl():
            yield _networks("opencl", 100, scale, seed, jobs)
        if has_cuda():
            for kind, count in (("cuda", 500), ("torch-cuda", 300), ("onnx-cuda", 200)):
                yield _networks(kind, count, scale, seed, jobs)
            yield _operators("cuda", 500, scale, seed, jobs)


def _networks(kind: str, trials: int, scale: float, seed: int, jobs: int) -> Row:
    first = seed * 1_000_000 + 100_000 * sorted(_WAYS).index(kind)
    networks = ((kind, first + n) for n in range(max(1, round(trials * scale))))
    return row_of(f"PyTorch networks {_WAYS[kind]}", _NETWORK, networks, jobs, _NOTES, kind == "opencl")


_WAYS = {
    "llvm": "on LLVM",
    "torch": "through torch.compile",
    "onnx": "through ONNX",
    "opencl": "on OpenCL",
    "cuda": "on CUDA",
    "torch-cuda": "through torch.compile, on CUDA",
    "onnx-cuda": "through ONNX, on CUDA",
}


def _operators(target: str, trials: int, scale: float, seed: int, jobs: int) -> Row:
    count = max(1, round(trials * scale))
    operators = ((target, 1_000 * seed + n // _OPERATORS_A_SEED, n % _OPERATORS_A_SEED) for n in range(count))
    return row_of(f"operators in many types, untuned, on {target}", _OPERATOR, operators, jobs, _NOTES)
