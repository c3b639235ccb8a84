"""Run FileCheck files (`filecheck/**/*.mlir`, as lit would) in this process; skip `gpu` tests where no device is."""

import contextlib
import ctypes
import functools
import gc
import io
import math
import os
import shlex
import signal
import traceback
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO
from unittest.mock import patch

import effort
import pytest
from _pytest._code.code import TerminalRepr
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser as CheckParser
from hypothesis import settings
from quick_measuring import quickly_measured, workers_forked
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.universe import Universe
from xdsl.utils.exceptions import ArgSpecParseError
from xdsl.xdsl_opt_main import xDSLOptMain

# Seeds are fixed, so that a failure is the same everywhere; `--hypothesis-profile=explore` draws new examples.
settings.register_profile("few", derandomize=True, deadline=None, print_blob=True, max_examples=40)
settings.register_profile("fixed", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("fixed" if effort.level() > 1 else "few")


@pytest.fixture(scope="session", autouse=True)
def own_key(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A key of the tests' own: none is made among the files of whoever runs them."""
    before = os.environ.get("XDG_DATA_HOME")
    os.environ["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("data"))
    yield
    if before is None:
        del os.environ["XDG_DATA_HOME"]
    else:
        os.environ["XDG_DATA_HOME"] = before


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of what is kept between processes, of the test's own: nothing is in it yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "loopwright"


@pytest.fixture(scope="module")
def quick_measuring() -> Iterator[None]:
    """Measurers of a module's tests are quick: for `pytest.mark.usefixtures`, and fixtures that tune."""
    with quickly_measured():
        yield


@pytest.fixture
def every_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parallel loops take all threads, as if there were much work in them."""
    monkeypatch.setattr("loopwright.backends.llvm.emit.threads_worth", lambda extent, body, most: min(most, extent))


@pytest.fixture
def forked_workers() -> Iterator[None]:
    """A test's workers are forked with their imports done, where it is not of how they start."""
    with workers_forked():
        yield


REGISTRIES = (
    *("loopwright.dialects.intrinsics._REGISTERED", "loopwright.search.sketch.foreign_rules._REGISTERED"),
    *("loopwright.search.workload._REGISTERED", "loopwright.search.template.registry._OPERATORS"),
)
"""The registries of a process: of instructions, rules, workloads, and operators of templates."""


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget after a test what it registers, so that tests of the same process do not see it.

    What the package registers when it is first asked, and only then, is not forgotten.
    """
    import_module("loopwright.search.template.registry").operators()
    for path in REGISTRIES:
        module, _, name = path.rpartition(".")
        monkeypatch.setattr(path, dict(getattr(import_module(module), name)))


def _left_out(items: list[pytest.Item]) -> set[pytest.Item]:
    """What is marked slow, and of tests marked few(n) all cases but n, or `--effort` times as many."""
    found = {item for item in items if _is_slow(item)}
    cases: dict[object, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("few"):
            cases.setdefault(getattr(item, "function", item), []).append(item)
    for group in cases.values():
        marker = group[0].get_closest_marker("few")
        assert marker is not None
        found |= set(group) - set(effort.spread(group, marker.args[0] * effort.level()))
    return found


def _is_slow(item: pytest.Item) -> bool:
    """True where a test is marked slow(n), and n is more than the effort; without a number only `--all` runs it."""
    marker = item.get_closest_marker("slow")
    return marker is not None and effort.level() < (marker.args[0] if marker.args else math.inf)


@functools.cache
def cuda_device_count() -> int:
    """Return how many CUDA devices the driver sees; 0 without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return 0
    return count.value


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="also slow tests, and every case where a few are usual")
    parser.addoption("--effort", type=float, default=1.0, help="run so many times as many cases where a few are usual")


def pytest_configure(config: pytest.Config) -> None:
    gc.set_threshold(20_000, 20, 20)
    wanted = math.inf if config.getoption("--all") else config.getoption("--effort")
    if wanted < 1:
        raise pytest.UsageError(f"--effort must be 1 or more, got {wanted}")
    if wanted > 1:
        os.environ[effort.VARIABLE] = str(wanted)
        if not effort.exploring():
            settings.load_profile("fixed")
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            with contextlib.suppress(ValueError):  # not the main thread
                # Shells, and nohup, start background jobs so; the programs that tests interrupt would inherit it.
                signal.signal(number, handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not effort.everything() and not any("::" in argument for argument in config.args):
        left_out = _left_out(items)
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        if item.get_closest_marker("gpu") and not cuda_device_count():
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))


def pytest_collection_finish() -> None:
    """Leave modules and tests, which stay, out of garbage collection, which begins after 20,000 new objects.

    After 700, as is usual, 5.5% of the time of tests went into 2,200 collections; now 77 take half of that.
    """
    gc.collect()
    gc.freeze()


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> pytest.File | None:
    if file_path.suffix == ".mlir" and "filecheck" in file_path.parts:
        return MlirFile.from_parent(parent, path=file_path)
    return None


class FileCheckFailed(Exception):
    """A RUN line did not do what its file says; the text is the whole report."""


multiverse = functools.cache(Universe.get_multiverse)
"""The dialects and passes of all installed packages, whose entry points `xdsl-opt` would read three times a run."""


class CheckedOpt(xDSLOptMain):
    """`xdsl-opt` on given text, which also insists that what it prints parses back and prints the same."""

    def __init__(self, args: list[str], stdin: str) -> None:
        super().__init__(args=args)
        self.stdin = stdin

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        if self.args.input_file is None:
            return io.BytesIO(self.stdin.encode()), "mlir"
        return super().get_input_stream()

    def output_resulting_program(self, prog: ModuleOp) -> str:
        printed = super().output_resulting_program(prog)
        if self.args.target == "mlir":
            again = Parser(self.ctx, printed, "printed IR").parse_module()
            again.verify()
            reprinted = super().output_resulting_program(again)
            if reprinted != printed:
                raise FileCheckFailed(
                    f"print -> parse -> print changes the IR\n--- first\n{printed}\n--- second\n{reprinted}"
                )
        return printed


def run_opt(args: list[str], stdin: str) -> tuple[str, str | None]:
    """Run `xdsl-opt` and return (stdout, None), or (stdout, stderr) where it would exit with an error."""
    out, err = io.StringIO(), io.StringIO()
    all_known = patch.object(Universe, "get_multiverse", multiverse)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), all_known:
        try:
            CheckedOpt(args, stdin).run()
        except FileCheckFailed:
            raise
        except SystemExit as stop:
            if stop.code:
                return out.getvalue(), err.getvalue()
        except (Exception, ArgSpecParseError):
            return out.getvalue(), err.getvalue() + traceback.format_exc()
    return out.getvalue(), None


