"""Schedule primitives in general: frozen values that check, then rewrite, and refuse in one form."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, ClassVar, Generic, TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from ..dialects.errors import Error
from ..dialects.loop import BlockOp, ForOp
from ..dialects.loop_steps import LOWERED_BY
from .open_number import NumberText
from .parametric.nest import Nest
from .parametric.sizes import Sizes

PlanT = TypeVar("PlanT")
_SHOWN = 6
"""Lines of the operation to blame that a refusal shows."""


class ScheduleError(Error, PassFailedException):
    """A schedule step that is not legal, rendered when somebody reads it.

    `rule` says what must hold and what was got; `fix` is a step to paste instead; `at` is the operation to blame.
    """

    def __init__(self, step: object, rule: str, fix: object = None, at: Operation | None = None) -> None:
        super().__init__()
        self.step = step
        self.rule = rule
        self.fix = fix
        self.at = at

    def __str__(self) -> str:
        lines = [f"{self.step}: {self.rule}"]
        if self.fix is not None:
            lines.append(f"  try: {self.fix}")
        if self.at is not None:
            lines += ["  at:", *render_around(self.at)]
        return "\n".join(lines)


class UnknownStepError(Exception):
    """A schedule step whose effect on extents nobody has written down."""

    def __init__(self, step: ModulePass) -> None:
        kind = type(step).__name__
        super().__init__(
            f"what {step.name} does to extents is not known: give {kind} a method replay_sizes(nest, sizes)"
        )


def render_around(op: Operation) -> list[str]:
    """Render the loops around `op` and its first lines, with the line of `op` marked."""
    around: list[str] = []
    parent = op.parent_op()
    while isinstance(parent, ForOp | BlockOp):
        around.append(str(parent).split("\n", 1)[0])
        parent = parent.parent_op()
    around.reverse()
    lines = ["    " + "  " * depth + text for depth, text in enumerate(around)]
    indent = "  " * len(around)
    own = str(op).split("\n")
    shown = own if len(own) <= _SHOWN else [*own[: _SHOWN - 1], "..."]
    lines.append(f"  > {indent}{shown[0]}")
    lines += [f"    {indent}{text}" for text in shown[1:]]
    return lines


class Primitive(ModulePass, Generic[PlanT]):
    """A schedule primitive: `check` is pure and raises ScheduleError, `rewrite` cannot fail.

    `replay_sizes` is the rewrite of a nest whose extents depend on decisions, which stands for all candidates of a
    sketch at once; where it is missing, no candidate with the step can be scored before it is built.
    """

    makes_loops: ClassVar[bool] = True
    """False for a step after which no block is in more loops than before."""

    @abstractmethod
    def check(self, module: ModuleOp) -> PlanT:
        """Decide whether the step is legal on `module` and collect what the rewrite needs; changes nothing."""

    @abstractmethod
    def rewrite(self, plan: PlanT) -> None:
        """Change the IR as planned."""

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        """Change the extents of a nest as `rewrite` changes the IR, where the step is legal; `sizes` has its numbers.

        UnknownStepError unless the primitive says how.
        """
        raise UnknownStepError(self)

    def describe(self) -> str:
        """The step in one sentence: its name and options, unless the primitive has better words."""
        return spelled_out(self)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.run(op)

    def run(self, module: ModuleOp) -> None:
        """Check and rewrite `module` in place."""
        for func in module.ops:
            if (last := func.attributes.get(LOWERED_BY)) is not None:
                raise self.error(f"schedule steps come before all of lowering, which {last} was a step of")
        self.rewrite(self.check(module))

    def error(self, rule: str, fix: object = None, at: Operation | None = None) -> ScheduleError:
        """Return a refusal of this step."""
        return ScheduleError(self, rule, fix, at)

    def __str__(self) -> str:
        """The step as pipeline text, `lw-split{block=c loop=i factors=4,8}`."""
        return str(self.pipeline_pass_spec())

    def options(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def in_words(step: ModulePass) -> str:
    """Describe a step in one sentence: its own `describe()`, which any pass may have, else its name and options."""
    describe = getattr(step, "describe", None)
    return str(describe()) if describe is not None else spelled_out(step)


def spelled_out(step: ModulePass) -> str:
    """The name of a step and the options that are not as they are by default, as a sentence."""
    given = (f for f in fields(step) if getattr(step, f.name) != f.default)
    options = ", ".join(f"{f.name} {getattr(step, f.name)}" for f in given)
    return " ".join(f"{step.name.removeprefix('lw-').replace('-', ' ').capitalize()}: {options}.".split())


def plain_step(step: Any) -> Any:
    """Return a step with plain numbers: those of a subclass of int made int."""
    return with_numbers(step, lambda number: int.__add__(number, 0))


def with_numbers(step: Any, change: Callable[[Any], int]) -> Any:
    """Return a step with other numbers in the place of those of a subclass of int, in texts (NumberText) too."""
    marked = {f.name: value for f in fields(step) if _is_marked(value := getattr(step, f.name))}
    return replace(step, **{name: _changed(value, change) for name, value in marked.items()}) if marked else step


def _is_marked(value: object) -> bool:
    if isinstance(value, tuple):
        return any(map(_is_marked, value))
    return isinstance(value, NumberText) or (isinstance(value, int) and type(value) not in (int, bool))


def _changed(value: Any, change: Callable[[Any], int]) -> Any:
    if isinstance(value, tuple):
        return tuple(_changed(part, change) for part in value)
    if isinstance(value, NumberText):
        return "".join(piece if isinstance(piece, str) else str(_changed(piece, change)) for piece in value.pieces)
    return change(value) if _is_marked(value) else value
