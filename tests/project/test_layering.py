"""Imports point one way, heavy packages load when used, and every primitive has all that belongs to one."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import loopwright
from loopwright.passes.primitive import Primitive
from loopwright.schedule import primitive_class

ROOT = Path(loopwright.__file__).resolve().parent

# Layer -> the layers it may import; the front door (the root's other modules, command, frontends) may import all.
MAY_IMPORT = {
    "storage": set(),
    "dialects": set(),
    "te": {"dialects"},
    "topi": {"dialects", "te"},
    "passes": {"dialects"},
    "backends": {"storage", "dialects", "passes"},
    "schedule": {"dialects", "te", "passes", "backends", "loop_ref", "primitive_methods"},
    "search": {"storage", "dialects", "te", "topi", "passes", "schedule", "backends"},
    "fleet": {"storage", "dialects", "te", "topi", "passes", "schedule", "backends", "search", "graph", "__version__"},
    "graph": {"storage", "dialects", "te", "topi", "passes", "schedule", "backends", "search"},
}
HEAVY = {
    "cuda",
    "cryptography",
    "dask",
    "distributed",
    "jax",
    "llvmlite",
    "onnx",
    "onnxscript",
    "pycuda",
    "pyopencl",
    "rich",
    "scipy",
    "shtab",
    "sklearn",
    "threadpoolctl",
    "vl_convert",
}
HEAVY |= {"google", "ml_dtypes", "onnxruntime", "torch"}
LOADS_LATE = {
    "cli.py": "start-up: classes of errors, where there was one",
    "command/": "start-up: what one command runs",
    "backends/cuda/device.py": "start-up of a runner, which builds nothing",
    "backends/installed.py": "start-up of a runner, which builds nothing",
    "backends/llvm/device.py": "start-up of a runner, which builds nothing",
    "backends/opencl/device.py": "start-up of a runner, which builds nothing",
    "backends/build.py": "start-up: one backend of three, and lowering, which a search leaves to others",
    "frontends/torch/backend.py": "start-up where graphs are kept: what traces one",
    "frontends/torch/devices.py": "start-up: one device of two",
    "frontends/torch/optimize.py": "start-up where programs are kept: what traces one",
    "frontends/torch/options.py": "start-up: the compiler",
    "frontends/torch/parts.py": "start-up where networks are kept: the importer",
    "frontends/torch/region.py": "start-up where networks are kept: the importer and the compiler",
    "graph/build_process.py": "start-up of a process for each core, most of whose kernels come with a schedule",
    "graph/export.py": "start-up where networks are kept: the compiler, for libraries",
    "search/measure/guard.py": "memory: the guard of a worker stays small beside it",
    "search/task.py": "start-up of who builds without a search: what searches and measures",
    "te/expr.py": "expressions and tensors need each other",
    "te/tensor.py": "expressions and tensors need each other",
}
"""Files and folders whose functions import our own modules or the standard library, and why they do."""


@cache
def package_files() -> list[Path]:
    folders = [*MAY_IMPORT, "command", "frontends", "testing"]
    return sorted([*ROOT.glob("*.py"), *(file for folder in folders for file in (ROOT / folder).rglob("*.py"))])


def package_of(file: Path) -> list[str]:
    """Return the package that relative imports in `file` start from."""
    return ["loopwright", *file.relative_to(ROOT).parent.parts]


@cache
def tree_of(file: Path) -> ast.Module:
    """A file's syntax tree, which is not to be changed."""
    return ast.parse(file.read_text())


