"""Names that compiled kernels have, and that they expect of the process they run in."""

from __future__ import annotations

RUN_SYMBOL = "lw_run"
TIME_SYMBOL = "lw_time"
TRAP_SYMBOL = "lw_outside"
"""Two 64-bit integers of a kernel that checks its addresses: an access that left its buffer, and the element."""
TEAM_SYMBOL = "lw_team"
"""A pointer to the OpenMP runtime's function that has a parallel region run by a team of threads; null where it cannot
be used, and the caller runs the region alone."""
PARALLEL_SYMBOL = "GOMP_parallel"
"""The function of OpenMP runtimes that `TEAM_SYMBOL` points to: GNU's, which LLVM's has too."""
THREAD_SYMBOL = "omp_get_thread_num"
PLACES_SYMBOL = "lw_places"
"""32-bit integers: how many CPUs this process may use, 0 if not known; then `MOST_CPUS` positions among these by CPU
number, then `MOST_CPUS` CPU numbers by position."""
MOST_CPUS = 1024
