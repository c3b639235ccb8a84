"""The built wheel works away from the repository: public names, types, both entry points, and no tests in it."""

import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

import loopwright

ROOT = Path(loopwright.__file__).resolve().parent
NOT_SHIPPED = {"tests", "benchmarks", "examples", "build", "dist", "docs"}
PROGRAM = """
import sys, xdsl
import loopwright
from loopwright import te, topi
from loopwright.passes.discovery import pass_factories
print(loopwright.__file__)
print(sorted(pass_factories()))
"""


def is_source(folder: Path) -> bool:
    parts = folder.relative_to(ROOT).parts
    return not any(part.startswith(".") for part in parts) and not NOT_SHIPPED & set(parts[:1])


def test_every_package_is_listed_and_every_folder_of_modules_is_a_package() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {file.parent for file in ROOT.rglob("*.py") if is_source(file.parent)}
    assert listed == sorted(".".join(["loopwright", *folder.relative_to(ROOT).parts]) for folder in folders)
    assert not [str(folder) for folder in folders if not (folder / "__init__.py").is_file()]


@dataclass(frozen=True)
class Installed:
    """A wheel and a fresh environment that holds it, with the tested environment's dependencies in reach."""

    wheel: Path
    bin: Path
    cwd: Path

    def run(self, *command: str) -> str:
        tool, *args = command
        done = subprocess.run([str(self.bin / tool), *args], cwd=self.cwd, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def build_wheel(into: Path) -> Path:
    """Build from a copy, so that no stale `build/` folder is shipped and none is left behind."""
    source = into / "source"
    shutil.copytree(
        ROOT, source, symlinks=True, ignore=shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
    )
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(into), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = into.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    base = tmp_path_factory.mktemp("packaging")
    wheel = build_wheel(base)
    environment = base / "environment"
    venv.create(environment, with_pip=False, system_site_packages=True, symlinks=True)
    python = environment / "bin" / "python"
    (site,) = environment.glob("lib/python*/site-packages")
    # Dependencies come from this environment; its own editable loopwright does not, for .pth files do not nest.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--ignore-installed", str(wheel)], check=True)
    xdsl_opt = environment / "bin" / "xdsl-opt"
    xdsl_opt.write_text(f"#!{python}\nfrom xdsl.tools.xdsl_opt import main\nmain()\n")
    xdsl_opt.chmod(0o755)
    cwd = base / "elsewhere"
    cwd.mkdir()
    return Installed(wheel, environment / "bin", cwd)


@pytest.mark.slow
def test_wheel_holds_the_package_and_nothing_else(installed: Installed) -> None:
    names = zipfile.ZipFile(installed.wheel).namelist()
    shipped = {name for name in names if name.startswith("loopwright/")}
    sources = {f"loopwright/{file.relative_to(ROOT)}" for file in ROOT.rglob("*.py") if is_source(file.parent)}
    assert {name for name in shipped if name.endswith(".py")} == sources
    assert "loopwright/py.typed" in shipped
    assert {name.split("/")[0] for name in set(names) - shipped} == {f"loopwright-{loopwright.__version__}.dist-info"}


@pytest.mark.slow
def test_wheel_imports_from_outside(installed: Installed) -> None:
    location, passes = installed.run("python", "-c", PROGRAM).splitlines()
    assert Path(location).is_relative_to(installed.bin.parent)
    assert passes == str(sorted(f"lw-{stem.replace('_', '-')}" for stem in pass_stems()))


def pass_stems() -> list[str]:
    folders = [ROOT / "passes" / "schedule", ROOT / "passes" / "lower"]
    return [file.stem for folder in folders for file in folder.glob("*.py") if not file.stem.startswith("_")]


@pytest.mark.slow
@pytest.mark.parametrize("command", [["loopwright"], ["python", "-m", "loopwright"]])
def test_command_line_entry_points(installed: Installed, command: list[str]) -> None:
    assert installed.run(*command, "--version") == f"loopwright {loopwright.__version__}\n"


@pytest.mark.slow
def test_xdsl_opt_offers_the_passes(installed: Installed) -> None:
    offered = re.sub(r"\s", "", installed.run("xdsl-opt", "--help"))
    missing = [stem for stem in pass_stems() if f",lw-{stem.replace('_', '-')}," not in re.sub(r"[.:]", ",", offered)]
    assert not missing


@pytest.mark.slow
def test_xdsl_opt_knows_the_dialects(installed: Installed) -> None:
    program = """
from xdsl.context import Context
from xdsl.universe import Universe
context = Context()
for name, factory in Universe.get_multiverse().all_dialects.items():
    context.register_dialect(name, factory)
print([context.get_optional_dialect(name) is not None for name in ("lw", "lw_te", "lw_loop", "lw_kernel")])
"""
    assert installed.run("python", "-c", program) == "[True, True, True, True]\n"
