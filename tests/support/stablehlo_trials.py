"""A random operation of StableHLO through loopwright beside what its standard says.

`python tests/support/stablehlo_trials.py llvm SEED` shows one trial again.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from typing import Any

import numpy as np
from onnx_trials import Outcome
from random_stablehlo import program

import loopwright as lw


def try_program(kind: str, seed: int) -> Outcome:
    """One program on a target, `llvm` with one thread or two."""
    made = program(seed)
    target = f"llvm cores={1 + seed // 10 % 2}" if kind == "llvm" else kind
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got: Any = lw.compile(lw.from_mlir(made.text), target, processes=1).executor()(*made.inputs)
    except lw.MlirImportError as error:
        return Outcome("refused", str(error))
    except Exception as error:  # whatever it is, it is no sentence
        frame = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__} at {frame.filename.rpartition('/')[2]}:{frame.lineno}: {str(error)[:400]}"
        return Outcome("traceback", text, f"{kind} {seed}: {text}\n{made.text}")
    if got.dtype == made.wanted.dtype and np.array_equal(got, made.wanted):
        return Outcome("right")
    text = f"{got.dtype}{list(got.shape)} {got.ravel()[:6]} instead of {made.wanted.dtype} {made.wanted.ravel()[:6]}"
    return Outcome("wrong", text, f"{kind} {seed}: {text}\n{made.text}")


if __name__ == "__main__":
    ended = try_program(sys.argv[1], int(sys.argv[2]))
    print(ended.kind, ended.text, ended.example, sep="\n")
