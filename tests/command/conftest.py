"""A tuned matrix product for the tests of commands."""

import contextlib

import pytest
from commands import call
from tuned_commands import TUNE, Tuned


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory, quick_measuring: None) -> Tuned:
    """A matrix product tuned by the command, once for each module."""
    folder = tmp_path_factory.mktemp("tuned")
    with contextlib.chdir(folder):
        code, out, err = call(*TUNE)
    assert code == 0, out + err
    return Tuned(folder, out, err)
