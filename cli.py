"""The command line: runs the command of that name in `command/`, and turns errors into a sentence and a code."""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import io
import os
import sys
import tokenize
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, TextIO

from . import __version__
from .command._errors import UserError, interruption_code
from .dialects.shown_text import printable
from .search.measure.termination import OrderlyEnd

_BAD_INPUT, _FAILED = 2, 1
_COMMANDS = Path(__file__).parent / "command"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        self.exit(_BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def command_names() -> list[str]:
    """Return the commands: the modules in `command/` without a leading underscore."""
    return sorted(f.stem for f in _COMMANDS.glob("*.py") if not f.stem.startswith("_"))


def _described(name: str) -> str:
    """The docstring of a command's module, of which no more is read: most would import half of the package."""
    with (_COMMANDS / f"{name}.py").open("rb") as file:
        first = next(token for token in tokenize.tokenize(file.readline) if token.type == tokenize.STRING)
    return inspect.cleandoc(ast.literal_eval(first.string))


def make_parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of all commands; only those among `words` get their options, which may take a while to find."""
    parser = _Parser(prog="loopwright", description="Tune tensor programs and run the result.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"loopwright {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    for name in command_names():
        text = _described(name)
        command = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        if name in words:
            module = importlib.import_module(f".command.{name}", __package__)
            module.add_arguments(command)
            command.set_defaults(run=module.run, parser=command)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in `argv` (default: the process's own arguments) and return the exit code."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    options, unknown = make_parser(arguments).parse_known_args(arguments)
    if unknown:
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    options.command_line = arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # what this terminal cannot show, as its escape
    orderly_end = OrderlyEnd()
    with warnings.catch_warnings():
        warnings.showwarning = _Warnings().show
        orderly_end.begin()
        try:
            return _run(options)
        finally:
            orderly_end.end()


def _run(options: argparse.Namespace) -> int:
    try:
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except UserError as error:
        return _say(str(error), _BAD_INPUT)
    except KeyboardInterrupt as error:
        return _say(str(error) or "interrupted", interruption_code(error))
    except RecursionError:
        return _say("what was given is nested too deeply", _BAD_INPUT)
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does: what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    except _bad_input() as error:
        return _say(str(error), _BAD_INPUT)
    except _failures() as error:
        return _say(str(error), _FAILED)
    except MemoryError as error:
        return _say(f"out of memory: {error}" if str(error) else "out of memory", _FAILED)
    except (OSError, ImportError) as error:  # no room, no descriptors, no memory to load a library
        return _say(f"this machine does not allow it: {error}", _FAILED)


class _Warnings:
    """The warnings of a command, each sentence once: several parts may give the same, as of a cache that is refused."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def show(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        """A warning as a sentence, without the line of ours that gave it."""
        text = f"loopwright: {printable(str(message))}"
        if text not in self._said:
            print(text, file=sys.stderr)
        self._said.add(text)


def _say(text: str, code: int) -> int:
    print(f"loopwright: {printable(text)}", file=sys.stderr)
    return code


def _bad_input() -> tuple[type[Exception], ...]:
    """Return the errors that the user can mend; imported only when something went wrong."""
    from .backends.host_memory import NotEnoughMemory
    from .fleet.protocol import FleetInputError
    from .passes.primitive import ScheduleError
    from .search.records.file import RecordError

    return (ScheduleError, NotEnoughMemory, RecordError, FleetInputError)


def _failures() -> tuple[type[Exception], ...]:
    """Return the errors of a right command that could not be carried out."""
    from .backends.c_family.artifact import CompileError
    from .backends.device_lost import DeviceLost
    from .backends.llvm.library import LinkError
    from .backends.missing import MissingRequirement
    from .graph.builders import BuildError
    from .search.explain.explanation import ExplanationError
    from .search.measure.backend_api import BackendError
    from .search.measure.measurement import MeasureError
    from .search.measure.process import WorkerStartError
    from .search.tune.loop import TuningError

    lost = (DeviceLost, WorkerStartError, MeasureError)
    return (ExplanationError, TuningError, MissingRequirement, BuildError, CompileError, LinkError, BackendError, *lost)
