"""Scheduling by hand: a workload, the steps applied to it, and one method for each primitive."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .backends.targets import resolve_target
from .dialects.classic_words import INSTEAD, instead_of, subscript_knows_classic_word, takes_no
from .dialects.intrinsics import find_intrinsic
from .dialects.loop import BlockOp, blocks_in
from .dialects.markup import as_text, folding, notebook
from .dialects.numpy_types import plain_value
from .dialects.target import Target, TargetAttr
from .loop_ref import LoopRef as LoopRef
from .passes.analysis.nest import find_block, functions
from .passes.discovery import pass_factories, pass_name, primitive_stems
from .passes.installed import installed_primitive, installed_primitives
from .passes.lower.lower_te_to_loop import LowerTeToLoop
from .passes.pipeline_text import apply_schedule, lower_to_loops, parse_schedule, schedule_text
from .passes.primitive import Primitive, ScheduleError, in_words, plain_step
from .primitive_methods import PrimitiveMethods
from .te.module import create_module, stage_labels
from .te.tensor import Compute, Tensor

_OTHER_NAMES = {"software_pipeline": "pipeline"}
"""Method -> primitive where the name is taken: `Schedule.pipeline` is the text of the schedule."""


_EXPLAINS = ".search.explain.explanation"
"""The module that explains schedules: it stands above them, and so is found by name, as a backend of measuring is."""


class Explained(Protocol):
    """The interface of `lw.explain`'s result: text when printed, a page when written."""

    @property
    def time_s(self) -> float: ...

    def as_json(self) -> dict[str, Any]: ...

    def write(self, path: str | os.PathLike[str]) -> Path: ...


@dataclass(frozen=True)
class TensorTile:
    """The loops of a product that is tiled for a matrix intrinsic: blocks of threads, warps, lanes, and fills."""

    block: LoopRef
    warp: LoopRef
    lane: LoopRef
    fill: LoopRef
    """Steps of k between which shared memory is filled."""


