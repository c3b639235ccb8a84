"""Tasks as the tuning loop sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from xdsl.dialects.builtin import ModuleOp

from ...dialects.target import Target
from ..measure.measurement import MeasureTask
from ..measure.reference import Reference
from ..records.file import Record
from ..records.match import same_device, why_not
from ..workload import ComputeDAG
from .options import OfSketches


class Searched(Protocol):
    """A task that is to be tuned: its workload for a target, and data to check candidates with."""

    target: Target

    @property
    def name(self) -> str: ...

    @property
    def workload_key(self) -> str: ...

    @property
    def compute_dag(self) -> ComputeDAG: ...

    @property
    def module(self) -> ModuleOp: ...

    @property
    def flops(self) -> float: ...

    @property
    def reference(self) -> Reference: ...


SearchedT = TypeVar("SearchedT", bound=Searched)


@dataclass(frozen=True)
class InSearch(OfSketches, Generic[SearchedT]):
    """The workload of a task as a Tunable; data is made when it is first measured."""

    task: SearchedT

    @property
    def name(self) -> str:
        return self.task.name

    @property
    def workload_key(self) -> str:
        return self.task.workload_key

    @property
    def workload(self) -> str:
        return str(self.task.module)

    @property
    def target(self) -> str:
        return str(self.task.target)

    @property
    def flop(self) -> float:
        return float(self.task.flops)

    @property
    def workload_hash(self) -> str:
        return self.task.compute_dag.hash

    @property
    def hash(self) -> str:
        return self.task.compute_dag.hash

    def counts(self, record: Record) -> bool:
        """True where a record is of the same model of device, with as many cores."""
        return same_device(record.target, self.task.target)

    def why_not(self, record: Record) -> str | None:
        """The reason why a record is of no use: its schedule does not keep the limits of the target."""
        return why_not(record, self.task) if record.ok else None

    def measured(self) -> MeasureTask:
        """Return the workload with data to check candidates by."""
        return self.task.reference.task(self.workload)
