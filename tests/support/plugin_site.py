"""Packages of others on the path of one test: the example of `examples/simple_core`, and ones that are broken."""

import shutil
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

import loopwright as lw

EXAMPLE = Path(lw.__file__).parent / "examples" / "simple_core"


def install_example(folder: Path) -> None:
    """Put the example where pip would, by the entry points of its pyproject.toml."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    shutil.copytree(EXAMPLE / "simple_core", folder / "simple_core", ignore=shutil.ignore_patterns("__pycache__"))
    write_metadata(folder, project["name"], project["entry-points"])


def write_metadata(folder: Path, name: str, groups: Mapping[str, Mapping[str, str]]) -> None:
    """Write what an installed distribution says of itself: its name, its version, its entry points."""
    info = folder / f"{name.replace('-', '_')}-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    lines = [
        line for group, points in groups.items() for line in (f"[{group}]", *(f"{n} = {v}" for n, v in points.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def on_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process, and those that it starts, find what a folder holds, until the test ends."""
    monkeypatch.syspath_prepend(folder)
    for name in [name for name in sys.modules if name.partition(".")[0] in {file.stem for file in folder.iterdir()}]:
        monkeypatch.delitem(sys.modules, name)
