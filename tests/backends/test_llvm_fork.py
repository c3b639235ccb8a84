"""Parallel kernels in forked children: they run, are right and, unless an OpenMP runtime cannot, parallel."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest
from parallel_kernel import is_right, parallel_kernel
from patience import PATIENCE_S

from loopwright.backends.kernel_function import Kernel

pytestmark = [
    pytest.mark.usefixtures("every_thread"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


@pytest.fixture
def kernel() -> Kernel:
    kernel = parallel_kernel()
    assert is_right(kernel)  # and now this thread has others that help it
    return kernel


def forked(work: Callable[[], bool]) -> bool:
    """Fork; return whether `work()` was true in the child, which a hang ends by an alarm."""
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(round(PATIENCE_S))
            code = 0 if work() else 1
        os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def test_in_a_child_and_in_its_children(kernel: Kernel) -> None:
    threads: list[int] = []

    def in_child() -> bool:
        right = is_right(kernel)
        threads.append(len(os.listdir("/proc/self/task")))
        return right and threads == [2] and forked(lambda: is_right(kernel)) and is_right(kernel)

    for _ in range(3):
        assert forked(in_child)
        assert is_right(kernel)


def test_in_workers_of_multiprocessing(kernel: Kernel) -> None:
    _shared.append(kernel)
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        assert all(pool.map(_in_worker, range(8), timeout=PATIENCE_S))
    assert is_right(kernel)
    _shared.clear()


_shared: list[Kernel] = []
"""The kernel that forked workers inherit."""


def _in_worker(_: int) -> bool:
    (kernel,) = _shared
    return is_right(kernel)


@pytest.mark.parametrize("has_helpers", [True, False])
def test_forked_by_another_thread(kernel: Kernel, has_helpers: bool) -> None:
    def fork_here() -> bool:
        return (not has_helpers or is_right(kernel)) and forked(lambda: is_right(kernel)) and is_right(kernel)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(fork_here).result(PATIENCE_S)
    assert is_right(kernel)


@pytest.mark.parametrize("work", ["run", "build"])
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_forked_while_another_thread_is_at_work(kernel: Kernel, work: str) -> None:
    """That thread holds the kernel's lock, or LLVM's, and is not there in the child to let go."""
    stop = threading.Event()
    wrong: list[str] = []

    def go_on() -> None:
        while not stop.is_set():
            if not is_right(kernel if work == "run" else parallel_kernel()):
                wrong.append(work)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        assert all(forked(lambda: is_right(kernel) and is_right(parallel_kernel())) for _ in range(8))
    finally:
        stop.set()
        thread.join()
    assert not wrong and is_right(kernel)


def test_children_do_without_threads_where_the_runtime_cannot_start_anew() -> None:
    """Such is GNU's before OpenMP 5.0, which came with wheels of scikit-learn 1.6."""
    script = f"""
        import os, sys
        sys.path[:0] = {[os.path.dirname(__file__), *sys.path]!r}
        from loopwright.backends.llvm import runtime, team, work
        from openmp_library import openmp_library

        class Old:
            def __init__(self, library):
                for name in (runtime.PARALLEL_SYMBOL, runtime.THREAD_SYMBOL, runtime.SIZE_SYMBOL):
                    setattr(self, name, getattr(library, name))

        old = runtime.OpenMp(Old(openmp_library()))
        team.openmp_of_torch = lambda: old
        work.CYCLES_A_THREAD = 1e-9
        from test_llvm_fork import forked, is_right, parallel_kernel
        from test_llvm_team import Branches

        kernel, branches = parallel_kernel(), Branches(2, (3, 4))
        assert is_right(kernel) and branches.are_right(0)
        assert forked(lambda: is_right(kernel) and len(os.listdir("/proc/self/task")) == 1)
        assert forked(lambda: branches.are_right(1) and len(os.listdir("/proc/self/task")) == 1)
        assert is_right(kernel) and branches.are_right(2)
        print("right")
        """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert ran.stdout == "right\n", ran.stderr
