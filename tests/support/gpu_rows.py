"""Rows for GPUs: programs that reduce them, their tasks, schedules, and the launches that these make."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.scheduled import scheduled_kernel
from loopwright.dialects.kernel import LaunchOp

H200 = "cuda model=h200"
SMALL = "opencl cores=4 max_threads_per_block=64 max_shared_bytes=8192 max_vthreads=8"
"""Little of everything: rows of a few thousand elements are long."""


def softmax(*shape: int, axis: int = -1) -> list[te.Tensor]:
    data = te.placeholder(shape, name="data")
    return [data, topi.nn.softmax(data, axis)]


def unary(function: Callable[[te.Tensor], te.Tensor], *shape: int) -> list[te.Tensor]:
    data = te.placeholder(shape, name="data")
    return [data, function(data)]


def normalised(axes: tuple[int, ...], *shape: int) -> list[te.Tensor]:
    """What instance, layer and batch normalisation have in common."""
    data = te.placeholder(shape, name="data")
    centred = data - topi.mean(data, axes, True)
    variance = topi.mean(centred * centred, axes, True)
    return [data, centred * topi.rsqrt(variance + 1e-5)]


def task_of(tensors: Sequence[te.Tensor], target: str) -> lw.SearchTask:
    return lw.SearchTask(te.create_module(tensors), target=target)


def schedules(task: lw.SearchTask, seed: int = 0, count: int = 2) -> list[str]:
    """The default and some candidates of each sketch."""
    rng = np.random.default_rng(seed)
    return [s.schedule(row) for s in task.sketches for row in (s.default, *s.sample(rng, count))]


def launches(task: lw.SearchTask, schedule: str) -> list[tuple[tuple[int, ...], ...]]:
    """The grid and the block of each kernel."""
    module = scheduled_kernel(str(task.module), schedule)
    found = [op for op in module.walk() if isinstance(op, LaunchOp)]
    return [tuple(tuple(n.data for n in size) for size in (op.grid, op.block)) for op in found]
