"""Faults: tuning that is killed, stopped, told to end, starved and raced loses no record and leaves nothing behind.

Each row disturbs a script that tunes one task, or two on a TaskScheduler (`tests/support/campaign_tuning.py`), and
looks at its record file, at the processes that carry its mark, and at the folder of its temporary files.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from processes import marked_processes

from loopwright.search.measure.scratch import sweep
from loopwright.search.records import file as rec

from .row import Row

_SUPPORT = Path(__file__).resolve().parents[2] / "tests" / "support"
_KINDS = ("task", "scheduler")
_PATIENCE_S = 300.0
_GONE_WITHIN_S = 20.0
_CANNOT = ("Read-only file system", "No space left on device", "data cannot be written")
_TRIALS_A_KILL = 24
"""So that a kill after a random part of the time of a run meets its start, its search and its run-off."""

Limits = Callable[[], None]
Disturb = Callable[["Campaign", random.Random, int], str | None]
"""Disturb runs a number of times; returns a note for the row, if any."""


@dataclass
class Tally:
    """Count of what was tried, and of each thing that happened and must not."""

    tried: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def count(self, what: str, wrong: bool, example: object = "") -> None:
        self.bad[what] += bool(wrong)
        if wrong and len(self.examples) < 5:
            self.examples.append(f"{what}: {example}")


class Campaign:
    """A record file, a folder for temporary files, and runs of the script on them, marked."""

    def __init__(self, folder: Path, kind: str, tally: Tally) -> None:
        self.kind, self.tally = kind, tally
        self.records = folder / "records" / "r.jsonl"
        self.temporary = folder / "temporary"
        for path in (self.records.parent, self.temporary):
            path.mkdir(parents=True, exist_ok=True)
        self.mark = f"LOOPWRIGHT_CAMPAIGN={uuid.uuid4().hex}"
        self._log = folder / "log"
        self._said: set[str] = set()

    def start(self, trials: int, seed: int = 0, hostile: bool = False, limits: Limits | None = None) -> Running:
        command = [str(_SUPPORT / "campaign_tuning.py"), str(self.records), str(trials), self.kind, str(seed)]
        return self.start_command([*command, str(int(hostile))], limits)

    def start_command(self, arguments: list[str], limits: Limits | None = None) -> Running:
        out = self._log.with_name(f"log-{uuid.uuid4().hex[:8]}")
        name, value = self.mark.split("=")
        paths = [str(_SUPPORT), *filter(None, [os.environ.get("PYTHONPATH", "")])]
        with out.open("w") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=limits,
                env={
                    **os.environ,
                    name: value,
                    "TMPDIR": str(self.temporary),
                    "PYTHONPATH": os.pathsep.join(paths),
                    **(
                        {} if limits is None else {"PYTHONDONTWRITEBYTECODE": "1"}
                    ),  # CPython 3.11 would keep half files
                },
            )
        return Running(process, out)

    def check(self, run: Running, whole: bool = True) -> None:
        """Count what a run that has ended left, and what its records lack of what it said; `whole`: parse each line."""
        count, text = self.tally.count, run.text()
        if "cannot write record file" not in text:  # else there was no room, and the run said so
            self._said |= {line.split()[1] for line in text.splitlines() if line.startswith("trial ")}
        count("tracebacks", _is_unclear(text), text[-2000:])
        names = Counter(map(_name, self.trials(count_unreadable=whole)))
        count("lost records", not self._said <= names.keys(), self._said - names.keys())
        count("repeated trials", any(n > 1 for n in names.values()), names.most_common(2))
        left = _wait_until_none(lambda: marked_processes(self.mark))
        count("processes left", bool(left), left)

    def check_folder(self, swept: bool = False) -> None:
        """Count folders left; `swept`: after what the next run would sweep, as this one was killed."""
        if swept:
            sweep(self.temporary)
        left = os.listdir(self.temporary)
        self.tally.count("folders left", bool(left), left)

    def finish(self, trials: int) -> None:
        """Go on undisturbed to the number of trials asked for, and count what is wrong then."""
        run = self.start(trials)
        code = run.wait()
        self.tally.count("runs not gone on with", code != 0, run.text()[-2000:])
        self.check(run)
        self.tally.count("trials missing", len(self.trials()) < trials, f"{len(self.trials())} of {trials}")
        self.check_folder()

    def trials(self, count_unreadable: bool = False) -> list[rec.Record]:
        if not self.records.exists():
            return []
        found = []
        for line in self.records.read_bytes().split(b"\n"):
            try:
                found += [rec.Record.from_json(line.decode())] if line.strip() else []
            except (rec.RecordError, UnicodeDecodeError) as error:
                if count_unreadable:
                    self.tally.count("unreadable lines", True, f"{error}: {line[:200]!r}")
        return [record for record in found if record.role is rec.Role.TRIAL]


@dataclass
class Running:
    """A run of the script."""

    process: subprocess.Popen[bytes]
    log: Path

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def wait(self) -> int:
        try:
            return self.process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return 999

    def tries(self) -> None:
        """Wait until there is another trial, or the run's end."""
        end_s, before = time.monotonic() + _PATIENCE_S, self.text().count("trial ")
        while self.text().count("trial ") == before and self.process.poll() is None and time.monotonic() < end_s:
            time.sleep(0.02)

    def signal(self, number: int) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)


