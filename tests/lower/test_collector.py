"""Python's garbage collector in processes that build."""

import subprocess
import sys

PROGRAM = """
import gc
from loopwright.passes.collector import ALLOCATIONS, collect_rarely, collector_paused

collect_rarely()
with collector_paused():
    assert not gc.isenabled()
print(gc.isenabled(), gc.get_freeze_count() > 1000, gc.get_threshold()[0] == ALLOCATIONS)
"""


def test_a_builder_keeps_what_it_started_with_and_collects_rarely() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "True True True\n"
