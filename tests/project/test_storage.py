"""Files that appear whole or not at all, and the cache of kernels: damaged, shared, full, not ours."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from process_limits import limited

from loopwright.storage import folders
from loopwright.storage.binary_cache import BinaryCache, CacheWarning
from loopwright.storage.whole_file import UNFINISHED, remove_unfinished, whole_file, write_whole

KEY = ("source", "--option", "compiler 1")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_whole_and_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    path.chmod(0o640)
    with whole_file(path) as file:
        file.write(b"after")
        file.flush()
        assert path.read_text() == "before"
    assert path.read_text() == "after" and names(tmp_path) == ["file"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    write_whole(tmp_path / "own", "text", private=True)
    assert stat.S_IMODE((tmp_path / "own").stat().st_mode) == 0o600


@pytest.mark.parametrize("error", [RuntimeError("no"), KeyboardInterrupt(), OSError(errno.EIO, "bad disk")])
def test_a_file_that_is_not_written_to_its_end_is_not_there(tmp_path: Path, error: BaseException) -> None:
    write_whole(tmp_path / "file", "before")
    with pytest.raises(type(error)), whole_file(tmp_path / "file") as file:
        file.write(b"after")
        raise error
    assert (tmp_path / "file").read_text() == "before" and names(tmp_path) == ["file"]


def test_links_are_followed_and_devices_written_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("before")
    (tmp_path / "link").symlink_to(tmp_path / "real" / "file")
    write_whole(tmp_path / "link", "after")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real" / "file").read_text() == "after"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_whole(tmp_path / "pipe", "into it")
    assert os.read(reader, 100) == b"into it" and stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    os.close(reader)
    with pytest.raises(IsADirectoryError, match="real"):
        write_whole(tmp_path / "real", "")


def test_long_names_leave_room_for_the_unfinished_file(tmp_path: Path) -> None:
    for name in ("n" * 255, "\N{SNOWMAN}" * 85):
        write_whole(tmp_path / name, "text")
        assert (tmp_path / name).read_text() == "text"


def test_what_the_machine_refuses_is_an_error_with_the_name(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with limited(resource.RLIMIT_FSIZE, 1000), pytest.raises(OSError, match=r"File too large: '.*file'"):
        write_whole(path, bytes(5000))
    with limited(resource.RLIMIT_NOFILE, 3), pytest.raises(OSError, match=r"Too many open files: '.*file'"):
        write_whole(path, "text")
    with pytest.raises(FileNotFoundError, match="nowhere/file"):
        write_whole(tmp_path / "nowhere" / "file", "text")
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write_whole("/dev/full", bytes(100_000))
    assert names(tmp_path) == []


WRITER = """
import os, sys, time
from loopwright.storage.whole_file import whole_file
with whole_file(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_writer_left_is_swept_and_a_living_one_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == "writing\n"
        write_whole(path, "mine")
        remove_unfinished(tmp_path)
        left = [name for name in names(tmp_path) if name.endswith(UNFINISHED)]
        assert len(left) == 1, "the file of a writer that lives was taken from it"
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    write_whole(tmp_path / "other", "")
    assert left[0] in names(tmp_path)
    write_whole(path, "again")
    assert names(tmp_path) == ["file", "other"] and path.read_text() == "again"


def test_a_writer_whose_file_was_swept_before_it_had_the_lock_makes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept: list[str] = []
    lock = fcntl.flock

    def sweep_first(descriptor: int, kind: int) -> None:
        if not swept:
            swept.append(os.readlink(f"/proc/self/fd/{descriptor}"))
            os.unlink(swept[0])
        lock(descriptor, kind)

    monkeypatch.setattr(fcntl, "flock", sweep_first)
    write_whole(tmp_path / "file", "text")
    assert swept and names(tmp_path) == ["file"]


def entry_of(folder: Path) -> Path:
    (entry,) = folder.glob("*/*.bin")
    return entry


def test_cache_keeps_what_it_is_given(tmp_path: Path) -> None:
    cache = BinaryCache(tmp_path / "new" / "cache")
    assert cache.get(KEY) is None
    cache.put(KEY, "log\nof two lines", b"\0binary")
    assert cache.get(KEY) == ("log\nof two lines", b"\0binary")
    assert cache.get((*KEY[:-1], "compiler 2")) is None
    assert cache.get((KEY[0] + KEY[1], *KEY[2:])) is None
    assert stat.S_IMODE((tmp_path / "new" / "cache").stat().st_mode) == 0o700


def test_a_damaged_entry_is_dropped_with_a_note_and_made_again(tmp_path: Path) -> None:
    cache = BinaryCache(tmp_path)
    cache.put(KEY, "log", bytes(range(200)))
    entry = entry_of(tmp_path)
    whole = entry.read_bytes()
    flipped = [whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :] for n in range(0, len(whole), 7)]
    for damaged in (b"", b"no number\nat all", whole[:-1], whole[: len(whole) // 2], whole + b"x", *flipped):
        entry.write_bytes(damaged)
        with pytest.warns(CacheWarning, match=r"^dropped a damaged kernel from the cache.*\.bin$"):
            assert cache.get(KEY) is None
        assert not entry.exists()
        cache.put(KEY, "log", bytes(range(200)))
        assert cache.get(KEY) == ("log", bytes(range(200)))


def test_an_entry_under_the_name_of_another_is_damaged(tmp_path: Path) -> None:
    cache, other = BinaryCache(tmp_path), ("other",)
    cache.put(KEY, "", b"one")
    first = entry_of(tmp_path)
    cache.put(other, "", b"two")
    (second,) = set(tmp_path.glob("*/*.bin")) - {first}
    second.write_bytes(first.read_bytes())
    with pytest.warns(CacheWarning, match="dropped a damaged kernel"):
        assert cache.get(other) is None
    assert cache.get(KEY) == ("", b"one")


def test_cache_keeps_the_newest_and_sweeps(tmp_path: Path) -> None:
    cache = BinaryCache(tmp_path, most_bytes=450)
    files: list[Path] = []
    for number in range(4):
        cache.put((str(number),), "", bytes(98))
        files += set(tmp_path.glob("*/*.bin")) - set(files)
        os.utime(files[-1], (number, number))
    (files[0].parent / f".old.123{UNFINISHED}").write_bytes(b"half")
    cache.prune()
    assert [cache.get((str(number),)) is not None for number in range(4)] == [False, False, True, True]
    assert not list(tmp_path.glob(f"*/.*{UNFINISHED}"))


def refused(cache: BinaryCache, sentence: str) -> None:
    """The cache holds nothing and keeps nothing, and says why in one line."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for _ in range(3):
            cache.put(KEY, "", b"x")
        assert cache.get(KEY) is None
    texts = {str(each.message) for each in said if issubclass(each.category, CacheWarning)}
    assert len(texts) == 1 and sentence in texts.pop() and len(said) <= 2


def test_a_cache_that_cannot_be_written_is_none(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    refused(BinaryCache(blocked), f"compiled kernels are not kept: cannot write to {blocked}: File exists")
    refused(BinaryCache(blocked / "below"), "Not a directory")
    refused(BinaryCache(Path("/proc/nowhere")), "compiled kernels are not kept: cannot write to /proc/nowhere: ")
    refused(BinaryCache(None), "compiled kernels are not kept: this user has no home folder")
    with limited(resource.RLIMIT_FSIZE, 10):
        refused(BinaryCache(tmp_path / "small"), "File too large")
    with limited(resource.RLIMIT_NOFILE, 3):
        refused(BinaryCache(tmp_path / "few"), "Too many open files")


def test_a_folder_that_others_can_write_to_is_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = BinaryCache(tmp_path / "cache")
    cache.put(KEY, "", b"mine")
    (tmp_path / "cache").chmod(0o770)
    refused(cache, f"compiled kernels are not kept: other users may write to {tmp_path}/cache (chmod go-w closes it)")
    (tmp_path / "cache").chmod(0o755)
    assert cache.get(KEY) == ("", b"mine")
    monkeypatch.setattr(folders.os, "geteuid", lambda: 12345)
    os.chown(tmp_path / "cache", 54321, -1) if os.getuid() == 0 else monkeypatch.setattr(folders, "_ROOT", -1)
    refused(cache, f"compiled kernels are not kept: {tmp_path}/cache belongs to another user")


def test_folders_are_those_of_the_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    assert folders.cache_folder("kernels") == Path("/home/somebody/.cache/loopwright/kernels")
    assert folders.data_folder() == Path("/home/somebody/.local/share/loopwright")
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert folders.cache_folder("kernels") == Path("/elsewhere/loopwright/kernels")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert folders.cache_folder("kernels") is folders.data_folder() is None


SHARER = """
import sys
from pathlib import Path
from loopwright.storage.binary_cache import BinaryCache
cache, seed = BinaryCache(Path(sys.argv[1]), most_bytes=40_000), int(sys.argv[2])
print("started", flush=True)
for turn in range(int(sys.argv[3])):
    number = (turn * 7 + seed) % 16
    found = cache.get((str(number),))
    assert found in (None, (f"log {number}", bytes([number]) * 3000)), number
    if found is None or turn % 3 == 0:
        cache.put((str(number),), f"log {number}", bytes([number]) * 3000)
    if turn % 20 == 0:
        cache.prune()
print("held")
"""


def test_processes_share_a_cache_and_one_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    def start(seed: int, turns: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "error", "-c", SHARER, str(tmp_path), str(seed), str(turns)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    sharers, victims = [start(seed, 150) for seed in range(3)], [start(seed, 10**9) for seed in range(2)]
    for victim in victims:
        assert victim.stdout is not None and victim.stdout.readline() == "started\n"
        time.sleep(0.1)
        victim.kill()
    for victim in victims:
        victim.communicate()
    for sharer in sharers:
        out, err = sharer.communicate()
        assert out == "started\nheld\n" and not err
    BinaryCache(tmp_path, most_bytes=40_000).prune()
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert left and all(path.suffix == ".bin" for path in left)
    assert sum(path.stat().st_size for path in left) <= 40_000
