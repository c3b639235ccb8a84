"""Names that compiled kernels have, and that they expect of the process they run in."""

from __future__ import annotations

RUN_SYMBOL = "lw_run"
TIME_SYMBOL = "lw_time"
TRAP_SYMBOL = "lw_outside"
"""Two 64-bit integers of a kernel that checks its addresses: an access that left its buffer, and the element."""
TEAM_SYMBOL = "lw_team"
"""A pointer to a function that has a parallel region run by a team of threads, of which the first ones take part: it
gets the region's function, its context, the threads of the team and of the region, and calls the first on the second
and the number of the thread. Null where it cannot be used, and the caller runs the region alone."""
PARALLEL_SYMBOL = "GOMP_parallel"
"""The function of OpenMP runtimes for parallel regions: GNU's, which LLVM's has too."""
THREAD_SYMBOL = "omp_get_thread_num"
SIZE_SYMBOL = "omp_get_num_threads"
MOST_THREADS = 1024
