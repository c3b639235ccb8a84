"""Damaged and crafted files of each kind that loopwright reads, and what is tried with them."""

from __future__ import annotations

import faulthandler
import hashlib
import io
import json
import os
import resource
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from damage import ODD_NUMBERS, damaged_bytes, damaged_json, damaged_text, hostile_texts, pick
from packages import parts_of, small_network, write_parts
from xdsl.dialects.builtin import ModuleOp

import loopwright as lw
from loopwright import te, topi
from loopwright.cli import main
from loopwright.search.records.file import Record, RecordError

WORDS = (
    *("f32", "f16", "i8", "i1", "ui64", "index", "f80", "i7", "none", "tensor", "memref", "vector", "complex", "tuple"),
    *("add", "mul", "max", "custom", "none", "reduce", "floordiv", "mod", "where", "combine", "arith.addf"),
    *("arith.muli", "arith.divf", "arith.remsi", "arith.divui", "arith.cmpf", "arith.select", "arith.bitcast"),
    *("math.exp", "math.powf", "math.fma", "math.ctpop", "lw_te.read", "lw_te.index", "lw_te.predicate", "lw_te.yield"),
    *("lw_te.compute", "lw_loop.for", "func.call", "func.return", "func.func", "scf.for", "llvm.inline_asm", "nan"),
    *("lw.constant", "lw.output", "lw.layout", "lw.name", "lw.packed_from", "lw.target", "dense", "true", "x"),
)
MOST_ADDRESSES = 16 << 30
"""Bytes: LLVM, NumPy and OpenMP reserve some gigabytes of addresses that they never touch."""
MOST_FILE_BYTES = 1 << 30


class NotASentence(Exception):
    """A refusal in another form than one sentence."""


