"""Print the completion of commands and options for a shell: bash, zsh or tcsh."""

from __future__ import annotations

import argparse

from ._errors import UserError

SHELLS = ("bash", "zsh", "tcsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help='the shell, as in: eval "$(loopwright completion bash)"')


def run(options: argparse.Namespace) -> int:
    from ..cli import command_names, make_parser

    try:
        import shtab
    except ModuleNotFoundError:
        raise UserError(
            "completion needs shtab, which is not installed: pip install 'loopwright[completion]'"
        ) from None
    print(shtab.complete(make_parser(command_names()), options.shell))
    return 0
