"""A step of a schedule in one sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from xdsl.passes import ModulePass

_WORDS: dict[str, Callable[[Any], str]] = {
    "lw-lower-te-to-loop": lambda s: "Turn each tensor expression into a nest of loops around one block.",
    "lw-split": lambda s: f"Split loop {s.loop} of {s.block} into {len(s.factors)} loops of {_factors(s.factors)}.",
    "lw-fuse": lambda s: f"Make one loop of {_listed(s.loops)} of {s.block}.",
    "lw-reorder": lambda s: f"Order the loops of {s.block}, from the outside in: {_listed(s.loops)}.",
    "lw-bind": lambda s: f"Run the iterations of loop {s.loop} of {s.block} on {_thread(s.thread)}.",
    "lw-parallel": lambda s: f"Deal the iterations of loop {s.loop} of {s.block} to the cores.",
    "lw-vectorize": lambda s: f"Run all iterations of loop {s.loop} of {s.block} at once, in the lanes of vectors.",
    "lw-unroll": lambda s: f"Write out every iteration of loop {s.loop} of {s.block}.",
    "lw-pragma": lambda s: _pragma(s),
    "lw-compute-at": lambda s: f"Compute {s.block} inside loop {s.loop}, just the part that is needed there.",
    "lw-reverse-compute-at": lambda s: f"Compute {s.block} inside loop {s.loop}, as soon as what it reads is there.",
    "lw-compute-inline": lambda s: f"Compute {s.block} anew wherever it is read, and do not store it.",
    "lw-reverse-compute-inline": lambda s: f"Apply {s.block} to each value as it is written; it is not stored without.",
    "lw-cache-read": lambda s: f"Copy what {s.block} reads of {s.buffer} to {_scope(s.scope)}{_layout(s)} first.",
    "lw-cache-write": lambda s: f"Let {s.block} write {_buffer(s)}to {_scope(s.scope)}, and copy it out afterwards.",
    "lw-rfactor": lambda s: f"Compute partial results of {s.block} for loop {s.loop}, and combine them afterwards.",
    "lw-decompose-reduction": lambda s: f"Set the initial value of {s.block} before loop {s.loop} begins.",
    "lw-set-scope": lambda s: f"Keep what {s.block} writes in {_scope(s.scope)}.",
    "lw-storage-align": lambda s: f"Pad rows of what {s.block} writes, so that threads read from different banks.",
    "lw-double-buffer": lambda s: f"Fill one half of the buffer of {s.block} while the other is in use.",
    "lw-pipeline": lambda s: f"Load what {s.block} needs some iterations of loop {s.loop} ahead.",
    "lw-prefetch": lambda s: f"Ask for what {s.block} reads of {s.buffer} some iterations of loop {s.loop} ahead.",
    "lw-transform-layout": lambda s: f"Store {s.buffer or 'what ' + s.block + ' writes'} in another order of elements.",
}


def explain(step: ModulePass) -> str:
    """What a step does, in one sentence; for a primitive not known here, its name and options."""
    known = _WORDS.get(step.name)
    if known is not None:
        try:
            return known(step)
        except (AttributeError, TypeError):  # an option has another name by now
            pass
    options = ", ".join(f"{f.name} {getattr(step, f.name)}" for f in fields(step) if getattr(step, f.name) != f.default)
    return re.sub(r"\s+", " ", f"{step.name.removeprefix('lw-').replace('-', ' ').capitalize()}: {options}.")


def _factors(factors: tuple[int, ...]) -> str:
    return " x ".join("what is left" if f == 0 else str(f) for f in factors)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names)


def _thread(thread: str) -> str:
    axis = thread.partition(".")[2]
    if thread.startswith("blockIdx"):
        return f"the blocks of the grid, along {axis}"
    if thread.startswith("threadIdx"):
        return f"the threads of a block, along {axis}"
    return "virtual threads, each with registers of its own"


def _scope(scope: str | None) -> str:
    return {"shared": "memory shared by a block", "local": "registers", "global": "memory", None: "registers"}.get(
        scope, str(scope)
    )


def _layout(step: Any) -> str:
    return ", in the order it is read," if step.layout else ""


def _buffer(step: Any) -> str:
    return f"{step.buffer} " if step.buffer != step.block else ""


def _pragma(step: Any) -> str:
    steps = step.auto_unroll_max_step
    return (
        f"Leave the loops of {step.block} below {step.loop} to the compiler to unroll."
        if not steps
        else f"Unroll loops of {step.block} below {step.loop} up to {steps} steps."
    )
