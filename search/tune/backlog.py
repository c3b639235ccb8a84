"""Candidates that a search has under way while it thinks of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..measure.measurement import Measuring
from ..records.file import Record
from .options import BATCH, GROWTH, TuningOptions

_LONG = BATCH * GROWTH
"""Trials of a search, or of a task so far, from which on all builders are kept at work while the next batch is thought
of: those after which batches grow.

What is learned then lags by a batch and as many candidates as there are builders. Of 12 simulated searches of 512
trials (six products and convolutions, 15 builders) with half a batch each took less time so, 25.0 s for 29.0 in the
mean, and the best after 512 was 0.999 times the other; after 32, 64 and 128 it was 1.010, 1.003 and 1.011. With a whole
one 15.9 of 16 builders are at work once a search is on its way, with half of it 14.9 (a convolution, an H200).
"""

_LATEST = 64
"""Trials by whose seconds it is told what takes longer, building or running. A choice."""

_UNLED = 8
"""Trials of a long search over those that are proposed, at most, before the first result.

Of 13 and 15 simulated searches of 512 trials a quarter made the best 1.03 times as long after 128, an eighth 1.006.
"""


@dataclass(frozen=True)
class Backlog:
    """The backlog of a search of `asked` trials, of which `trials` are measured."""

    measurer: Measuring
    options: TuningOptions
    trials: Sequence[Record]
    asked: int

    @property
    def is_low(self) -> bool:
        """True where another batch is to be thought of.

        That is so while a batch for each device is under way, of the last one half of it. In long searches the whole of
        it, with as many more as there are builders, so that all of them have work while the next batch is thought of,
        which takes as long as measuring one: a short search learns from what it waits for. Where builds and runs take
        turns, a batch is done before the next one.
        """
        return self._under_way <= self.low_water

    @property
    def most_unled(self) -> int:
        """Candidates that may be proposed, at most, before there is a result to learn from.

        Where builds and runs take turns nobody builds more than a batch meanwhile.
        """
        keeps_ahead = self._is_long and self.measurer.options.overlap
        return max(1, self.low_water, self.asked // _UNLED if keeps_ahead else 0)

    def most_unled_while(self, workers_start: bool) -> int:
        """The same, of those that are proposed before the search begins: no more than usual once workers are there."""
        return self.most_unled if workers_start else max(1, self.low_water)

    @property
    def low_water(self) -> int:
        """Candidates under way up to which another batch is thought of."""
        if not self.measurer.options.overlap:
            return 0
        size = self.options.batch_after(len(self.trials))
        own = size + self.measurer.builders if self._is_long else size // 2
        return (self.measurer.devices - 1) * size + own

    @property
    def _is_long(self) -> bool:
        return max(self.asked, len(self.trials)) >= _LONG

    @property
    def _under_way(self) -> int:
        """Candidates that keep workers at work.

        In a long search those that wait for a device are none of them, where it runs them faster than they are built:
        else builders would wait for it when it comes late. As many as may be proposed before the first result are left
        out so, at most.
        """
        pending = self.measurer.pending
        if not self._is_long or self._waits_for_device:
            return pending
        return pending - min(self.measurer.built, self.most_unled)

    @property
    def _waits_for_device(self) -> bool:
        """True where running the latest trials took longer than building them, with all that build and run at once."""
        latest = self.trials[-_LATEST:]
        build_s, run_s = sum(trial.build_s for trial in latest), sum(trial.run_s for trial in latest)
        return run_s * self.measurer.builders > build_s * self.measurer.devices
