"""Properties that are computed once: a thread that computes one keeps no other from another object's."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

import pytest
from patience import PATIENCE_S

from loopwright.dialects.cached_property import cached_property


class Thing:
    """An object whose property takes as long as somebody says."""

    def __init__(self, go: threading.Event | None = None) -> None:
        self.began, self._go, self.count = threading.Event(), go, 0

    @cached_property
    def found(self) -> int:
        """The number."""
        self.began.set()
        if self._go is not None:
            self._go.wait(PATIENCE_S)
        self.count += 1
        return 7


@pytest.fixture
def busy() -> Iterator[Thing]:
    """Another thread is in the property of this one."""
    go = threading.Event()
    thing = Thing(go)
    thread = threading.Thread(target=lambda: thing.found)
    thread.start()
    assert thing.began.wait(PATIENCE_S)
    yield thing
    go.set()
    thread.join()
    assert thing.found == 7


def test_it_is_computed_once() -> None:
    thing = Thing()
    assert (thing.found, thing.found, thing.count) == (7, 7, 1)
    assert isinstance(Thing.found, cached_property)


def test_other_objects_do_not_wait(busy: Thing) -> None:
    others: list[int] = []
    thread = threading.Thread(target=lambda: others.append(Thing().found), daemon=True)
    thread.start()
    thread.join(PATIENCE_S / 4)
    assert others == [7]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_does_not_wait_for_a_thread_of_its_parent(busy: Thing) -> None:
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(round(PATIENCE_S / 4))
            code = 0 if Thing().found == 7 else 1
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