def statements(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield a module or a statement, and the statements in it; expressions, which are many, hold none."""
    waiting = [scope]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(
            n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt | ast.excepthandler | ast.match_case)
        )


@cache
def imports(file: Path, within: type[ast.AST] = ast.Module) -> list[tuple[str, ast.stmt]]:
    """Return the absolute dotted name of everything that `file`, or its functions (`within`), import."""
    tree = tree_of(file)
    scopes = [tree] if within is ast.Module else [node for node in statements(tree) if isinstance(node, within)]
    found: list[tuple[str, ast.stmt]] = []
    for node in (node for scope in scopes for node in statements(scope)):
        if isinstance(node, ast.Import):
            found += ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package_of(file)[: -(node.level - 1) or None] if node.level else []
            prefix = [*base, *(node.module.split(".") if node.module else [])]
            found += ((".".join([*prefix, alias.name]), node) for alias in node.names)
    return found


def loads_at_import(tree: ast.Module) -> Iterator[str]:
    """Yield the top-level package of each import that runs when the module is imported."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]
        waiting.extend(ast.iter_child_nodes(node))


@pytest.mark.parametrize("layer", MAY_IMPORT)
def test_imports_point_one_way(layer: str) -> None:
    allowed = MAY_IMPORT[layer] | {layer}
    wrong = [
        f"{file.relative_to(ROOT)}:{node.lineno} imports {name}"
        for file in package_files()
        if file.relative_to(ROOT).parts[0].removesuffix(".py") == layer
        for name, node in imports(file)
        if name.split(".")[0] == "loopwright" and [*name.split("."), ""][1] not in allowed
    ]
    assert not wrong


KNOWN_CIRCLES = [
    {"te.broadcast", "te.expr", "te.functions", "te.reduce", "te.tensor"},  # expressions and tensors need each other
]
"""Modules that import each other, in functions or for types: to become fewer, never more."""


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Nor in a function, or for types alone: what needs each other is one module, or wants a third."""
    circle_of = {f"loopwright.{name}": str(n) for n, circle in enumerate(KNOWN_CIRCLES) for name in circle}
    modules = {module_of(file) for file in package_files()}
    needs: dict[str, set[str]] = {}
    for file in package_files():
        own = circle_of.get(module_of(file), module_of(file))
        for name, _ in imports(file):
            found = name if name in modules else name.rpartition(".")[0]
            if found in modules and circle_of.get(found, found) != own and file != ROOT / "__init__.py":
                needs.setdefault(own, set()).add(circle_of.get(found, found))
    TopologicalSorter(needs).prepare()  # CycleError, with the modules


def module_of(file: Path) -> str:
    """Return the dotted name of a module."""
    return ".".join([*package_of(file), file.stem]).removesuffix(".__init__")


def test_package_imports_itself_relatively() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in package_files()
        if file != ROOT / "__init__.py"
        for name, node in imports(file)
        if name.split(".")[0] == "loopwright" and not (isinstance(node, ast.ImportFrom) and node.level)
    ]
    assert not wrong


def test_root_module_has_no_relative_import() -> None:
    """pytest imports the root's `__init__.py` without a parent, where a relative import fails every test."""
    tree = ast.parse((ROOT / "__init__.py").read_text())
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    assert not (ROOT / "conftest.py").exists()


def test_heavy_packages_load_when_used() -> None:
    wrong = {
        str(file.relative_to(ROOT)): sorted(heavy)
        for file in package_files()
        if (heavy := HEAVY & set(loads_at_import(tree_of(file))))
    }
    assert not wrong


def test_functions_import_heavy_packages_only() -> None:
    """All else is imported where a reader looks for it, except in `LOADS_LATE`, none of whose lines is out of date."""
    late = [
        f"{file.relative_to(ROOT)}:{node.lineno} imports {name}"
        for file in package_files()
        if any(node.col_offset for _, node in imports(file))
        for name, node in imports(file, within=ast.FunctionDef)
        if name.partition(".")[0] not in HEAVY
    ]
    assert not [line for line in late if not line.startswith(tuple(LOADS_LATE))]
    assert not [path for path in LOADS_LATE if not any(line.startswith(path) for line in late)]


def test_cached_properties_have_no_lock() -> None:
    """Those of functools have one before Python 3.12, which a forked child may find closed for ever."""
    own = ROOT / "dialects" / "cached_property.py"
    held = [file for file in package_files() for name, _ in imports(file) if name == "functools.cached_property"]
    assert {file.relative_to(ROOT) for file in held} == {own.relative_to(ROOT)}


def test_import_is_light() -> None:
    """No heavy package is loaded before it is used, nor what a command or a pass of `xdsl-opt` needs before it runs."""
    program = f"""
import sys
import loopwright, loopwright.cli, loopwright.universe
loopwright.cli.make_parser(["--help"])
print(*sorted({{*{HEAVY!r}, "numpy"}} & set(sys.modules)))
early = ("loopwright.frontends", "loopwright.graph", "loopwright.command.")
print(*(name for name in sys.modules if name.startswith(early)
    and not name.startswith("loopwright.command._")))
"""
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert not run.stdout.split()


def test_a_runner_loads_nothing_that_builds() -> None:
    """It starts anew whenever a candidate crashes or hangs, and has a third of a builder's imports."""
    program = """
import sys
import loopwright.search.measure.worker
import loopwright.backends.cuda.device, loopwright.backends.llvm.device, loopwright.backends.opencl.device
builds = ("loopwright.passes.lower", "loopwright.passes.schedule")
print(*sorted(name for name in sys.modules if name.startswith(builds)))
"""
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert not run.stdout.split()


def test_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'loopwright' has no attribute 'no_such_name'"):
        loopwright.no_such_name  # noqa: B018


@pytest.mark.parametrize("name", sorted({*loopwright._HOMES, *loopwright._SUBPACKAGES}))
def test_public_name_loads(name: str) -> None:
    assert getattr(loopwright, name) is not None


def primitives() -> list[str]:
    return sorted(file.stem for file in (ROOT / "passes" / "schedule").glob("*.py") if not file.stem.startswith("_"))


@pytest.mark.parametrize("stem", primitives())
def test_primitive_has_its_filecheck_file(stem: str) -> None:
    assert (ROOT / "tests" / "filecheck" / "schedule" / f"{stem}.mlir").is_file()


@pytest.mark.parametrize("stem", primitives())
def test_primitive_says_what_it_does_to_extents_and_in_words(stem: str) -> None:
    kind = primitive_class(stem)
    assert kind.replay_sizes is not Primitive.replay_sizes, f"{kind.__name__} needs a method replay_sizes(nest, sizes)"
    assert kind.describe is not Primitive.describe, f"{kind.__name__} needs a method describe()"


def test_every_filecheck_file_of_a_primitive_has_its_primitive() -> None:
    files = {file.stem for file in (ROOT / "tests" / "filecheck" / "schedule").glob("*.mlir")}
    assert files <= set(primitives())


def test_every_pass_and_dialect_loads_under_its_name() -> None:
    from loopwright.universe import UNIVERSE

    assert {name: load().name for name, load in UNIVERSE.all_passes.items()} == {n: n for n in UNIVERSE.all_passes}
    assert {name: load().name for name, load in UNIVERSE.all_dialects.items()} == {n: n for n in UNIVERSE.all_dialects}
