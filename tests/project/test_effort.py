"""The share of the tests that a run takes: the usual cases, as many times as many, or all."""

from pathlib import Path

import effort
import pytest

pytest_plugins = ["pytester"]

TESTS = """
import pytest

def test_usual(): pass

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.slow(2)
def test_from_twice_the_usual_on(): pass

@pytest.mark.parametrize("case", range(5))
@pytest.mark.few(2)
def test_few(case): pass
"""


@pytest.mark.parametrize(
    ("options", "taken"),
    [
        ([], 1 + 2),
        (["--effort", "1.5"], 1 + 3),
        (["--effort", "2"], 1 + 1 + 4),
        (["--effort", "3"], 1 + 1 + 5),
        (["--all"], 8),
        (["test_these.py::test_slow"], 1),
    ],
)
def test_a_run_takes_so_many(
    options: list[str], taken: int, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(effort.VARIABLE, "1")  # and back again, as options set it for the modules of a run
    marks = "markers =\n    slow(n): leave out\n    few(n): leave out\n"
    pytester.makeini(f"[pytest]\naddopts = --import-mode=importlib -p no:cacheprovider\n{marks}")
    pytester.makeconftest(Path(__file__).parents[1].joinpath("conftest.py").read_text())
    pytester.makepyfile(test_these=TESTS)
    result = pytester.runpytest_inprocess(*options)
    assert result.parseoutcomes()["passed"] == taken