@cache
def modules() -> tuple[str, ...]:
    """Texts of te-level programs, small enough to run at once."""
    x, k, b = (
        te.placeholder((1, 4, 8, 8), name="x"),
        te.placeholder((8, 4, 3, 3), name="k"),
        te.placeholder((8,), name="b"),
    )
    p = te.placeholder((6, 10), name="p")
    made: list[list[te.Tensor]] = [
        [x, k, topi.nn.relu(topi.nn.conv2d_nchw(x, k, 1, 1))],
        [p, topi.nn.softmax(p)],
        [p, te.compute((6, 10), lambda i, j: p[i, j] ** p[5 - i, j], name="powers")],
        [b, te.compute((8,), lambda i: b[(i * 3 + 1) % 8] + b[i // 2], name="moved")],
        [p, topi.argmax(p, axis=1)],
    ]
    texts = [str(te.create_module(tensors)) for tensors in made]
    return (*texts, generic(texts[3]), generic(texts[1]))


def generic(text: str) -> str:
    """The same module with every attribute spelled out."""
    from xdsl.parser import Parser
    from xdsl.printer import Printer

    from loopwright.backends.context import create_context

    stream = io.StringIO()
    Printer(stream, print_generic_format=True).print_op(Parser(create_context(), text).parse_module())
    return stream.getvalue()


@cache
def record_lines() -> tuple[str, tuple[str, ...]]:
    """The text of a workload, and lines of records of it with real schedules."""
    a, b = te.placeholder((16, 12), name="A"), te.placeholder((12, 20), name="B")

    def product() -> list[te.Tensor]:
        return [a, b, topi.nn.relu(topi.matmul(a, b))]

    task = lw.SearchTask(product, target="llvm cores=1 vector_bytes=32 vector_registers=16")
    rng, lines = np.random.default_rng(0), []
    for number, row in enumerate(task.sketches[0].sample(rng, 8)):
        made = Record(
            task.workload_key,
            task.compute_dag.hash,
            str(task.target),
            task.sketches[0].name,
            tuple(map(int, row)),
            task.sketches[0].schedule(row),
            (1e-4 * (1 + number), 2e-4),
            device="a processor",
            timestamp=1.7e9 + number,
            versions={"lw-split": "1"} if number == 7 else {},
            flop=float(task.flops),
            round=1,
        )
        lines.append(made.to_json())
    return str(task.compute_dag.module), tuple(lines)


def damaged_schedule(schedule: str, canary: str, rng: np.random.Generator) -> str:
    """A schedule with other numbers, names and steps."""
    steps = schedule.split("},")
    match int(rng.integers(4)):
        case 0:
            steps.pop(int(rng.integers(len(steps))))
        case 1:
            steps.insert(int(rng.integers(len(steps))), pick(rng, steps))
        case 2:
            return damaged_text(
                schedule, ("lw-unroll", "lw-split", "lw-vectorize", "lw-bind", "loop", "block"), canary, rng
            )
        case _:
            steps.append('lw-unroll{block="T_matmul" loop="i0"}')
    return "},".join(steps)


# -- each kind: write a file, then try it ------------------------------------------------------------------------------


def records(folder: Path, canary: str, rng: np.random.Generator) -> bool:
    text, lines = record_lines()
    digest = json.loads(lines[0])["workload_hash"]
    path = folder / "r.jsonl"
    (folder / f"r.{digest}.mlir").write_text(text if rng.random() < 0.8 else damaged_text(text, WORDS, canary, rng))
    chosen = []
    for line in lines[: int(rng.integers(1, len(lines) + 1))]:
        values = json.loads(line)
        kind = rng.random()
        if kind < 0.5:
            chosen.append(damaged_json(values, canary, rng))
        elif kind < 0.7:
            values["schedule"] = damaged_schedule(values["schedule"], canary, rng)
            chosen.append(json.dumps(values))
        else:
            chosen.append(line)
    data = "\n".join(chosen).encode("utf-8", "replace") + b"\n"
    path.write_bytes(damaged_bytes(data, lines[0].encode(), rng) if rng.random() < 0.3 else data)
    if rng.random() < 0.06:
        return _learned(path, folder, rng)
    shown = ["show", str(path), "--mode", pick(rng, ("schedule", "python", "dag", "ir", "source"))]
    return command(
        *pick(
            rng,
            (
                ["records", "stats", str(path)],
                ["records", "best", str(path), *pick(rng, ([], ["--json"]))],
                ["records", "distill", str(path), "-o", str(folder / "d.jsonl")],
                ["records", "merge", str(path), str(path), "-o", str(folder / "m.jsonl")],
                shown,
                shown,
                [*shown, "--json"],
                ["replay", str(path), "--min-repeat-ms", "0.01", "--repeat", "1"],
                ["replay", str(path), "--min-repeat-ms", "0.01", "--repeat", "1"],
                ["report", str(path), "--no-measure", "-o", str(folder / pick(rng, ("page.html", "page.svg")))],
            ),
        )
    )


def _learned(path: Path, folder: Path, rng: np.random.Generator) -> bool:
    """Go on from a file, or learn from it."""
    text, _ = record_lines()
    if rng.random() < 0.3:
        (folder / "own.mlir").write_text(text)
        target = "llvm cores=1 vector_bytes=32 vector_registers=16"
        return command("tune", str(folder / "own.mlir"), "--target", target, "--records", str(path), "--trials", "9")
    task = lw.SearchTask(read_module_of(text), target="llvm cores=1 vector_bytes=32 vector_registers=16")
    try:
        quietly(lambda: lw.train_cost_model(str(path), [task]))
        quietly(lambda: lw.load_best(str(path)))
    except (ValueError, RecordError) as error:
        require_sentence(error)
        return False
    return True


def read_module_of(text: str) -> ModuleOp:
    from xdsl.parser import Parser

    from loopwright.backends.context import create_context

    return Parser(create_context(), text).parse_module()


def programs(folder: Path, canary: str, rng: np.random.Generator) -> bool:
    path = folder / "p.mlir"
    text = pick(rng, modules())
    if rng.random() < 0.25:
        path.write_bytes(damaged_bytes(text.encode(), pick(rng, modules()).encode(), rng))
    else:
        path.write_text(damaged_text(text, WORDS, canary, rng), errors="replace")
    words = ["--target", "llvm cores=1"]
    if rng.random() < 0.03:
        return command("tune", str(path), *words, "--trials", "2", "--records", str(folder / "t.jsonl"))
    return command("replay", str(path), *words, "--min-repeat-ms", "0.01", "--repeat", "1")


def onnx_models(folder: Path, canary: str, rng: np.random.Generator) -> bool:
    from onnx import AttributeProto, TensorProto, helper
    from onnx_models import model, small_network

    from loopwright.frontends.onnx.errors import OnnxImportError

    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["a"]),
        helper.make_node("Slice", ["a", "from", "to"], ["s"]),
        helper.make_node("Concat", ["s", "s"], ["c"], axis=0),
        helper.make_node("Softmax", ["c"], ["t"], axis=-1),
        helper.make_node("Expand", ["t", "wide"], ["y"]),
    ]
    weights = {"shape": np.array([4, -1]), "from": np.array([1]), "to": np.array([3]), "wide": np.array([2, 4, 6])}
    made = pick(rng, (small_network(), model(nodes, {"x": [2, 12]}, ["y"], weights)))
    if rng.random() < 0.65:
        for _ in range(int(rng.integers(1, 4))):
            _damage_model(made, canary, rng, AttributeProto, TensorProto)
    data = made.SerializeToString()
    if rng.random() < 0.4:
        data = damaged_bytes(data, small_network().SerializeToString(), rng)
    path = folder / "m.onnx"
    path.write_bytes(data)
    try:
        net = quietly(lambda: lw.from_onnx(path))
    except OnnxImportError as error:
        require_sentence(error)
        return False
    if rng.random() < 0.2:
        try:
            quietly(lambda: lw.compile(net, "llvm cores=1"))
        except ValueError as error:  # what memory does not hold
            require_sentence(error)
            return False
    return True


def _damage_model(made: Any, canary: str, rng: np.random.Generator, attributes: Any, tensors: Any) -> None:
    node = pick(rng, made.graph.node)
    number = min(int(pick(rng, ODD_NUMBERS[:-2])), (1 << 63) - 1)
    name = pick(rng, hostile_texts(canary)).encode("utf-8", "replace").decode()
    weight = pick(rng, made.graph.initializer)
    match int(rng.integers(9)):
        case 0:
            node.op_type = pick(rng, ("Add", "Loop", "If", "Scan", "Gather", "Pad", "Range", "Conv", "Resize", name))
        case 1:
            node.output[0] = name
        case 2:
            node.input[int(rng.integers(len(node.input)))] = pick(rng, (name, "", node.output[0], "x"))
        case 3:
            pick(rng, made.graph.input).type.tensor_type.shape.dim.add().dim_value = number
        case 4:
            dims = made.graph.input[0].type.tensor_type.shape.dim
            pick(rng, dims).dim_value = number
        case 5:
            weight.dims[int(rng.integers(len(weight.dims)))] = number
        case 6:
            weight.raw_data = rng.bytes(int(rng.integers(0, 64)))
        case 7:
            added = node.attribute.add()
            added.name, added.type = pick(rng, ("axis", "pads", "kernel_shape", "group", name)), attributes.INTS
            added.ints.extend([number] * int(rng.integers(0, 4)))
        case _:
            weight.data_location = tensors.EXTERNAL
            entry = weight.external_data.add()
            entry.key, entry.value = "location", pick(rng, ("../../etc/passwd", "/dev/zero", name))


def cost_models(folder: Path, canary: str, rng: np.random.Generator) -> bool:
    from loopwright.search.cost_model import CostModelError
    from loopwright.search.features.catalogue import names

    width = len(names()) + 1
    whole = pick(rng, _saved_models())
    magic, _, rest = whole.split(b"\n", 2)
    line, _, data = rest.partition(b"\n")
    match int(rng.integers(4)):
        case 0:
            content = damaged_bytes(whole, magic, rng)
        case 1:
            content = whole.replace(magic, pick(rng, hostile_texts(canary)).encode("utf-8", "replace"))
        case choice:
            if choice == 2:
                line = damaged_json(json.loads(line), canary, rng).encode("utf-8", "replace")
            else:
                data = damaged_bytes(data, data, rng)
            body = line + b"\n" + data
            content = magic + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n" + body
    path = folder / "c.model"
    path.write_bytes(content)
    try:
        found = lw.load_cost_model(path)
        features = rng.standard_normal((40, width)).astype(np.float32)
        found.predict(features)
        if rng.random() < 0.1:
            found.fit(features, np.linspace(0.1, 1.0, 40))
    except CostModelError as error:
        require_sentence(error)
        return False
    return True


@cache
def _saved_models() -> tuple[bytes, ...]:
    from loopwright.search.cost_model import BoostedTrees, Linear, RankTrees
    from loopwright.search.features.catalogue import names

    rng, kept, path = np.random.default_rng(0), [], Path("saved.model")
    for model in (BoostedTrees(members=2), RankTrees(members=1), Linear()):
        model.fit(rng.standard_normal((30, len(names()) + 1)), np.linspace(0.1, 1.0, 30))
        model.save(path)
        kept.append(path.read_bytes())
        path.unlink()
    return tuple(kept)


def networks(folder: Path, canary: str, rng: np.random.Generator) -> bool:
    """Packages; those with a changed plan are loaded as trusted ones, as their kernels are the compiler's own."""
    path = folder / "n.lw"
    data = _package()
    crafted = rng.random() < 0.6
    if crafted:
        path.write_bytes(data)
        parts = parts_of(path)
        text = damaged_json(json.loads(parts["network.json"]), canary, rng).encode("utf-8", "replace")
        write_parts(path, {**parts, "network.json": text})
    else:
        path.write_bytes(damaged_bytes(data, data[len(data) // 2 :], rng))
    trust = ["--trust"] if crafted and rng.random() < 0.8 else []
    return command("run", str(path), *trust, *pick(rng, ([], ["--json"], ["--profile"])))


@cache
def _package() -> bytes:
    path = Path("whole.lw")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lw.compile(small_network(), "llvm cores=1").save(path)
    data = path.read_bytes()
    path.unlink()
    return data


def cache_entries(folder: Path, canary: str, rng: np.random.Generator) -> bool:
    """Compiled kernels kept on disk: what is read back is what was kept, or nothing."""
    from loopwright.storage.binary_cache import BinaryCache

    binary = rng.bytes(int(rng.integers(0, 4000)))
    kept = BinaryCache(folder / "cache")
    kept.put(["key"], "log of the compiler", binary)
    (path,) = (folder / "cache").glob("*/*.bin")
    path.write_bytes(damaged_bytes(path.read_bytes(), binary, rng))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = kept.get(["key"])
    if found is not None and found != ("log of the compiler", binary):
        raise AssertionError("another binary came back than was kept")
    if found is None and not said:
        raise NotASentence("an entry was dropped without a word")
    return found is not None


KINDS: dict[str, tuple[Callable[[Path, str, np.random.Generator], bool], int]] = {
    "records": (records, 1500),
    "te-level programs": (programs, 1200),
    "ONNX models": (onnx_models, 900),
    "packages": (networks, 600),
    "cost models": (cost_models, 500),
    "cache entries": (cache_entries, 300),
}
"""Trials by kind, and how many there are in a full run."""


def command(*words: str) -> bool:
    """Run a command of loopwright; whether it did what it is for. NotASentence where it refused in another form."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    said = [line for line in err.getvalue().splitlines() if line.startswith("loopwright: ")]
    if code not in (0, 1, 2) or "Traceback" in err.getvalue():
        raise NotASentence(f"exit code {code}: {err.getvalue()[-500:]}")
    if code == 2 and not said:
        raise NotASentence(f"exit code 2 without a sentence: {err.getvalue()[-500:]!r}")
    for text in (out.getvalue(), err.getvalue()):
        if any(not c.isprintable() and c not in "\n\t" for c in text):
            raise NotASentence(f"control characters were printed: {text[:500]!r}")
    return code == 0


def quietly(action: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return action()


def require_sentence(error: Exception) -> None:
    """NotASentence where the text of an error says nothing, or more than a page."""
    if not str(error).strip() or len(str(error)) > 20_000:
        raise NotASentence(repr(error)[:500])


def serve(kind: str, seed: int, base: Path, canary: str) -> None:
    """Try the inputs whose numbers come in, a line each, and answer each with a line of JSON."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what libraries print is no answer
    resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_FILE_BYTES, MOST_FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable()
    for line in sys.stdin:
        number, what, detail = int(line), "refused", ""
        try:
            if attempt(kind, number, seed, base / "inner" / str(number), canary):
                what = "taken"
        except (Exception, SystemExit) as error:
            what = "no sentence" if isinstance(error, NotASentence) else "traceback"
            where = traceback.extract_tb(error.__traceback__)[-1]
            detail = f"{type(error).__name__}: {error}"[:300] + f" at {where.filename}:{where.lineno}"
        stray = sorted(p.name for p in base.iterdir() if p.name != "inner")
        if stray:
            what, detail = "strays", f"left {stray} outside of its folder"
        answers.write(json.dumps([number, what, detail]) + "\n")
        answers.flush()


def attempt(kind: str, number: int, seed: int, folder: Path, canary: str) -> bool:
    """Write and try one input; whether it was taken. Whatever it raises did not hold."""
    rng = np.random.default_rng([seed, number, sorted(KINDS).index(kind)])
    folder.mkdir(parents=True)
    os.chdir(folder)
    return KINDS[kind][0](folder, canary, rng)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