def run(scale: float, seed: int, jobs: int) -> Iterable[Row]:
    """Disturb tuning in each way, on one task and on two."""
    ways: tuple[tuple[str, int, Disturb], ...] = (
        ("kill -9 of the main process", 50, _kill_main),
        ("kill -9 of a worker or its guard", 50, _kill_workers),
        ("SIGTERM, SIGHUP, Ctrl-C", 12, _signals),
        ("SIGSTOP of the main process or a worker", 4, _stop),
        ("hostile candidates", 64, _hostile),
        ("limits of descriptors, memory and file sizes", 18, _limits),
        ("full and read-only file systems", 4, _file_systems),
        ("four tuners on one file, one of them killed", 2, _four_tuners),
    )
    for what, number, disturb in ways:
        for kind in _KINDS:
            yield _row(f"{what}, {kind}", kind, disturb, max(1, round(number * scale)), seed)


def _row(what: str, kind: str, disturb: Disturb, times: int, seed: int) -> Row:
    start_s, tally, note = time.monotonic(), Tally(), ""
    with tempfile.TemporaryDirectory(prefix="loopwright-faults-") as folder:
        campaign = Campaign(Path(folder), kind, tally)
        try:
            note = disturb(campaign, random.Random(f"{seed} {what}"), times) or ""
        finally:
            for process in marked_processes(campaign.mark):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
    return Row(what, tally.tried, dict(tally.bad), time.monotonic() - start_s, note, tuple(tally.examples))


def _kill_main(campaign: Campaign, rng: random.Random, times: int) -> None:
    """Go on with one record file again and again, each time killed at a random moment."""
    start_s = time.monotonic()
    campaign.finish(_TRIALS_A_KILL)
    usual_s = time.monotonic() - start_s
    for _ in range(times):
        run = campaign.start(len(campaign.trials()) + _TRIALS_A_KILL)
        time.sleep(rng.uniform(0.0, usual_s))
        run.signal(signal.SIGKILL)
        run.wait()
        campaign.tally.tried += 1
        campaign.check(run)
    campaign.check_folder(swept=True)
    campaign.finish(len(campaign.trials()) + _TRIALS_A_KILL)


def _kill_workers(campaign: Campaign, rng: random.Random, times: int) -> None:
    killed = 0
    while killed < times:
        wanted = len(campaign.trials()) + _TRIALS_A_KILL
        run = campaign.start(wanted)
        run.tries()
        while run.process.poll() is None and killed < times:
            others = [process for process in marked_processes(campaign.mark) if process != run.process.pid]
            if others:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(rng.choice(others), signal.SIGKILL)
                    killed += 1
                    campaign.tally.tried += 1
            if rng.random() < 0.7:  # the others meet workers that start
                run.tries()
            time.sleep(rng.uniform(0.0, 0.5))
        campaign.tally.count("runs ended", run.wait() != 0, run.text()[-2000:])
        campaign.check(run)
        campaign.check_folder()
    campaign.finish(len(campaign.trials()) + _TRIALS_A_KILL)


