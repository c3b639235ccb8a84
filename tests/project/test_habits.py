"""What is said in two places about how the repository is kept: what CI runs, and what is checked before a commit."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_forge_runs_what_ci_runs() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    commands = re.findall(r"^make .*$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert len(commands) == 2
    assert not [command for command in commands if f"run: {command}" not in workflow]


def test_what_is_linted_is_checked_before_a_commit() -> None:
    linted = re.findall(r"bin/((?:ruff|mypy) .*)$", _goal("lint"), re.MULTILINE)
    hooks = re.findall(r"entry: \.venv/bin/((?:ruff|mypy) .*)$", (ROOT / ".pre-commit-config.yaml").read_text(), re.M)
    assert [command.split()[:2] for command in linted] == [hook.split()[:2] for hook in hooks]


def _goal(name: str) -> str:
    """The lines of a goal of the Makefile."""
    return (ROOT / "Makefile").read_text().partition(f"\n{name}:")[2].partition("\n\n")[0]
