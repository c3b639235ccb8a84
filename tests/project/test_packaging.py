"""The built wheel works away from the repository: public names, types, both entry points, and no tests in it."""

import os
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
from loopwright.passes.discovery import pass_factories
from loopwright.universe import UNIVERSE

ROOT = Path(loopwright.__file__).resolve().parent
DATA = "loopwright.pretuned"
"""A folder of data, which setuptools takes for a package, and warns of where it is not listed."""
NOT_SHIPPED = {"tests", "benchmarks", "examples", "build", "dist", "docs"}
MODULES = {
    "cuda-bindings": "cuda",
    "nvidia-cuda-nvrtc": "nvrtc",
    "nvidia-cuda-runtime": "cuda.h",
    "vl-convert-python": "vl_convert",
}
"""What the package names of a requirement, where that is not its name."""
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
    found = {".".join(["loopwright", *folder.relative_to(ROOT).parts]) for folder in folders}
    assert listed == sorted(found | {DATA})
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


def copy_of_sources(into: Path) -> Path:
    """What is built from, so that no stale `build/` folder is shipped and none is left behind."""
    ignored = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
    return Path(shutil.copytree(ROOT, into / "source", symlinks=True, ignore=ignored))


def build_wheel(into: Path) -> Path:
    source = copy_of_sources(into)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(into), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    said = [line for line in (done.stdout + done.stderr).splitlines() if re.match("warning|\\*{8}", line.strip(), re.I)]
    assert not [line for line in said if "byte-compiling is disabled" not in line], "a wheel builds without warnings"
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
    assert passes == str(sorted(pass_factories()))


@pytest.mark.slow
@pytest.mark.parametrize("command", [["loopwright"], ["python", "-m", "loopwright"]])
def test_command_line_entry_points(installed: Installed, command: list[str]) -> None:
    assert installed.run(*command, "--version") == f"loopwright {loopwright.__version__}\n"


@pytest.mark.slow
def test_xdsl_opt_offers_the_passes(installed: Installed) -> None:
    offered = re.sub(r"\s", "", installed.run("xdsl-opt", "--help"))
    missing = [name for name in UNIVERSE.all_passes if f",{name}," not in re.sub(r"[.:]", ",", offered)]
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


def test_every_extra_is_of_packages_that_the_package_uses() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    text = "".join(file.read_text() for file in ROOT.rglob("*.py") if is_source(file.parent))
    for name in extras.keys() - {"dev", "docs", "all"}:
        for needed in extras[name]:
            package = re.split(r"[<>=\[]", needed)[0]
            assert package == "loopwright" or MODULES.get(package, package) in text, f"{name}: {needed} is not used"


def check_types(tool: list[str], folder: Path, python: str) -> None:
    """The example of a user's program has no error, and a primitive or an operator that is misspelt is one."""
    program = (ROOT / "examples" / "typed_program.py").read_text()
    (folder / "right.py").write_text(program)
    done = subprocess.run([*tool, python, "right.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "wrong.py").write_text(
        program.replace("sch.unroll(", "sch.unrol(").replace("net.softmax(", "net.sofmax(")
    )
    done = subprocess.run([*tool, python, "wrong.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "unrol" in done.stdout and "sofmax" in done.stdout, done.stdout + done.stderr


MYPY = [sys.executable, "-m", "mypy", "--strict", "--python-executable"]
PYRIGHT = [sys.executable, "-m", "pyright", "--pythonpath"]


@pytest.mark.slow
def test_a_users_file_has_types_in_the_editable_install(tmp_path: Path) -> None:
    """Checkers do not run the hook of an editable install: `make` leaves a path beside it, which they read."""
    check_types(MYPY, tmp_path, sys.executable)


@pytest.mark.slow
def test_a_users_file_has_types_from_a_wheel(installed: Installed, tmp_path: Path) -> None:
    check_types(MYPY, tmp_path, str(installed.bin / "python"))


@pytest.mark.slow
def test_a_users_file_has_types_in_an_editor(installed: Installed, tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    for python in (sys.executable, str(installed.bin / "python")):
        check_types(PYRIGHT, tmp_path, python)


@pytest.mark.slow
def test_tests_of_a_source_distribution_run(tmp_path: Path) -> None:
    source = copy_of_sources(tmp_path)
    command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(tmp_path), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(archive, tmp_path / "unpacked", filter="data")
    (root,) = (tmp_path / "unpacked").iterdir()
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "loopwright").symlink_to(root)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "links")}
    some = ["tests/te/test_te.py", "tests/filecheck/schedule/split.mlir", "tests/project/test_layering.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *some]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
