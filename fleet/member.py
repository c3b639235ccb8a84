"""A member of a fleet: a machine that is registered with a tracker and carries out its orders."""

from __future__ import annotations

import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from .. import __version__
from .protocol import PROTOCOL, Answer, Order, device_resource, why_refused


class Member(ABC):
    """A device or builder to be registered; a context manager, at whose end no process is left."""

    what: ClassVar[str]
    """The kind of member that it is, for messages."""

    def __init__(self, name: str, threads: int) -> None:
        self.name = name
        """The name that it is registered under."""
        self.threads = threads
        """The number of orders that it serves at once."""
        self.identity = uuid.uuid4().hex[:12]
        """A name that no other has."""
        self.stopped = threading.Event()
        """Set when it is told to end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        return f"{self.what} '{self.name}'"

    @abstractmethod
    def close(self) -> None:
        """End its processes; harmless when repeated."""

    @property
    @abstractmethod
    def place(self) -> str:
        """The part that it has in a fleet, for messages."""

    @property
    def resources(self) -> Mapping[str, float]:
        """Dask's resources of it now: one of its own, and what it offers."""
        return {**self.offered, device_resource(self.identity): 1}

    @property
    @abstractmethod
    def offered(self) -> Mapping[str, float]:
        """Dask's resources that jobs take of it now."""

    @property
    @abstractmethod
    def information(self) -> dict[str, Any]:
        """The facts that never change, as plain data, by what it is."""

    @property
    def facts(self) -> dict[str, Any]:
        """The facts that members of each kind have."""
        return {"protocol": PROTOCOL, "version": __version__, "name": self.name, "identity": self.identity}

    @property
    @abstractmethod
    def statistics(self) -> dict[str, Any]:
        """Counts of its jobs so far, as plain data."""

    @property
    def aside(self) -> bool:
        """True while it takes no jobs."""
        return False

    def tidy(self) -> None:  # noqa: B027 (a builder holds nothing)
        """End what was left by users who have died."""

    def try_again(self) -> None:  # noqa: B027 (a builder is never set aside)
        """Come back, if it was set aside long enough and can."""

    def serve(self, order: Order) -> Answer:
        """Carry out an order; an answer has a `status`, and a `message` where it is not `done`."""
        if (refusal := why_refused(order, str(self))) is not None:
            return {"status": "refused", "message": refusal}
        if order.get("op") == "stop":
            self.stopped.set()
            return {"status": "done"}
        answer = self.carry_out(order)
        return self.refused(f"knows no order {order.get('op')!r}") if answer is None else answer

    @abstractmethod
    def carry_out(self, order: Order) -> Answer | None:
        """Carry out an order of this version of the protocol; None for one that it does not know."""

    def refused(self, why: str) -> Answer:
        """The answer to an order that it cannot carry out."""
        return {"status": "refused", "message": f"{self} {why}"}
