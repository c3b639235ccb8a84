"""An operator that templates come for: its tensors from shapes, and how a kernel of a network is known to be one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...dialects.te import ComputeOp
from ...te import Tensor

Condition = Callable[[ComputeOp], bool]


@dataclass(frozen=True)
class TemplateOperator:
    """A function from shapes to tensors, inputs first, under its name; `loops` are those of its reduction, in order.

    `when` tells reductions of the same loops apart: it is asked first, and of an operator without it is what is left.
    Loops that are `optional` are missing for some shapes.
    """

    name: str
    tensors: Callable[..., Sequence[Tensor]]
    loops: str
    when: Condition | None = None
    optional: tuple[str, ...] = ()

    def is_of(self, reduction: ComputeOp) -> bool:
        """Return whether a reduction of a network is one of this operator."""
        loops = [axis.name for axis in reduction.axes.data]
        known = self.loops.split()
        if loops != known and loops != [name for name in known if name not in self.optional]:
            return False
        return self.when is None or self.when(reduction)


def only_reduction(stages: Iterable[object]) -> ComputeOp | None:
    """The one reduction of a computation; None where there is none, or another number of them."""
    found = [op for op in stages if isinstance(op, ComputeOp) and op.reduce_axes]
    return found[0] if len(found) == 1 else None
