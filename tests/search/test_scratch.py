"""Temporary folders: removed at the end, swept when their process was killed, and nothing else is."""

import os
import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from loopwright.search.measure.scratch import Scratch, sweep


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def killed(root: Path, code: str) -> None:
    """Run code that ends by SIGKILL, with `root` for temporary files."""
    script = f"""
        import os, sys
        sys.path[:0] = {sys.path!r}
        from loopwright.search.measure import scratch
        {code}
        os.kill(os.getpid(), 9)
        """
    environment = {**os.environ, "TMPDIR": str(root)}
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(script)], env=environment).returncode == -9


def test_the_next_one_sweeps_what_a_killed_process_left(root: Path) -> None:
    living = Scratch()
    killed(root, "folder = scratch.Scratch(); (folder.path / 'data.npy').write_text('much')")
    assert len(list(root.iterdir())) == 2 and living.path.is_dir()
    another = Scratch()
    assert sorted(root.iterdir()) == sorted([living.path, another.path])
    living.remove()
    another.remove()
    another.remove()
    assert not list(root.iterdir())


def test_one_killed_as_it_was_made_is_swept(root: Path) -> None:
    made = "made = scratch.tempfile.mkdtemp"
    then_dies = "scratch.tempfile.mkdtemp = lambda **how: (made(**how), os.kill(os.getpid(), 9))"
    killed(root, f"{made}; {then_dies}; scratch.Scratch()")
    (left,) = root.iterdir()
    assert left.is_dir() and not list(left.iterdir())
    sweep(root)
    assert not list(root.iterdir())


def test_what_is_not_ours_stays(root: Path) -> None:
    results = root / "loopwright-scratch-results"
    results.mkdir()
    (results / "best.jsonl").write_text("of days")
    elsewhere = root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "owner.lock").touch()
    (root / "loopwright-scratch-link").symlink_to(elsewhere)
    (root / "loopwright-scratch-file").touch()
    sweep(root)
    assert len(list(root.iterdir())) == 4 and (results / "best.jsonl").read_text() == "of days"
    assert (elsewhere / "owner.lock").exists()


def test_a_forked_child_does_not_remove_it(root: Path) -> None:
    folder = Scratch()
    child = os.fork()
    if child == 0:
        folder.remove()
        os._exit(0)
    os.waitpid(child, 0)
    sweep(root)
    assert folder.path.is_dir()
    folder.remove()


def test_it_goes_even_where_there_are_no_descriptors_to_look_inside(root: Path) -> None:
    folder = Scratch()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        folder.remove()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert not list(root.iterdir())
