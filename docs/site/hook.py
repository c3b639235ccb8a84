"""Pages of the site that are made as it is built: the README and its neighbours, benchmarks, public names, a report."""

import inspect
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import loopwright as lw
from loopwright import te, topi

ROOT = Path(__file__).resolve().parents[2]
TRIALS = 32
"""Trials of the sample report: half as many tell too little of which decisions mattered. 10 to 20 s on two cores."""
BESIDE_README = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
_OPTION = re.compile(r"(?<=[ >])--?[a-z][\w-]*")
"""An option of a command: behind the tag that begins the code, or a space."""
UNSEARCHED = ("benchmarks/results/", "CHANGELOG.md")
"""Pages of figures and of history, which would hide the others among what a reader searches for."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leave out entries of the navigation whose pages are not there."""
    made = {"reference.md", "sample_report.html", *dict(from_the_repository())}

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
    for uri, source in from_the_repository():
        files.append(File.generated(config, uri, content=source.read_text()))
    files.append(File.generated(config, "reference.md", content=reference()))
    files.append(File.generated(config, "wide.css", content=Path(__file__).with_name("wide.css").read_text()))
    files.append(File.generated(config, "sample_report.html", content=sample_report()))
    return files


def from_the_repository() -> Iterator[tuple[str, Path]]:
    """Pages that lie outside docs/: where each is on the site, and its file."""
    yield "index.md", ROOT / "README.md"
    yield from ((name, ROOT / name) for name in BESIDE_README)
    yield "benchmarks/index.md", ROOT / "benchmarks" / "README.md"
    for table in sorted((ROOT / "benchmarks" / "results").glob("*.md")):
        yield f"benchmarks/results/{table.name}", table


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to where pages are on the site, under their titles, and name files that are not on it."""
    uri = page.file.src_uri
    if uri.startswith(UNSEARCHED):
        page.meta["search"] = {"exclude": True}
    if "\n## " not in markdown and uri != "reference.md":
        page.meta["hide"] = ["toc"]
    if "/" not in uri:
        markdown = re.sub(r"\]\((?:\.\./|docs/)", "](", markdown)
        markdown = re.sub(r"\]\(benchmarks/(?:README\.md|results/)\)", "](benchmarks/index.md)", markdown)
    outside = r"\[([^\]]*)\]\(((?:examples|tests|pretuned|samples)/[^)#]*|LICENSE)(?:#[^)]*)?\)"
    markdown = re.sub(outside, r"\1 (`\2` in the repository)", markdown)
    return re.sub(r"\[(?:docs/)?(\w+\.md)\]\(", titled, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Keep options of commands whole where a line of inline code ends: browsers break them behind the first hyphen."""
    return re.sub(r"<code>[^<]*</code>", lambda code: _OPTION.sub(r'<span class="option">\g<0></span>', code[0]), html)


def titled(link: re.Match[str]) -> str:
    """The beginning of a link that is named by its file, with the page's title for it."""
    page = ROOT / "docs" / link[1]
    return f"[{page.read_text().splitlines()[0].removeprefix('# ')}](" if page.is_file() else link[0]


def reference() -> str:
    """A page of all public names, each by its docstring, and a list of them by the first line of it."""
    homes = {name: home for name, home in lw._HOMES.items() if getattr(lw, name, None) is not None}
    names = sorted(homes.items(), key=lambda item: item[0].lower())
    table = [
        "| `lw.` | |",
        "|---|---|",
        *(f"| [`{name}`](#{home}.{name}) | {first_line(name)} |" for name, home in names),
    ]
    parts = [f"::: {home}.{name}\n" for name, home in names]
    return "\n".join(["# Public names\n", *table, "", *parts])


def first_line(name: str) -> str:
    """The first line of a public name's docstring, as a cell of a table."""
    return (inspect.getdoc(getattr(lw, name)) or "").partition("\n")[0].replace("|", "\\|")


def sample_report() -> str:
    """The report of a short search on the CPU that builds the site."""
    a, b = te.placeholder((128, 128), name="a"), te.placeholder((128, 128), name="b")
    task = lw.SearchTask([a, b, topi.nn.relu(topi.matmul(a, b))], target="llvm")
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder, "sample.jsonl")
        task.tune(lw.TuningOptions(num_measure_trials=TRIALS, records=records, progress=False))
        return lw.write_report(records, Path(folder, "sample.html"), measure=True).read_text()
