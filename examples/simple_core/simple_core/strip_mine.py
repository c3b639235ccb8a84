"""The primitive of the package: a loop in strips of vectors."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

import loopwright as lw
from loopwright.passes.parametric.nest import Nest
from loopwright.passes.parametric.sizes import Sizes
from loopwright.passes.schedule.split import Split
from loopwright.passes.schedule.vectorize import Vectorize


@dataclass(frozen=True)
class StripMine(lw.Primitive[ModuleOp]):
    """`for i in n { S }` -> `for i_0 in n / lanes { for i_1 in lanes vectorized { S } }`

    Requires: what splitting the loop by `lanes`, and vectorizing the inner loop, require.
    """

    name = "simple-core-strip-mine"
    block: str
    loop: str
    lanes: int = 4

    def check(self, module: ModuleOp) -> ModuleOp:
        tried = module.clone()
        try:
            self._split.run(tried)
            self._vectorize(module).check(tried)
        except lw.ScheduleError as error:
            raise self.error(error.rule, at=error.at) from None
        return module

    def rewrite(self, plan: ModuleOp) -> None:
        vectorize = self._vectorize(plan)
        self._split.run(plan)
        vectorize.run(plan)

    def replay_sizes(self, nest: Nest, sizes: Sizes) -> None:
        place = [loop.name for loop in nest.stage(self.block).loops].index(self.loop)
        self._split.replay_sizes(nest, sizes)
        nest.stage(self.block).loops[place + 1].kind = "vectorized"

    def describe(self) -> str:
        return f"Run loop {self.loop} of {self.block} in vectors of {self.lanes}."

    @property
    def _split(self) -> Split:
        return Split(self.block, self.loop, (0, self.lanes))

    def _vectorize(self, module: ModuleOp) -> Vectorize:
        """The step on the inner loop that splitting makes on `module`, by its name."""
        _, (inner, _) = self._split.check(module).children
        return Vectorize(self.block, inner)
