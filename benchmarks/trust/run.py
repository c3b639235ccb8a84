"""Throw random programs, graphs, faults and damaged inputs at loopwright, and print a table of what did not hold.

Each section is a module beside this one with `run(scale, seed, jobs)`, which yields rows; 1.0 is the full length, and
`--scale 0.01` the same in a hundredth of the trials. The exit code is 1 where anything did not hold.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import platform
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, cast

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import loopwright as lw
from loopwright.backends.llvm.cpu import host_model
from trust.row import HEAD, Row

HERE = Path(__file__).resolve().parent


class Section(Protocol):
    """Interface of a module of this folder."""

    def run(self, scale: float, seed: int, jobs: int) -> Iterable[Row]: ...


def sections() -> list[str]:
    return sorted(path.stem for path in HERE.glob("[!_]*.py") if path.stem not in ("row", "run"))


def section(name: str) -> Section:
    return cast(Section, importlib.import_module(f"trust.{name}"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(sections())}; all unless named")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full number of trials (default 1.0)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="processes that try at once (default 2)")
    parser.add_argument("--results", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    if unknown := set(options.sections) - set(sections()):
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(sections())}")
    title = f"loopwright {lw.__version__}, {host_model()}, Python {platform.python_version()}"
    lines = [f"{title}, {datetime.date.today()}, scale {options.scale:g}, seed {options.seed}", "", HEAD]
    print("\n".join(lines), flush=True)
    rows: list[Row] = []
    for name in options.sections or sections():
        for row in section(name).run(options.scale, options.seed, options.jobs):
            rows.append(row)
            lines.append(row.markdown())
            print(row.markdown(), flush=True)
            for example in row.examples:
                print(f"    {example}", file=sys.stderr, flush=True)
            if options.results:
                options.results.write_text("\n".join(lines) + "\n")
    return 0 if rows and all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