def run_filecheck(args: list[str], text: str) -> str | None:
    """Return what filecheck complains about in `text`; None where it is content."""
    options = parse_argv_options(["filecheck", *args])
    matcher = Matcher(options, FInput("stdin", text), CheckParser.from_opts(options))
    matcher.stderr = io.StringIO()
    return matcher.stderr.getvalue() or "filecheck failed" if matcher.run() else None


def run_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, command) of each `RUN:` line; after a trailing backslash the next RUN line continues it."""
    command, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if "RUN:" not in line:
            continue
        first = first if command else number
        command += line.split("RUN:", 1)[1].strip()
        if command.endswith("\\"):
            command = command[:-1]
            continue
        yield first, command
        command = ""
    if command:
        yield first, command


class MlirFile(pytest.File):
    """A FileCheck file: one test for each RUN line."""

    def collect(self) -> Iterator[pytest.Item]:
        commands = list(run_lines(self.path.read_text()))
        if not commands:
            raise self.CollectError(f"{self.path} has no RUN line")
        for number, command in commands:
            yield RunLine.from_parent(self, name=f"line{number}", command=command, line=number)


class RunLine(pytest.Item):
    """One RUN line: a pipe of `xdsl-opt` (or `not xdsl-opt`, which must fail) and `filecheck`."""

    def __init__(self, *, command: str, line: int, **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]
        self.command = command
        self.line = line

    def runtest(self) -> None:
        stages = [shlex.split(stage) for stage in self._substituted().split(" | ")]
        if stages[-1][0] != "filecheck":
            raise FileCheckFailed(f"$ {self.command}\nthe last stage must be filecheck: nothing is checked otherwise")
        text = ""
        for stage in stages:
            text = self._run_stage(stage, text)

    def _substituted(self) -> str:
        return self.command.replace("%s", shlex.quote(str(self.path)))

    def _run_stage(self, stage: list[str], text: str) -> str:
        merged = "2>&1" in stage
        must_fail, tool, *args = (stage[0] == "not", *[word for word in stage if word not in ("2>&1", "not")])
        if tool == "filecheck":
            if complaint := run_filecheck(args, text):
                raise self._failed(complaint, text)
            return ""
        if tool != "xdsl-opt":
            raise self._failed(f"unknown tool {tool!r}; known: xdsl-opt, filecheck, not", text)
        out, err = run_opt(args, text)
        if must_fail != (err is not None):
            raise self._failed(err or "xdsl-opt succeeds where the line says it must not", out)
        return out + (err or "") if merged else out

    def _failed(self, complaint: str, output: str) -> FileCheckFailed:
        return FileCheckFailed(f"$ {self.command}\n{complaint}\n--- output\n{output}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> str | TerminalRepr:  # type: ignore[override]
        return str(excinfo.value) if isinstance(excinfo.value, FileCheckFailed) else super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.line - 1, f"{self.path.name}:{self.line}"
