"""The index of `benchmarks/`: every script and every table of results is in it, and nothing that is not there."""

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
TEXT = (FOLDER / "README.md").read_text()


def test_every_script_is_in_the_index() -> None:
    scripts = {file.name for file in FOLDER.glob("*.py")}
    named = set(re.findall(r"`(?:[a-z_]+/)?([a-z_]+\.py)\b", TEXT))
    assert named - {"run.py"} == scripts - {"run.py"}, (
        "name a new script in benchmarks/README.md, with the question it answers"
    )


def test_every_table_is_in_the_index() -> None:
    tables = {f"results/{file.name}" for file in FOLDER.glob("results/*.md")}
    linked = set(re.findall(r"\]\((results/[^)#]+)", TEXT))
    assert linked == tables, (
        "link a new table in benchmarks/README.md, and move the one that it replaces under *before*"
    )