def _signals(campaign: Campaign, rng: random.Random, times: int) -> None:
    start_s = time.monotonic()
    campaign.finish(_TRIALS_A_KILL)
    usual_s = time.monotonic() - start_s
    for turn in range(times):
        number = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)[turn % 3]
        run = campaign.start(len(campaign.trials()) + 100)
        if turn % 2:
            run.tries()
        time.sleep(rng.uniform(0.0, 0.7 * usual_s))
        was_running = run.process.poll() is None
        run.signal(number)
        code = run.wait()
        campaign.tally.tried += 1
        campaign.tally.count("other exits", was_running and code not in (-number, 1, 0), (number, code, run.text()))
        campaign.check(run)
        campaign.check_folder()
    campaign.finish(len(campaign.trials()) + _TRIALS_A_KILL)


def _stop(campaign: Campaign, rng: random.Random, times: int) -> None:
    for turn in range(times):
        wanted = len(campaign.trials()) + _TRIALS_A_KILL
        run = campaign.start(wanted)
        run.tries()
        others = [process for process in marked_processes(campaign.mark) if process != run.process.pid]
        stopped = run.process.pid if turn % 2 or not others else rng.choice(others)
        with contextlib.suppress(ProcessLookupError):
            os.kill(stopped, signal.SIGSTOP)
        time.sleep(4.0)
        if stopped == run.process.pid:
            run.signal(signal.SIGCONT)
        campaign.tally.tried += 1
        campaign.tally.count("runs ended", run.wait() != 0, run.text()[-2000:])
        campaign.check(run)
        campaign.tally.count("trials missing", len(campaign.trials()) < wanted, len(campaign.trials()))
        campaign.check_folder()


def _hostile(campaign: Campaign, rng: random.Random, times: int) -> str:
    """Tune among candidates of which one in eight forks, calls setsid, exits, lowers limits, kills and so on."""
    trials = 8 * times
    run = campaign.start(trials, seed=rng.randrange(1000), hostile=True)
    campaign.tally.count("runs ended", run.wait() != 0, run.text()[-2000:])
    campaign.check(run)
    campaign.check_folder()
    found = campaign.trials()
    campaign.tally.count("trials missing", len(found) < trials, len(found))
    campaign.tally.tried = sum(not record.ok for record in found)
    harmed = [r for r in found if not r.ok and "store volatile" in r.schedule]
    campaign.tally.count("others harmed", bool(harmed), [(r.error, r.message) for r in harmed[:2]])
    return f"among {len(found):,} candidates"


def _limits(campaign: Campaign, rng: random.Random, times: int) -> str:
    """Start with too little of something: it ends well, or with a sentence and nothing lost.

    The command line for one task, a script for two.
    """
    done = 0
    for turn in range(times):
        kind, low, high = (
            (resource.RLIMIT_NOFILE, 4, 28),
            (resource.RLIMIT_AS, 300 << 20, 2 << 30),
            (resource.RLIMIT_FSIZE, 0, 20_000),
        )[turn % 3]
        limit = rng.randrange(low, high)
        run = _start_limited(campaign, partial(_lower, kind, limit))
        code = run.wait()
        done += code == 0
        campaign.tally.tried += 1
        campaign.tally.count("other exits", code not in (0, 1, 2), (kind, limit, code, run.text()[-500:]))
        campaign.check(run)
        campaign.check_folder()
    run = _start_limited(campaign, None)
    campaign.tally.count("runs not gone on with", run.wait() != 0, run.text()[-2000:])
    campaign.check(run)
    return f"{done} ran to their end"


def _start_limited(campaign: Campaign, limits: Limits | None) -> Running:
    trials = len(campaign.trials()) + 8
    if campaign.kind == "scheduler":
        return campaign.start(trials, limits=limits)
    words = ["-m", "loopwright", "tune", "matmul", "--m", "24", "--n", "16", "--k", "20", "--trials", str(trials)]
    return campaign.start_command([*words, "--records", str(campaign.records)], limits)


