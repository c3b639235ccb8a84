"""A knob that marks loops: to be unrolled, vectorized, or bound to the threads of a GPU."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ....dialects.cached_property import cached_property
from ....schedule import Schedule
from ....te.tensor import Tensor
from .knob import ConfigError, Knob

_TRIED = {
    "none": ("none",),
    "unroll": ("unroll",),
    "vec": ("vec",),
    "try_unroll": ("none", "unroll"),
    "try_vec": ("none", "vec"),
    "try_unroll_vec": ("none", "unroll", "vec"),
}
_GROUPS = {"bind_gpu": 2, "bind_gpu_virtual": 3}
"""Lists of loops that a policy binds: blocks and threads, with virtual threads between."""
POLICIES = (*_TRIED, *_GROUPS, "locate_cache")
_BOUND = tuple(f"{kind}.{letter}" for kind in ("blockIdx", "threadIdx") for letter in "xyz")
_KINDS = ("none", "unroll", "vec", "fuse", "vthread", *_BOUND)


@dataclass(frozen=True)
class AnnotateEntity:
    """One way to mark: a mark for each loop, outermost first; or, of `locate_cache`, positions of loops."""

    anns: tuple[Any, ...]

    def apply(
        self,
        sch: Schedule,
        block: str | Tensor,
        axes: Sequence[Any],
        axis_lens: Sequence[int] | None = None,
        max_unroll: int | None = None,
        vec_size: Sequence[int] | None = None,
    ) -> list[Any]:
        """Mark `axes` of `block`; returns them, fused ones as one.

        ConfigError where a loop to unroll is longer than `max_unroll`, or one to vectorize not of a length in
        `vec_size`. Loops know their lengths unless `axis_lens` says otherwise.
        """
        if self.anns and all(isinstance(a, int) for a in self.anns):
            return [axes[a] for a in self.anns]
        if len(axes) != len(self.anns):
            raise ConfigError(f"these marks are for {len(self.anns)} loops, got {len(axes)}")
        lengths = list(axis_lens) if axis_lens is not None else [getattr(a, "extent", 0) for a in axes]
        marked: list[Any] = []
        waiting: list[Any] = []
        for axis, length, ann in zip(axes, lengths, self.anns, strict=True):
            if ann == "fuse":
                waiting.append(axis)
                continue
            loop = sch.fuse(block, *waiting, axis) if waiting else axis
            waiting = []
            _mark(sch, block, loop, str(ann), length, max_unroll, vec_size)
            marked.append(loop)
        return marked

    def __str__(self) -> str:
        return str(list(self.anns))


def _mark(
    sch: Schedule,
    block: str | Tensor,
    loop: Any,
    ann: str,
    length: int,
    max_unroll: int | None,
    vec_size: Sequence[int] | None,
) -> None:
    if ann == "unroll":
        if max_unroll is not None and length > max_unroll:
            raise ConfigError(f"loop '{loop}' of extent {length} is longer than max_unroll={max_unroll}")
        sch.unroll(block, loop)
    elif ann == "vec":
        if vec_size is not None and length not in vec_size:
            raise ConfigError(f"loop '{loop}' of extent {length} has none of the lengths in vec_size={list(vec_size)}")
        sch.vectorize(block, loop)
    elif ann != "none":
        sch.bind(block, loop, ann)


class AnnotateKnob(Knob[AnnotateEntity]):
    """Marks for loops.

    `none`, `unroll`, `vec`: that one for all. `try_unroll`, `try_vec`, `try_unroll_vec`: every combination with at most
    one vectorized loop. `bind_gpu`: the first half of the loops to blocks, the second to threads; `bind_gpu_virtual`:
    a third each to blocks, virtual threads and threads. `locate_cache`: every choice, in order, of `num_anchor` loops.
    """

    def __init__(self, name: str, axes: Sequence[Any], policy: str, num_anchor: int = 1) -> None:
        if policy not in POLICIES:
            raise ConfigError(f"annotate '{name}': policy must be one of {', '.join(POLICIES)}, got '{policy}'")
        self.name = name
        self.policy = policy
        self.n_axes = len(axes)
        if policy == "locate_cache":
            self._anns: list[tuple[Any, ...]] = list(itertools.combinations(range(len(axes)), num_anchor))
        elif policy in _GROUPS:
            self._anns = [self._bound()]
        else:
            tried = itertools.product(_TRIED[policy], repeat=len(axes))
            self._anns = [anns for anns in tried if anns.count("vec") <= 1]
        if not self._anns:
            raise ConfigError(f"annotate '{name}' of {len(axes)} loops with policy '{policy}': nothing is left")

    def _bound(self) -> tuple[str, ...]:
        """A thread axis for each loop; where a group has more than three loops its outermost ones are fused."""
        groups = _GROUPS[self.policy]
        if not self.n_axes or self.n_axes % groups:
            rule = f"policy '{self.policy}' takes a multiple of {groups} loops"
            raise ConfigError(f"annotate '{self.name}': {rule}, got {self.n_axes}")
        each = self.n_axes // groups
        used = "zyx"[max(0, 3 - each) :]
        fused = ("fuse",) * max(0, each - 3)
        kinds = ["blockIdx", "vthread", "threadIdx"] if groups == 3 else ["blockIdx", "threadIdx"]
        marks: list[str] = []
        for kind in kinds:
            bound = [kind if kind == "vthread" else f"{kind}.{letter}" for letter in used]
            marks += [*fused, *bound]
        return tuple(marks)

    def __len__(self) -> int:
        return len(self._anns)

    def entity(self, position: int) -> AnnotateEntity:
        return AnnotateEntity(self._anns[position])

    def value(self, position: int) -> list[Any]:
        return list(self._anns[position])

    def describe(self) -> str:
        return f"Annotate(policy={self.policy}, num_axes={self.n_axes})"

    @cached_property
    def features(self) -> npt.NDArray[np.float32]:
        """For each loop a column per mark that occurs; the positions themselves for `locate_cache`."""
        if self.policy == "locate_cache":
            return np.array(self._anns, dtype=np.float32)
        kinds = [k for k in _KINDS if any(k in anns for anns in self._anns)]
        rows = [[float(ann == kind) for ann in anns for kind in kinds] for anns in self._anns]
        return np.array(rows, dtype=np.float32)
