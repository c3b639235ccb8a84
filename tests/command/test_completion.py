"""Completion for shells: the script that a shell reads knows every command and the options of each."""

import subprocess

import pytest
from commands import call

from loopwright.cli import command_names


def test_the_script_knows_every_command_and_is_one() -> None:
    pytest.importorskip("shtab")
    code, script, err = call("completion", "bash")
    assert code == 0, err
    assert all(name in script for name in command_names()) and "--more-trials" in script
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
