"""Names that compiled kernels have, and that they expect of the process they run in."""

from __future__ import annotations

RUN_SYMBOL = "lw_run"
TIME_SYMBOL = "lw_time"
TRAP_SYMBOL = "lw_outside"
"""Two 64-bit integers of a kernel that checks its addresses: an access that left its buffer, and the element."""
FORK_SYMBOL = "GOMP_parallel"
THREAD_SYMBOL = "omp_get_thread_num"
PLACES_SYMBOL = "lw_places"
"""32-bit integers: how many CPUs this process may use, 0 if not known; then `MOST_CPUS` positions among these by CPU
number, then `MOST_CPUS` CPU numbers by position."""
MOST_CPUS = 1024
