"""The import of what a fit of a cost model needs, beside a search."""

from __future__ import annotations

import contextlib
import importlib
import threading


class Learning:
    """Imports scikit-learn's ensembles in a thread of its own: 0.8 s of CPU of a Zen 5, twice that of a Xeon."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Begin to import it, once."""
        if self._thread is None:
            self._thread = threading.Thread(target=_load, daemon=True)
            self._thread.start()

    @property
    def is_loading(self) -> bool:
        """True while it is imported."""
        return self._thread is not None and self._thread.is_alive()

    def wait(self) -> None:
        """Wait until it is there, where that has begun."""
        if self._thread is not None:
            self._thread.join()


def _load() -> None:
    with contextlib.suppress(ImportError, OSError, MemoryError):  # the fit will say it, where there is one
        importlib.import_module("sklearn.ensemble")
