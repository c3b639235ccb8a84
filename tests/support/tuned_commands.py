"""A matrix product that `loopwright tune` has tuned, for tests of commands on its records."""

import dataclasses
from pathlib import Path

QUICK = ["--builders", "1", "--min-repeat-ms", "1", "--cost-model", "random"]
"""For a process of its own, which `quick_measuring` does not reach, and which need not load what learns."""
TUNE = ["tune", "matmul", "--m", "20", "--n", "36", "--k", "16", "--trials", "4"]


@dataclasses.dataclass(frozen=True)
class Tuned:
    """The folder that a command tuned in, and what it printed on both streams."""

    folder: Path
    output: str
    progress: str

    @property
    def records(self) -> str:
        return str(self.folder / "matmul.jsonl")

    @property
    def workload(self) -> Path:
        (path,) = self.folder.glob("matmul.*.mlir")
        return path