def _lower(kind: int, limit: int) -> None:
    resource.setrlimit(kind, (limit, limit))


def _file_systems(campaign: Campaign, rng: random.Random, times: int) -> str:
    """A full and a read-only file system, for the records and for temporary files."""
    for turn in range(times):
        is_full, of_records = turn % 2 == 0, turn // 2 % 2 == 0
        place = campaign.records.parent if of_records else campaign.temporary
        try:
            with _small_file_system(place, 64 if of_records else 0, is_full):
                trials = 120 if of_records else 24
                run = campaign.start(trials)
                code = run.wait()
                says = run.text()
                unsaved = any(words in says for words in _CANNOT)
                elsewhere = code == 0 and not of_records  # Python takes another folder than a TMPDIR without any room
                campaign.tally.tried += 1
                campaign.tally.count("nothing said", not unsaved and not elsewhere, (code, says[-500:]))
                campaign.tally.count("tracebacks", _is_unclear(says), says[-1500:])
                campaign.tally.count("unreadable lines", _torn(campaign), "")
                campaign.tally.count("processes left", bool(marked_processes(campaign.mark)), "")
                if is_full and of_records:
                    _mount(place, "remount,size=10m")
                    campaign.finish(trials)
        except OSError as error:
            return f"not all tried: {error}"
    return ""


def _is_unclear(text: str) -> bool:
    """True where a traceback ends a run that is not of an error with a sentence, or of who ended it."""
    last = text.strip().splitlines()[-1] if text.strip() else ""
    known = (
        *("MeasureError:", "RecordError:", "WorkerStartError:", "TuningError:", "MemoryError", "KeyboardInterrupt"),
        *("ImportError:", "OSError: Could not find/load"),  # a script that cannot import what it needs
    )
    return "Traceback" in text and not any(name in last for name in known)


def _torn(campaign: Campaign) -> bool:
    before = campaign.tally.bad["unreadable lines"]
    campaign.trials(count_unreadable=True)
    return campaign.tally.bad["unreadable lines"] > before


@contextlib.contextmanager
def _small_file_system(place: Path, pages_kb: int, is_full: bool) -> Iterator[None]:
    """Mount a file system of a few kilobytes, or a read-only one, on a folder; OSError where that is not allowed."""
    _mount(place, f"size={max(4, pages_kb)}k,mode=700" if is_full else "ro")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False, capture_output=True)


def _mount(place: Path, options: str) -> None:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"cannot mount a small file system: {done.stderr.strip()}")


def _four_tuners(campaign: Campaign, rng: random.Random, times: int) -> None:
    for turn in range(times):
        before = len(campaign.trials())
        runs = [campaign.start(before + _TRIALS_A_KILL, seed=rng.randrange(1 << 20)) for _ in range(4)]
        runs[0].tries()
        time.sleep(rng.uniform(0.0, 1.0))
        runs[0].signal(signal.SIGKILL)
        codes = [run.wait() for run in runs]
        campaign.tally.tried += 4
        campaign.tally.count("runs ended", any(codes[1:]), (codes, runs[1].text()[-1000:]))
        said = Counter(line.split()[1] for run in runs for line in run.text().splitlines() if line.startswith("trial "))
        names = Counter(map(_name, campaign.trials(count_unreadable=True)))
        campaign.tally.count("lost records", any(names[name] < n for name, n in said.items()), turn)
        left = _wait_until_none(lambda: marked_processes(campaign.mark))
        campaign.tally.count("processes left", bool(left), left)
        campaign.check_folder(swept=True)


def _name(record: rec.Record) -> str:
    return hashlib.sha256(f"{record.workload_key} {record.schedule}".encode()).hexdigest()[:16]


def _wait_until_none(find: Callable[[], list[int]]) -> list[int]:
    end_s = time.monotonic() + _GONE_WITHIN_S
    while (found := find()) and time.monotonic() < end_s:
        time.sleep(0.05)
    return found
