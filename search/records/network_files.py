"""Weights of a network's tasks in a file beside the records of their trials, which say nothing of the network."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...dialects.shown_text import one_line
from ...storage.whole_file import write_whole
from .record import LONGEST_LINE

_SUFFIX = ".network.json"
_MOST_TASKS = 1 << 14
"""Of a network in a file; the largest known have some hundreds."""


class NetworkFileError(ValueError):
    """A file does not hold a network's tasks and weights; the sentence says why."""


@dataclass(frozen=True)
class WeightedTask:
    """A task of a network by its name and the hash of its workload, and how often it appears.

    `instead_of` is the hash of the task that computes the same in another way, where this one may stand for it.
    """

    name: str
    workload_hash: str
    weight: float
    instead_of: str | None = None


@dataclass(frozen=True)
class TunedNetwork:
    """The tasks of a network that were tuned together, with their weights, and the target's text."""

    target: str
    tasks: tuple[WeightedTask, ...]

    def to_json(self) -> str:
        """Return the network as one line, without the newline."""
        tasks = [[t.name, t.workload_hash, t.weight, *([t.instead_of] if t.instead_of else [])] for t in self.tasks]
        return json.dumps({"target": self.target, "tasks": tasks}, allow_nan=False)

    @staticmethod
    def from_json(text: str) -> TunedNetwork:
        """Parse what `to_json` gives; NetworkFileError for anything else."""
        try:
            data = json.loads(text) if len(text) <= LONGEST_LINE else None
        except (ValueError, RecursionError):
            data = None
        match data:
            case {"target": str(target), "tasks": list(tasks)} if 0 < len(tasks) <= _MOST_TASKS:
                return TunedNetwork(target, tuple(map(_task, tasks)))
        raise NetworkFileError("a network is one JSON object of a target's text and a list of tasks")


def _task(value: object) -> WeightedTask:
    match value:
        case [str(name), str(workload_hash), int() | float() as weight, *others]:
            stands_for = [other for other in others if isinstance(other, str)]
            right = not isinstance(weight, bool) and 0 <= weight < math.inf
            if right and len(others) < 2 and stands_for == others:
                return WeightedTask(name, workload_hash, float(weight), *stands_for)
    raise NetworkFileError(
        "a task of a network is [name, hash, weight], with a finite weight from 0, and the hash of the task that it "
        "stands for, if any"
    )


def write_network(records: str | os.PathLike[str], network: TunedNetwork) -> Path:
    """Write a network's weights beside a record file, and return where; OSError where that cannot be."""
    text = network.to_json() + "\n"
    path = Path(records)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    file = path.with_name(f"{path.stem}.{digest}{_SUFFIX}")
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, text)
    return file


def networks_beside(records: str | os.PathLike[str]) -> tuple[list[TunedNetwork], Sequence[str]]:
    """The networks whose tasks were tuned into a record file, and a sentence for each file that cannot be read."""
    path = Path(records)
    found: list[TunedNetwork] = []
    wrong: list[str] = []
    names = sorted(file.name for file in path.parent.iterdir()) if path.parent.is_dir() else []
    for name in names:
        if not (name.startswith(f"{path.stem}.") and name.endswith(_SUFFIX)):
            continue
        if "." in name.removeprefix(f"{path.stem}.").removesuffix(_SUFFIX):
            continue  # of another record file, whose name begins alike
        try:
            found.append(TunedNetwork.from_json(path.with_name(name).read_text()))
        except NetworkFileError as error:
            wrong.append(f"{one_line(name)}: {error}")
        except (OSError, UnicodeDecodeError):
            wrong.append(f"{one_line(name)}: it cannot be read")
    return found, wrong
