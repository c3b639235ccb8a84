"""The signatures that type checkers read are those of the passes; `lw.Error` is the base of what is raised."""

from pathlib import Path

import network_operators
import pytest

import loopwright as lw
import primitive_methods
from loopwright.schedule import Schedule, _methods


def test_the_signatures_are_those_of_the_passes() -> None:
    """Where this fails: .venv/bin/python tests/support/primitive_methods.py, and make format."""
    written = (Path(lw.__file__).parent / "primitive_methods.py").read_text()
    assert "".join(written.split()).replace(",)", ")") == "".join(primitive_methods.text().split()).replace(",)", ")")
    assert not [name for name in _methods() if f"def {name}(" not in written and name not in vars(Schedule)]


def test_the_signatures_of_a_network_are_those_of_its_operators() -> None:
    """Where this fails: .venv/bin/python tests/support/network_operators.py, and make format."""
    for name, text in network_operators.texts().items():
        written = (Path(lw.__file__).parent / "graph" / name).read_text()
        assert "".join(written.split()).replace(",)", ")") == "".join(text.split()).replace(",)", ")")


@pytest.mark.parametrize("name", [name for name in lw.__all__ if name.endswith("Error")])
def test_every_public_error_is_an_error_of_ours(name: str) -> None:
    assert issubclass(getattr(lw, name), lw.Error)


def test_public_names_are_listed() -> None:
    assert set(lw.__all__) == {*lw._HOMES, *lw._SUBPACKAGES} and set(lw.__all__) <= set(dir(lw))
    assert all(issubclass(getattr(lw, name), UserWarning) for name in lw.__all__ if name.endswith("Warning"))
