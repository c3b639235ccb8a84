"""Print what this CPU reaches at most, on 1 to n threads: FMA in registers (GFLOP/s) and copying memory (GB/s)."""

from __future__ import annotations

import argparse

from loopwright.backends.llvm.device import device_name
from loopwright.backends.llvm.host import host_target
from loopwright.backends.llvm.peak import copy_gbytes_per_s, peak_gflops_per_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=host_target().cores, help="most threads (default: all cores)")
    options = parser.parse_args()
    print(device_name())
    print(f"{'threads':>7} {'fp32 GFLOP/s':>13} {'fp64 GFLOP/s':>13} {'copy GB/s':>10}")
    for threads in range(1, options.threads + 1):
        target = host_target(threads)
        single, double = (peak_gflops_per_s(target, dtype) for dtype in ("float32", "float64"))
        print(f"{threads:>7} {single:>13.1f} {double:>13.1f} {copy_gbytes_per_s(target):>10.1f}")


if __name__ == "__main__":
    main()
