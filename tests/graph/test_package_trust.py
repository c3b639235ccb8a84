"""Who saved a compiled network: one's own load as they are, any other only where the caller trusts them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import call
from packages import grow, parts_of, small_network, with_header, write_parts
from process_limits import limited

import loopwright as lw
from loopwright.graph.runtime.package import PackageError, PackageWarning
from loopwright.storage import user_key
from loopwright.storage.user_key import NoKey, Origin, origin_of, tag

pytestmark = pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")
HOLDS = "holds native code, which would run with all your rights, and "
TRUST = ": load it with trusted=True (--trust) if you trust where it is from"


@pytest.fixture(scope="module")
def network() -> lw.CompiledNetwork:
    return lw.compile(small_network(), "llvm cores=1", processes=1)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without a key, and the folder where it will be."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "loopwright"


def refused(path: Path, why: str) -> None:
    """The file is refused for a reason, and loads where it is trusted."""
    with pytest.raises(PackageError) as error:
        lw.load_network(path)
    assert str(error.value) == f"{path} {HOLDS}{why}{TRUST}"
    assert lw.load_network(path, trusted=True).executor()


def test_own_files_load_as_they_are(network: lw.CompiledNetwork, data: Path, tmp_path: Path) -> None:
    network.save(tmp_path / "net.lw")
    assert stat.S_IMODE((data / "key").stat().st_mode) == 0o600 and stat.S_IMODE(data.stat().st_mode) == 0o700
    key = (data / "key").read_text()
    assert re.fullmatch("[0-9a-f]{64}\n", key)
    assert lw.load_network(tmp_path / "net.lw").plan == network.plan
    network.save(tmp_path / "again.lw")
    assert (data / "key").read_text() == key
    assert (tmp_path / "again.lw").read_bytes() == (tmp_path / "net.lw").read_bytes()
    assert key.strip().encode() not in (tmp_path / "net.lw").read_bytes()


def test_files_of_others_are_refused(
    network: lw.CompiledNetwork, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "net.lw"
    network.save(path)
    os.rename(data / "key", tmp_path / "old")
    refused(path, f"nothing shows that you saved it, as this user has no key in {data}/key yet")
    network.save(tmp_path / "mine.lw")
    refused(path, "it was not saved with your key")
    os.rename(tmp_path / "old", data / "key")
    assert lw.load_network(path)
    with pytest.raises(PackageError, match="it was not saved with your key"):
        lw.load_network(tmp_path / "mine.lw")
    lw.load_network(tmp_path / "mine.lw", trusted=True).save(tmp_path / "mine.lw")
    assert lw.load_network(tmp_path / "mine.lw"), "what was trusted once and saved again is one's own"


def test_files_that_changed_are_refused(network: lw.CompiledNetwork, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "net.lw"
    network.save(path)
    parts = parts_of(path)
    write_parts(path, with_header(parts, lambda h: h["plan"].update(name="other")))
    refused(path, "it was changed since you saved it")
    write_parts(path, {name: part for name, part in parts.items() if name != "tag"})
    refused(path, "nothing in it says who saved it")
    for forged in (b"", b"\xff" * 40, b"a b c", parts["tag"][:-2], parts["tag"].upper(), b"\n" + parts["tag"] + b"x"):
        write_parts(path, {**parts, "tag": forged})
        with pytest.raises(PackageError, match=HOLDS):
            lw.load_network(path)
    other = parts["kernels/1"][:-1] + b"x"
    write_parts(path, {**parts, "kernels/1": other})
    with pytest.raises(PackageError, match="is damaged: kernels/1 is not what was written"):
        lw.load_network(path)
    write_parts(path, {**parts, "constants/0": bytes(len(parts["constants/0"]))})
    with pytest.raises(PackageError, match="is damaged: constants/0 is not what was written"):
        lw.load_network(path)
    digest = json.loads(parts["network.json"])["kernels"][0]
    write_parts(path, with_header(parts, lambda h: h["kernels"].__setitem__(0, digest[::-1])))
    with pytest.raises(PackageError, match="it was changed since you saved it"):
        lw.load_network(path)


@contextlib.contextmanager
def without_a_tag(path: Path, why: str) -> Iterator[None]:
    with pytest.warns(PackageWarning) as said:
        yield
    assert [str(each.message) for each in said if issubclass(each.category, PackageWarning)] == [
        f"{path} is saved without a tag, so loading it takes trusted=True (--trust): {why}"
    ]
    with pytest.raises(PackageError, match=f"{HOLDS}nothing in it says who saved it"):
        lw.load_network(path)
    assert lw.load_network(path, trusted=True)


def test_without_a_usable_key_saving_goes_on(
    network: lw.CompiledNetwork, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "net.lw"
    tag("first", b"")
    (data / "key").chmod(0o640)
    with without_a_tag(path, f"other users may use the key {data}/key (chmod 600 closes it, rm makes a new one)"):
        network.save(path)
    for text in ("", "12", "no key\n", "z" * 64, "00" * 31, "00" * 5000):
        (data / "key").write_text(text)
        (data / "key").chmod(0o600)
        with without_a_tag(path, f"{data}/key is no key (rm makes a new one)"):
            network.save(path)
    (data / "key").unlink()
    data.rmdir()
    data.write_text("")
    with without_a_tag(path, f"cannot make the key {data}/key: File exists"):
        network.save(path)
    data.unlink()
    monkeypatch.setattr(user_key, "data_folder", lambda: None)
    with without_a_tag(path, "this user has no home folder (XDG_DATA_HOME names another place)"):
        network.save(path)


def test_a_key_of_another_user_is_not_used(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = tag("purpose", b"content")
    monkeypatch.setattr(user_key.os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(NoKey, match="belongs to another user"):
        tag("purpose", b"content")
    with pytest.raises(NoKey, match="belongs to another user"):
        origin_of("purpose", b"content", found)


def test_tags_are_of_content_and_purpose(data: Path) -> None:
    found = tag("purpose", b"content")
    assert origin_of("purpose", b"content", found) is Origin.OWN
    assert origin_of("purpose", b"Content", found) is origin_of("other", b"content", found) is Origin.CHANGED
    assert origin_of("purpose", b"content", "x" + found[1:]) is Origin.STRANGER
    assert tag("purpose", b"content") == found != tag("purpose", b"")


def test_processes_that_need_a_first_key_at_once_agree(data: Path, tmp_path: Path) -> None:
    program = "from loopwright.storage.user_key import tag; print(tag('purpose', b'content'))"
    started = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert len({process.communicate()[0] for process in started}) == 1
    assert [path.name for path in data.iterdir()] == ["key"]


def test_a_file_that_cannot_be_written_is_an_error_and_leaves_nothing(
    network: lw.CompiledNetwork, tmp_path: Path
) -> None:
    path = tmp_path / "folder" / "net.lw"
    with pytest.raises(FileNotFoundError, match=re.escape(str(path))):
        network.save(path)
    path.parent.mkdir()
    network.save(path)
    before = path.read_bytes()
    too_large = pytest.raises(OSError, match=f"File too large: '{re.escape(str(path))}'")
    with limited(resource.RLIMIT_FSIZE, len(before) // 2), too_large:
        network.save(path)
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        network.save("/dev/full")
    assert path.read_bytes() == before and [each.name for each in path.parent.iterdir()] == ["net.lw"]


def test_commands_take_trust(
    network: lw.CompiledNetwork, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    network.save("net.lw")
    assert call("run", "net.lw")[0] == 0
    (data / "key").unlink()
    for command in (["run", "net.lw"], ["bench", "net.lw", "--min-repeat-ms", "1"]):
        code, out, err = call(*command)
        assert (code, out) == (2, "") and err == (
            f"loopwright: net.lw {HOLDS}nothing shows that you saved it, as this user has no key in {data}/key yet"
            f"{TRUST}\n"
        )
        assert call(*command, "--trust")[0] == 0
    code, _, err = call("run", "mlp", "--trust")
    assert code == 2 and err == "loopwright: mlp is compiled here: --trust is for compiled networks (.lw)\n"
    parts = parts_of(Path("net.lw"))
    elsewhere = with_header(parts, lambda h: h["plan"].update(target="llvm model=other"))
    write_parts(Path("net.lw"), elsewhere)
    code, _, err = call("run", "net.lw", "--trust")
    assert code == 2 and err.startswith("loopwright: network small is compiled for other, this CPU is ")


def test_more_memory_than_there_is_is_a_sentence(network: lw.CompiledNetwork, tmp_path: Path) -> None:
    network.save(tmp_path / "net.lw")
    write_parts(tmp_path / "net.lw", with_header(parts_of(tmp_path / "net.lw"), grow))
    loaded = lw.load_network(tmp_path / "net.lw", trusted=True)
    with pytest.raises(PackageError, match=r"^network small takes 35,184,[\d,]+ bytes, this machine now has [\d,]+$"):
        loaded.executor()
