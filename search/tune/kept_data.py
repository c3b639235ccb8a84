"""Data to check candidates by, of the tasks that were measured last: of others it is made again when they are."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from ..task import SearchTask
from ..template.task import TemplateTask

MOST_BYTES = 1 << 30
"""Bytes of inputs and expected outputs that are kept: those of some 40 layers of a network for images."""


@dataclass
class KeptData:
    """The tasks whose data is kept, the one measured last at the end; `most_bytes` together, and one always."""

    most_bytes: int = MOST_BYTES
    _bytes: OrderedDict[SearchTask | TemplateTask, int] = field(default_factory=OrderedDict)

    def used(self, task: SearchTask | TemplateTask) -> None:
        """Keep the data of a task, and let go of what was used longest ago where that is too much."""
        data = task.reference
        self._bytes[task] = sum(array.nbytes for array in (*data.inputs, *data.expected))
        self._bytes.move_to_end(task)
        while len(self._bytes) > 1 and sum(self._bytes.values()) > self.most_bytes:
            oldest, _ = self._bytes.popitem(last=False)
            oldest.forget_reference()

    def forget(self) -> None:
        """Let go of all of it."""
        while self._bytes:
            task, _ = self._bytes.popitem()
            task.forget_reference()