@subscript_knows_classic_word("s[stage]")
class Schedule(PrimitiveMethods):
    """A workload and the steps applied to it so far.

    Every primitive is a method with the primitive's options as arguments: `sch.compute_at(block, loop=...)`,
    `sch.software_pipeline(...)` for `pipeline`. Blocks are named or given as te tensors, loops named or taken from
    `get_loops`, `split` and `fuse`; a block may be left out where the first loop is such a LoopRef. A step that makes
    one new block returns its name. Illegal steps raise ScheduleError and change nothing.
    """

    def __init__(self, workload: Tensor | Sequence[Tensor] | ModuleOp, target: Target | str | None = None) -> None:
        """Start from te tensors (an output, or inputs and outputs), or from a module on tensors or loops, a copy of it.

        `target` is a Target, or text as `lw.resolve_target` takes it: `cuda` is the GPU that is here.
        """
        device = None if target is None else resolve_target(target)
        self._blocks_of: dict[Compute, str] = {}
        if isinstance(workload, ModuleOp):
            self._workload = workload.clone()
            if device is not None:
                self._workload.attributes["lw.target"] = TargetAttr(device)
        else:
            self._workload = create_module(workload, device)
            self._blocks_of = stage_labels(workload)
        self._steps: list[ModulePass] = []
        self._asked: list[ModulePass] = []
        self.module = self._workload.clone()
        if lower_to_loops(self.module):
            self._steps.append(LowerTeToLoop())
            self._asked.append(LowerTeToLoop())

    # -- reading ------------------------------------------------------------------------------------------------------

    @property
    def workload(self) -> ModuleOp:
        """A copy of what the schedule starts from."""
        return self._workload.clone()

    def starts_like(self, other: Schedule) -> bool:
        """True where both are copies of one schedule, and so of one workload."""
        return self._workload is other._workload

    @property
    def steps(self) -> tuple[ModulePass, ...]:
        """The passes applied so far, the lowering to loops among them."""
        return tuple(self._steps)

    @property
    def asked(self) -> tuple[ModulePass, ...]:
        """The steps with the numbers they were asked for with, which may know where they come from, as a template's."""
        return tuple(self._asked)

    @property
    def pipeline(self) -> str:
        """The schedule as text: `xdsl-opt -p` with it turns the workload into `module`."""
        return schedule_text(self._steps)

    @property
    def blocks(self) -> list[str]:
        """The names of all blocks, in program order."""
        return [block.block_name for func in functions(self.module) for block in blocks_in(func)]

    def __str__(self) -> str:
        return str(self.module)

    def __repr__(self) -> str:
        return f"<Schedule of {', '.join(self.blocks)} after {len(self._steps)} steps>"

    def _repr_html_(self) -> str:
        """The steps in words and the IR after them, for a notebook."""
        steps = "".join(f"<li>{as_text(in_words(step))} <code>{as_text(str(step))}</code></li>" for step in self._steps)
        ir = f"<details open><summary>IR</summary>{folding(str(self))}</details>"
        return notebook(f"<p>{as_text(repr(self)[1:-1])}</p><ol>{steps}</ol>{ir}")

    def get_loops(self, block: str | Tensor) -> list[LoopRef]:
        """Return the loops around a block, outermost first."""
        name = self._name(block)
        return [LoopRef(loop.loop_name, name, loop.size) for loop in self._find(name).enclosing_loops]

    def explain(self, **options: Any) -> Explained:
        """Measure why the schedule is fast: `lw.explain(sch, ...)`, whose options it takes."""
        explain = import_module(_EXPLAINS, __package__).explain
        found: Explained = explain(self, **options)
        return found

    def ir_by_step(self) -> str:
        """The IR after each step, each under a heading that is the step as text."""
        module = self._workload.clone()
        shown = [_titled("workload", module)]
        for number, step in enumerate(self._steps, 1):
            apply_schedule(module, [step])
            shown.append(_titled(f"{number}: {step}", module))
        return "\n".join(shown)

    # -- changing -----------------------------------------------------------------------------------------------------

    def copy(self) -> Schedule:
        """Return the same schedule, which further steps leave alone."""
        other = object.__new__(Schedule)
        other._workload = self._workload
        other._blocks_of = self._blocks_of
        other._steps = list(self._steps)
        other._asked = list(self._asked)
        other.module = self.module.clone()
        return other

    def apply(self, schedule: str | ModulePass | Iterable[ModulePass]) -> None:
        """Apply steps given as text or as values: all of them, or none where one is not legal."""
        steps: Iterable[ModulePass]
        if isinstance(schedule, str):
            steps = parse_schedule(schedule)
        else:
            steps = [schedule] if isinstance(schedule, ModulePass) else _listed(schedule)
        asked = [step for step in steps if not isinstance(step, LowerTeToLoop)]
        added = [plain_step(step) for step in asked]
        try:
            apply_schedule(self.module, added)
        except ScheduleError:
            if len(added) > 1:
                self.module = self.workload
                apply_schedule(self.module, self._steps)
            raise
        self._steps += added
        self._asked += asked

    def split(self, block: str | Tensor, *arguments: Any, **options: Any) -> list[LoopRef]:
        """Split a loop by factors, of which one may be None (inferred); returns the new loops, outermost first."""
        step = self._step("split", block, *arguments, **options)
        children = plain_step(step).check(self.module).children
        self.apply(step)
        return [LoopRef(name, step.block, extent) for name, extent in children]

    def fuse(self, block: str | Tensor, *arguments: Any, **options: Any) -> LoopRef:
        """Fuse neighbouring loops into one, which is returned."""
        step = self._step("fuse", block, *arguments, **options)
        plan = plain_step(step).check(self.module)
        name, extent = plan.name, prod(loop.size for loop in plan.loops)
        self.apply(step)
        return LoopRef(name, step.block, extent)

    def tensor_tile(
        self,
        block: str | Tensor,
        intrinsic: str,
        warps: tuple[int, int] = (2, 2),
        tiles: tuple[int, int] = (4, 4),
        k_steps: int = 4,
        group: int = 1,
    ) -> TensorTile:
        """Tile a product of matrices for an intrinsic of a warp (group), by plain steps that end with `tensorize`.

        A block of threads has `warps`, or warp groups, rows by columns; each computes `tiles` of the intrinsic's
        matrices, and `k_steps` of the intrinsic's k between two fills of shared memory, where the operands are to be
        (`cache_read` before). Loops of a batch become blocks of threads; `group` of these next to each other along the
        rows come one after the other, so that they read the same columns. ScheduleError where a step is refused.
        """
        name, found = self._name(block), find_intrinsic(intrinsic)
        if found is None:
            raise ScheduleError(f"tensor_tile of '{name}'", f"no intrinsic is called '{intrinsic}'")
        *batch, rows, columns, k = self.get_loops(name)
        parts: list[list[LoopRef]] = []
        inner = [len(found.digits(axis)) for axis in "ij"]
        held: dict[int, LoopRef] = {}
        lanes: dict[int, LoopRef] = {}
        for number, (loop, axis) in enumerate(((rows, "i"), (columns, "j"))):
            digits = found.digits(axis)
            extents = [digit.extent for digit in digits]
            grouped = [group] if number == 0 and group > 1 else []
            parts.append(self.split(name, loop, [None, *grouped, warps[number], tiles[number], *extents]))
            for digit, part in zip(digits, parts[-1][-len(digits) :], strict=True):
                (lanes if digit.lanes else held)[digit.lanes or digit.held] = part
        (*i0, i1, i2), (j0, j1, j2) = (each[: len(each) - n] for each, n in zip(parts, inner, strict=True))
        k0, k1, k2 = self.split(name, k, [None, k_steps, found.k])
        in_warp = [lanes[step] for step in sorted(lanes, reverse=True)]
        own = [held[number] for number in sorted(held)]
        blocks = [*batch, i0[0], j0, *i0[1:]]
        self.reorder(name, *blocks, i1, j1, *in_warp, k0, k1, i2, j2, *own, k2)
        tile = TensorTile(self.fuse(name, *blocks), self.fuse(name, i1, j1), self.fuse(name, *in_warp), k0)
        for loop, thread in ((tile.block, "blockIdx.x"), (tile.warp, "threadIdx.y"), (tile.lane, "threadIdx.x")):
            self.bind(name, loop, thread)
        self.set_scope(name, "local")
        for loop in (k1, i2, j2):
            self.unroll(name, loop)
        self.apply(self._step("tensorize", name, own[0], intrinsic))
        return tile

    def _method(self, name: str) -> Callable[..., str | None]:
        """The method of a primitive: it makes the step of its arguments, applies it, and names the block it made."""
        stem = _OTHER_NAMES.get(name, name)
        if name.startswith("_") or not (stem in _primitives() or installed_primitive(_installed_name(stem))):
            rule = f"a Schedule has no '{name}'; primitives: {', '.join(_methods())}{instead_of(name)}"
            raise AttributeError(rule, name=name, obj=None if name in INSTEAD else self)

        def run(*arguments: Any, **options: Any) -> str | None:
            before = set(self.blocks)
            self.apply(self._step(stem, *arguments, **options))
            made = [block for block in self.blocks if block not in before]
            return made[0] if len(made) == 1 else None

        run.__name__ = name
        run.__doc__ = primitive_class(stem).__doc__
        return run

    if not TYPE_CHECKING:  # which know the methods by PrimitiveMethods, and a misspelt one for an error
        __getattr__ = _method

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_methods(), *(name.replace("-", "_") for name in installed_primitives())})

    # -- names --------------------------------------------------------------------------------------------------------

    def _step(self, stem: str, *arguments: Any, **options: Any) -> Any:
        """Return the primitive of a call's arguments."""
        step_class = primitive_class(stem)
        names = [f.name for f in fields(step_class)]
        for keyword in options:
            if keyword in INSTEAD and keyword not in names:
                raise takes_no(stem, keyword)
        arguments = tuple(map(plain_value, arguments))
        if arguments and isinstance(arguments[0], LoopRef) and names[0] == "block":
            arguments = (arguments[0].block, *arguments)
        elif isinstance(options.get("loop"), LoopRef) and not arguments and "block" not in options:
            options["block"] = options["loop"].block
        if len(arguments) > len(names) or _spells_out(names, arguments):
            arguments = (*arguments[: len(names) - 1], arguments[len(names) - 1 :])
        plain = {key: self._plain(value) for key, value in options.items()}
        try:
            step: object = step_class(*map(self._plain, arguments), **plain)
        except TypeError as error:
            raise TypeError(str(error).replace(f"{step_class.__name__}.__init__()", f"{stem}()")) from None
        return step

    def _plain(self, value: Any) -> Any:
        """Return an argument as a primitive's field holds it."""
        value = plain_value(value)
        if isinstance(value, list | tuple):
            return tuple(0 if item is None else self._plain(item) for item in value)
        return self._name(value) if hasattr(value, "name") or isinstance(value, LoopRef) else value

    def _name(self, thing: Any) -> str:
        if isinstance(thing, str):
            return str.__str__(thing)
        if isinstance(thing, Tensor) and isinstance(thing.op, Compute):
            return self._blocks_of.get(thing.op, thing.op.name)
        if not hasattr(thing, "name"):
            raise TypeError(f"a block is given by its name or its tensor, a loop by its name, got {thing!r:.40}")
        return str(thing.name)

    def _find(self, name: str) -> BlockOp:
        return find_block("get_loops", self.module, name)


