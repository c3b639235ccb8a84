"""Records that come with the package: the best known schedules of some workloads on some devices, asked last.

They lie in the folder `pretuned`, one file of records a device; a record names its device, versions and date itself.
`loopwright pretuned` makes one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...dialects.target import Target, parse_target
from . import file as rec
from .file import Record
from .index import History, pick_best

FOLDER = Path(__file__).parents[2] / "pretuned"


@dataclass(frozen=True)
class Provenance:
    """The origin of a pre-tuned record."""

    workload_key: str
    target: str
    device: str
    date: str
    time_s: float
    versions: dict[str, str]


def files() -> list[Path]:
    """The files that come with the package."""
    return sorted(FOLDER.glob("*.jsonl"))


@cache
def index() -> History:
    """Return all records that come with the package."""
    return History(record for file in files() for record in rec.load(file))


def index_for(target: Target) -> History:
    """Return the records that tasks of a target take: on a CPU those of as many threads.

    Tiles that suit several threads do not suit one, nor two. By records of seven ResNet-18 takes 40.0 ms on one core of
    an Emerald Rapids, 33.1 by what is chosen without; on two 23.9 and 16.7, ResNet-50 57.9 and 47.5, MobileNet v1 7.5
    and 6.7, as Winograd's tiles are among what is chosen.
    """
    return _of_threads(index(), target.cores) if target.kind == "llvm" else index()


@cache
def _of_threads(known: History, cores: int) -> History:
    return History(record for record in known.records if parse_target(record.target).cores == cores)


def lookup(target: str | Target, workload: str) -> Record | None:
    """The record of a workload, given by its hash, on a target; None where there is none."""
    return index().query(target, workload)


def provenance() -> list[Provenance]:
    """List the pre-tuned records: where each was measured, with which versions, and when."""
    return [
        Provenance(
            r.workload_key,
            r.target,
            r.device,
            time.strftime("%Y-%m-%d", time.gmtime(r.timestamp)),
            r.time_s,
            {name: v for name, v in r.versions.items() if not rec.is_primitive(name)},
        )
        for r in index().records
    ]


def add(records: str | os.PathLike[str] | Iterable[Record], name: str, folder: Path = FOLDER) -> Path:
    """Put the best of records into the set, in the file `name`.jsonl beside what it holds; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    pick_best(records, path)
    index.cache_clear()
    return path
