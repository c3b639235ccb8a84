"""The command line: `loopwright tune | show | replay | devices | doctor`."""

import argparse
from collections.abc import Sequence

from . import __version__


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="loopwright", description="Tune tensor programs and run the result.")
    parser.add_argument("--version", action="version", version=f"loopwright {__version__}")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in `argv` (default: the process's own arguments) and return the exit code."""
    _parser().parse_args(argv)
    return 0
