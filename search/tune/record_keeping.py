"""The file that a search keeps its records in, with the workload's IR beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...dialects.caller import warn_caller
from ..records import file as rec
from ..records.file import Record, RecordError, RecordWarning
from ..records.workload_files import without_target, workload_file, write_workload


class RecordKeeping:
    """Appends to a record file, if there is one; what cannot be written, which `note` is told of, is tried again."""

    def __init__(self, path: str | os.PathLike[str] | None, note: Callable[[str], None]) -> None:
        self._path, self._note = path, note
        self._unsaved: list[Record] = []
        self._has_workload = False

    def open(self) -> None:
        """RecordError where the file cannot be written: better now than after the first batch."""
        if self._path is not None:
            rec.append(self._path, [])

    def load(self, versions: Mapping[str, str]) -> list[Record]:
        """The records of the file that can be replayed; none if it does not exist yet."""
        if self._path is None or not Path(self._path).is_file():
            return []
        return rec.load(self._path, versions)

    def keep_workload(self, workload_hash: str, workload: Callable[[], str]) -> None:
        """Write the IR beside the records, which hold no more than its hash."""
        if self._has_workload or self._path is None or not workload_hash:
            return
        self._has_workload = True
        try:
            write_workload(self._path, workload_hash, without_target(workload()))
        except OSError as error:
            path = workload_file(self._path, workload_hash)
            self._note(f"cannot write {path}: {error.strerror}; what shows the records will ask for the IR")

    def save(self, new: Sequence[Record] = ()) -> None:
        """Append records; what cannot be written (disk full) is kept and tried again with the next."""
        if self._path is None:
            return
        self._unsaved += new
        if not self._unsaved:
            return
        try:
            rec.append(self._path, self._unsaved)
        except RecordError as error:
            if len(self._unsaved) == len(new):  # say it once
                self._note(f"{error}; tuning goes on, and saving is tried again after each trial")
            return
        self._unsaved.clear()

    def note_what_is_lost(self) -> None:
        """Warn of how many records there was no place for, also where nobody reads progress."""
        if self._unsaved:
            warn_caller(f"{len(self._unsaved)} record(s) could not be saved", RecordWarning)

    @property
    def place(self) -> str | os.PathLike[str] | None:
        """Path of the records; None where they are not kept."""
        return self._path
