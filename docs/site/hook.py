"""Pages of the site that are made when it is built: the README as its home, the public names, a sample report."""

import re
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import loopwright as lw
from loopwright import te, topi

ROOT = Path(__file__).resolve().parents[2]
TRIALS = 12


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leave out entries of the navigation whose pages are not there."""
    made = {"index.md", "reference.md", "sample_report.html"}

    def kept(entry: Any) -> Any:
        if isinstance(entry, str):
            return entry if entry in made or (ROOT / "docs" / entry).is_file() else None
        return {
            title: [e for e in map(kept, value) if e] if isinstance(value, list) else value
            for title, value in entry.items()
        }

    config.nav = [entry for entry in map(kept, config.nav or []) if entry]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    home = (ROOT / "README.md").read_text()
    files.append(File.generated(config, "index.md", content=re.sub(r"\]\(docs/", "](", home)))
    files.append(File.generated(config, "reference.md", content=reference()))
    files.append(File.generated(config, "wide.css", content=Path(__file__).with_name("wide.css").read_text()))
    files.append(File.generated(config, "sample_report.html", content=sample_report()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Name files of the repository that are not on the site, where a page links them."""
    outside = r"\[([^\]]*)\]\((?:\.\./)?((?:benchmarks|examples|tests|pretuned)/[^)#]*|[A-Z]+\.md|LICENSE)(?:#[^)]*)?\)"
    return re.sub(outside, r"\1 (`\2` in the repository)", markdown)


def reference() -> str:
    """A page of all public names, each by its docstring."""
    homes = {name: home for name, home in lw._HOMES.items() if getattr(lw, name, None) is not None}
    parts = [f"::: {home}.{name}\n" for name, home in sorted(homes.items(), key=lambda item: item[0].lower())]
    return "\n".join(["# Public names\n", "`lw.NAME` for each of these.\n", *parts])


def sample_report() -> str:
    """The report of a short search on the CPU that builds the site."""
    a, b = te.placeholder((128, 128), name="a"), te.placeholder((128, 128), name="b")
    task = lw.SearchTask([a, b, topi.nn.relu(topi.matmul(a, b))], target="llvm")
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder, "sample.jsonl")
        task.tune(lw.TuningOptions(num_measure_trials=TRIALS, records=records, progress=False))
        return lw.write_report(records, Path(folder, "sample.html"), measure=False).read_text()
