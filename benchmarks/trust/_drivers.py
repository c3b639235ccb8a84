"""Wrong results on an OpenCL device told apart: those of loopwright's code, and those of its driver's compiler."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from unittest.mock import patch

from trial_pool import Answer, spread

_OTHERWISE = ({"PYOPENCL_BUILD_OPTIONS": "-cl-opt-disable"}, {"POCL_WORK_GROUP_METHOD": "repl"})
"""Environments in which PoCL compiles a kernel in other ways: without its optimizer; threads of a block as copies."""


def is_of_the_driver(function: str, answer: Answer, is_right: Callable[[Answer], bool]) -> bool:
    """True where the trial of an answer that is not right is so once the driver compiles its kernels in another way.

    PoCL 3.1 and 5.0 merge the threads of a block into loops wrongly for one kernel in some hundreds: they store to
    misaligned places on the stack, fail assertions, or give other values than with copies of the threads' code.
    """
    return not is_right(answer) and any(is_right(_again(function, answer, variables)) for variables in _OTHERWISE)


def _again(function: str, answer: Answer, variables: Mapping[str, str]) -> Answer:
    """The answer of the same trial in another environment, without kernels that were kept."""
    folder = tempfile.TemporaryDirectory(prefix="loopwright-drivers-")
    with folder as cache, patch.dict(os.environ, {**variables, "XDG_CACHE_HOME": cache}):
        (found,) = spread(function, [answer.arguments], 1)
    return found
