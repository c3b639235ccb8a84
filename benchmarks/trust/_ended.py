"""Rows of trials that end in a word, `right` among them: what is computed beside other implementations."""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from trial_pool import Answer, spread

from ._drivers import is_of_the_driver
from .row import Row

FAULTS = ("wrong", "traceback", "crash", "hang")
_MOST_EXAMPLES = 20
_LIMIT_S = 300.0


def row_of(
    what: str,
    function: str,
    trials: Iterable[tuple[Any, ...]],
    jobs: int,
    notes: Mapping[str, str],
    opencl: bool = False,
) -> Row:
    """Try `module:function` on tuples of arguments; it returns something with a `kind`, a `text` and an `example`.

    Kinds that are no faults are counted under the words of `notes`. On OpenCL, faults of the driver's compiler are
    told apart.
    """
    started_s, count = time.perf_counter(), 0
    bad, others, examples = Counter(dict.fromkeys(FAULTS, 0)), Counter[str](), []
    for answer in spread(function, trials, jobs, _LIMIT_S):
        count += 1
        ended, text = judged(answer)
        if opencl and is_of_the_driver(function, answer, _is_right):
            ended = "driver"
        (bad if ended in FAULTS else others)[ended] += 1
        if ended != "right":
            examples.append(text)
    said = [f"{others[kind]} {words}" for kind, words in notes.items() if others[kind]]
    return Row(
        what, count, dict(bad), time.perf_counter() - started_s, ", ".join(said), tuple(examples[:_MOST_EXAMPLES])
    )


def _is_right(answer: Answer) -> bool:
    return judged(answer)[0] not in FAULTS


def judged(answer: Answer) -> tuple[str, str]:
    """The end of a trial, and what to say of it."""
    trial = " ".join(map(str, answer.arguments))
    if answer.died:
        return "hang" if answer.died.startswith("hung") else "crash", f"{trial}: the process {answer.died}"
    ended = answer.result
    return ended.kind, f"{ended.kind}: {ended.example}" if ended.example else f"{ended.kind} {trial}: {ended.text}"


@contextmanager
def own_cache() -> Iterator[None]:
    """A folder of its own for kernels, which no one else will want."""
    folder = tempfile.TemporaryDirectory(prefix="loopwright-trust-")
    with folder as name, patch.dict(os.environ, {"XDG_CACHE_HOME": name}):
        yield
