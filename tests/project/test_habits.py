"""Habits of the repository: the forge runs what CI does, commits are checked as by lint, docstrings name things."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_forge_runs_what_ci_runs() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    commands = re.findall(r"^make .*$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert len(commands) == 2
    assert not [command for command in commands if f"run: {command}" not in workflow]


def test_what_is_linted_is_checked_before_a_commit() -> None:
    goals = _goal("lint").partition("##")[0].split()
    linted = re.findall(r"bin/((?:ruff|mypy) .*)$", "\n".join(map(_goal, goals)), re.MULTILINE)
    assert len(linted) == 4
    hooks = re.findall(r"entry: \.venv/bin/((?:ruff|mypy) .*)$", (ROOT / ".pre-commit-config.yaml").read_text(), re.M)
    assert [command.split()[:2] for command in linted] == [hook.split()[:2] for hook in hooks]


RIDDLES = ("All that", "For which", "How", "In which", "Into", "What", "Where", "Whether", "Which", "Who", "Why")
"""Openings that leave a reader to look for the subject: a docstring begins with what a thing is or does."""


def test_docstrings_open_with_what_they_are_of() -> None:
    opening = re.compile(rf"(?:{'|'.join(RIDDLES)})\b")
    folders = [
        folder for folder in ROOT.iterdir() if folder.is_dir() and folder.name[0] != "." and folder.name != "tests"
    ]
    files = sorted([*ROOT.glob("*.py"), *(file for folder in folders for file in folder.rglob("*.py"))])
    assert len(files) > 400
    suspects = [file for file in files if re.search(rf'"""\s*{opening.pattern}', file.read_text())]
    found = [
        f"{file.relative_to(ROOT)}: {text}" for file in suspects for text in _docstrings(file) if opening.match(text)
    ]
    assert not found


def _docstrings(file: Path) -> Iterator[str]:
    """The first lines of a module's strings that stand alone: those of functions and classes, and of constants."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value.strip().partition("\n")[0]


def _goal(name: str) -> str:
    """The lines of a goal of the Makefile."""
    return (ROOT / "Makefile").read_text().partition(f"\n{name}:")[2].partition("\n\n")[0]
