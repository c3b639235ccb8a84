"""README.md and every page under docs/ run and print what they say; `support/doc_pages.py` describes the blocks."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from doc_pages import ROOT, Output, all_pages, run_page

import loopwright
from loopwright.cli import command_names
from loopwright.passes.discovery import primitive_stems

TUNING = ("calibration.md", "cli.md", "tutorial_conv2d.md", "tutorial_network_gpu.md")
"""Pages that tune for longest."""
DEAR = (
    *("explain.md", "extending.md", "fleet.md", "front_end.md", "mlir.md", "network.md", "records.md", "search.md"),
    *("template.md", "tutorial_network_mali.md", "tutorial_template_conv2d.md", "winograd.md", "xdsl_opt.md"),
)
"""Pages of seconds, whose commands and calls the tests of their parts make too: CI runs them."""
NEEDS = {"pytorch.md": "torch"}
"""Packages that a page is skipped without."""


def pages() -> list[ParameterSet]:
    marks = {**{name: [pytest.mark.slow] for name in TUNING}, **{name: [pytest.mark.slow(1.2)] for name in DEAR}}
    return [pytest.param(p, marks=marks.get(p.name, []), id=p.name) for p in all_pages()]


@pytest.mark.parametrize("page", pages())
@pytest.mark.usefixtures("quick_measuring", "registries")
def test_page_runs(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("loopwright.search.workload._REGISTERED", {})  # a page is a program of its own
    outputs = list(run_page(page))
    assert outputs, f"{page.name} shows nothing that it prints"
    for output in outputs:
        assert output.same, f"{page.name}:{output.line}: this is printed instead:\n{output.printed}"


def test_dots_stand_for_anything_and_nothing_else_does() -> None:
    def same(shown: str, printed: str) -> bool:
        return Output(0, 0, 0, shown, printed).same

    assert same("a ... c\n", "a b\nb c\n")
    assert not same("a ... c\n", "a b d\n")
    assert not same("a.c", "abc")


def test_te_page_names_every_operator() -> None:
    from loopwright import topi

    table = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "te.md").read_text()))
    public = {n for m in (topi, topi.nn) for n, value in vars(m).items() if inspect.isfunction(value)}
    assert not public - table


def test_schedule_page_names_every_primitive() -> None:
    page = (ROOT / "docs" / "schedule.md").read_text()
    assert not [stem for stem in primitive_stems() if f"| `{stem}` |" not in page]


def test_template_page_names_every_policy_and_option() -> None:
    from loopwright import tuners
    from loopwright.search.template.config import Config
    from loopwright.search.template.knobs import annotate, reorder, split

    page = (ROOT / "docs" / "template.md").read_text()
    measured = (ROOT / "docs" / "search.md").read_text()  # for templates as for sketches
    local = {n for call in (tuners.LocalBuilder, tuners.LocalRunner) for n in inspect.signature(call).parameters}
    assert not sorted(name for name in local if not re.search(rf"`{name}\b", measured))
    made = (split.SplitKnob, reorder.ReorderKnob, annotate.AnnotateKnob)
    tuned = (tuners.GATuner, tuners.GradientBoostingTuner, tuners.Tuner.tune)
    names = {n for call in (*made, *tuned) for n in inspect.signature(call).parameters}
    names -= {"self", "extent", "annealing"}  # what the page calls otherwise, or leaves to the reader
    names |= {*split.POLICIES, *reorder.POLICIES, *annotate.POLICIES}
    names |= {n for n in vars(Config) if n.startswith(("define_", "add_", "fallback_"))}
    names |= {n for n, value in vars(tuners.callbacks).items() if inspect.isfunction(value) and n[0] != "_"}
    assert not sorted(name for name in names if not re.search(rf"\b{name}\b", page))


def speed_by_step(*options: str) -> dict[str, float]:
    """GFLOP/s after each step of the example that schedules a product by hand."""
    script = str(ROOT / "examples" / "matmul_by_hand.py")
    done = subprocess.run(
        [sys.executable, script, "--size", "96", *options], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in done.stdout.splitlines() if "%" in line and "lw-" not in line]
    return {row[0]: float(row[1]) for row in rows}


@pytest.mark.slow(1.2)
def test_example_prints_the_speed_of_each_step() -> None:
    speed = speed_by_step("--repeats", "20")
    assert list(speed) == ["naive", "reorder", "vectorize", "tile", "accumulate", "pack", "threads"]
    assert all(gflops_per_s > 0 for gflops_per_s in speed.values())


@pytest.mark.perf
def test_example_prints_what_tiling_gains() -> None:
    speed = speed_by_step()
    assert speed["tile"] > 2 * speed["reorder"]


def test_cli_page_names_every_command() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    assert not [name for name in command_names() if f"## `{name}`" not in page]


def test_readme_links_every_page() -> None:
    readme = (ROOT / "README.md").read_text()
    assert not [page.name for page in all_pages()[1:] if f"docs/{page.name}" not in readme]


def test_the_site_leads_to_every_page() -> None:
    """The strict build of the site says so, too, but takes a minute."""
    named = set(re.findall(r"^ +- (\w+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert {page.name for page in all_pages()[1:]} - named == set()


def test_tutorials_stand_under_their_classic_titles() -> None:
    """Where README.md and the page for users of TVM link them; each goes through its steps when it is run above."""
    pages = {page for page in all_pages() if page.name.startswith("tutorial_")}
    assert len(pages) == 4
    for page in pages:
        title = page.read_text().splitlines()[0].removeprefix("# ")
        assert f"[{title}](docs/{page.name})" in (ROOT / "README.md").read_text()
        assert f"[{title}]({page.name})" in (ROOT / "docs" / "from_tvm.md").read_text()


def written_pages() -> list[Path]:
    return [*all_pages(), *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"))]


@pytest.mark.parametrize("page", [pytest.param(p, id=p.name) for p in written_pages()])
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", page.read_text())
    assert not [link for link in links if "://" not in link and not (page.parent / link).exists()]


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/glossary.md"])
def test_paths_that_pages_name_exist(name: str) -> None:
    """Where a page sends somebody there is something, in the root or a folder of it; `my_...` and `N` are examples."""
    paths = re.findall(r"`([a-z_.]+/(?!\S*my_|N`)[\w./-]*)`", (ROOT / name).read_text())
    folders = [ROOT, *(folder for folder in ROOT.iterdir() if folder.is_dir())]
    assert not [path for path in paths if not any((folder / path).exists() for folder in folders)]


def test_rows_of_the_classic_systems_name_tests_that_are_there() -> None:
    """All rows in order, each with a test; those without say in bold that less is done."""
    table = (ROOT / "docs" / "algorithms.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if re.match(r"\| \d+ \|", line)]
    assert [int(row[0]) for row in rows] == list(range(1, 52))
    assert not [row[0] for row in rows if "::" not in row[-1] and not row[2].startswith("**none**")]
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", table)
    assert len(named) >= 48
    assert not [f"{path}::{name}" for path, name in named if f"def {name}(" not in _text(ROOT / path)]


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def test_type_checkers_see_every_public_name() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.asname: (node.module if alias.asname not in loopwright._SUBPACKAGES else "")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == {**loopwright._HOMES, **dict.fromkeys(loopwright._SUBPACKAGES, "")}
