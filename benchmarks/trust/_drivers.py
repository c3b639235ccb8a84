"""What is wrong on an OpenCL device told apart: by loopwright's code, or by its driver's optimizer."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from unittest.mock import patch

from trial_pool import Answer, spread

_BUILD_OPTIONS = "PYOPENCL_BUILD_OPTIONS"
"""The environment variable whose options pyopencl adds to every build."""


def is_of_the_driver(function: str, answer: Answer, is_right: Callable[[Answer], bool]) -> bool:
    """True where the trial of an answer that is not right is so if the driver does not optimize, and no kernel is kept.

    PoCL 3.1 and 5.0 merge the threads of a block into loops wrongly for one kernel in some hundreds: they store to
    misaligned places on the stack, fail assertions, or give other values than with POCL_WORK_GROUP_METHOD=repl.
    """
    if is_right(answer):
        return False
    folder = tempfile.TemporaryDirectory(prefix="loopwright-drivers-")
    with folder as cache, patch.dict(os.environ, {_BUILD_OPTIONS: "-cl-opt-disable", "XDG_CACHE_HOME": cache}):
        (again,) = spread(function, [answer.arguments], 1)
    return is_right(again)
