"""Run ONNX's node tests, and those that PyTorch's exporter left there, on LLVM; print how many pass.

Tests in `tests/onnx_excluded.txt` are left out, each for the reason there. `--all` runs them too and names those that
pass by now; `--suggest` prints lines for what fails.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from onnx_conformance import GROUPS, Conformance, Outcome, excluded


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--match", default="", help="only tests whose name this regular expression finds")
    parser.add_argument("--all", action="store_true", help="run excluded tests too")
    parser.add_argument("--suggest", action="store_true", help="print lines for the file of excluded tests")
    options = parser.parse_args()
    import onnx

    tests, left_out = Conformance(), excluded()
    failed: list[Outcome] = []
    print(f"onnx {onnx.__version__}, opset {onnx.defs.onnx_opset_version()}, on llvm")
    for group in GROUPS:
        start_s = time.perf_counter()
        names = [name for name in tests.names(group) if re.search(options.match, name)]
        included = [name for name in names if options.all or name not in left_out]
        found = [tests.run(group, name) for name in included]
        passed = [outcome for outcome in found if not outcome.failure]
        failed += [o for o in found if o.failure and (o.name not in left_out or options.suggest)]
        surprises = [o.name for o in passed if o.name in left_out]
        without = sum(outcome.kernels == 0 for outcome in passed)
        print(
            f"{group:<17} {len(passed):>5} pass of {len(included):>5} run ({without} without a kernel: views and "
            f"constants), {len(names) - len(included)} of {len(names)} excluded, {time.perf_counter() - start_s:.0f} s"
        )
        for name in surprises:
            print(f"  {name} is excluded, but passes")
    if options.suggest:
        print("\n".join(f"{o.name}: {o.failure}" for o in failed))
    else:
        print("\n".join(f"FAILED {o.name}: {o.failure}" for o in failed))
    reasons = Counter(_kind(reason) for reason in left_out.values())
    print("excluded: " + "; ".join(f"{count} {reason}" for reason, count in reasons.most_common()))
    return 1 if failed and not options.suggest else 0


def _kind(reason: str) -> str:
    """A reason without the operators or types that it names."""
    kinds = {"operator": "operators that are not supported", "elements": "types of elements that are not supported"}
    return next((kind for word, kind in kinds.items() if reason.startswith(word)), reason)


if __name__ == "__main__":
    sys.exit(main())