def _listed(schedule: object) -> list[ModulePass]:
    """The steps given; TypeError for what is no list of them."""
    given = list(schedule) if isinstance(schedule, Iterable) else []
    steps = [step for step in given if isinstance(step, ModulePass)]
    if not isinstance(schedule, Iterable) or len(steps) < len(given):
        raise TypeError(f"a schedule is text, a step, or a list of steps, got {schedule!r:.60}")
    return steps


def _spells_out(names: list[str], arguments: tuple[Any, ...]) -> bool:
    """True where the last option takes several values and is given as one: `reorder(block, i)`."""
    several = names[-1] in ("loops", "factors")
    return several and len(arguments) == len(names) and not isinstance(arguments[-1], list | tuple)


def primitive_class(stem: str) -> type[Primitive[Any]]:
    """Return the primitive in `passes/schedule/<stem>.py`, or another package's: `acme-skew` for `acme_skew`."""
    factory = pass_factories().get(pass_name(stem))
    found = factory() if factory is not None else installed_primitive(_installed_name(stem))
    assert found is not None and issubclass(found, Primitive)
    return found


def _installed_name(method: str) -> str:
    return method.replace("_", "-")


@cache
def _primitives() -> tuple[str, ...]:
    return tuple(primitive_stems())


def _methods() -> list[str]:
    taken = set(_OTHER_NAMES.values())
    return sorted({*_OTHER_NAMES, *(stem for stem in _primitives() if stem not in taken)})


def _titled(title: str, module: ModuleOp) -> str:
    return f"// ---- {title}\n{module!s}\n"
