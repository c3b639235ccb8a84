"""Every page under docs/ runs: its python blocks in order, each text block what the block before it printed.

A block whose first line is `# not run: <why>` is only compiled.
"""

import contextlib
import inspect
import io
import re
from pathlib import Path

import pytest

import loopwright

ROOT = Path(loopwright.__file__).resolve().parent
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"# not run: \S+")


def pages() -> list[Path]:
    return sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_page_runs(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    names: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    ran = 0
    for match in BLOCK.finditer(text):
        kind, code = match.groups()
        line = text.count("\n", 0, match.start()) + 2
        if kind == "text":
            assert printed.strip() == code.strip(), f"{page.name}:{line}: the block before prints something else"
            printed = ""
            continue
        program = compile("\n" * (line - 1) + code, str(page), "exec")
        if NOT_RUN.match(code):
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(program, names)
        printed = out.getvalue()
        ran += 1
    assert ran, f"{page.name} has no python block that runs"


def test_te_page_names_every_operator() -> None:
    from loopwright import topi

    table = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "te.md").read_text()))
    public = {n for m in (topi, topi.nn) for n, value in vars(m).items() if inspect.isfunction(value)}
    assert not public - table
