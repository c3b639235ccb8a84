"""README.md and the pages under docs/ as programs: run their blocks, compare or (as a script) paste what they print.

`python` blocks run in order in one namespace, in an empty folder. A `text` block is what the python block before it
prints. Lines of a `console` block that begin with `$ ` are run, the others are their standard output. `...` in what is
shown stands for anything. A python block whose first line is `# not run: <why>` is only compiled; one that begins with
`# <file>` quotes a file of the repository.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from loopwright.search.workload import _REGISTERED

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(python|text|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"# not run: \S+")
QUOTED = re.compile(r"# (\w+/\S+\.py)\n")


@dataclass(frozen=True)
class Output:
    """Output that a page shows, from `start` to `end` of its text, and what came."""

    line: int
    start: int
    end: int
    shown: str
    printed: str

    @property
    def same(self) -> bool:
        parts = [re.escape(part) for part in self.shown.strip().split("...")]
        return re.fullmatch(".*?".join(parts), self.printed.strip(), re.DOTALL) is not None


def run_page(page: Path) -> Iterator[Output]:
    """Run a page in the current folder and yield each output that it shows beside the one it has.

    Of workloads it finds those of the package alone, as a program of its own would.
    """
    shipped = {name: w for name, w in _REGISTERED.items() if w.function.__module__.startswith("loopwright.")}
    with patch.dict(_REGISTERED, shipped, clear=True):
        yield from _outputs(page)


def _outputs(page: Path) -> Iterator[Output]:
    text = page.read_text()
    names: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for match in BLOCK.finditer(text):
        kind, code = match.groups()
        line = text.count("\n", 0, match.start(2)) + 1
        if kind == "text":
            yield Output(line, match.start(2), match.end(2), code, printed)
            printed = ""
        elif kind == "console":
            yield from run_console(code, line, match.start(2))
        else:
            printed = run_python(code, page, line, names)


def run_python(code: str, page: Path, line: int, names: dict[str, object]) -> str:
    """Run one block and return what it prints."""
    program = compile("\n" * (line - 1) + code, str(page), "exec")
    if NOT_RUN.match(code):
        return ""
    if quoted := QUOTED.match(code):
        source = (ROOT / quoted[1]).read_text()
        assert code[quoted.end() :].strip() in source, f"{page.name}:{line}: {quoted[1]} says something else"
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(program, names)
    return out.getvalue()


def run_console(code: str, line: int, start: int) -> Iterator[Output]:
    """Run the commands of one block."""
    for match in re.finditer(r"^\$ (.*(?:\\\n.*)*)\n((?:(?!\$ ).*\n)*)", code, re.MULTILINE):
        command, shown = match.groups()
        at = line + code.count("\n", 0, match.start(2))
        yield Output(at, start + match.start(2), start + match.end(2), shown, run_command(command))


def run_command(command: str) -> str:
    """The standard output of a shell command; its programs are those beside this Python."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
    return done.stdout


def all_pages() -> list[Path]:
    """The pages that run."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def refresh(page: Path) -> int:
    """Paste into a page what it prints where that differs; returns how many places were changed."""
    text = page.read_text()
    stale = [output for output in run_page(page) if not output.same]
    for output in reversed(stale):
        text = text[: output.start] + output.printed.rstrip("\n") + "\n" + text[output.end :]
    page.write_text(text)
    return len(stale)


def main() -> None:
    pages = [Path(name).resolve() for name in sys.argv[1:]] or all_pages()
    for page in pages:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            print(f"{page.name}: {refresh(page)} changed")


if __name__ == "__main__":
    main()
