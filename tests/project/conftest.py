"""A folder of files of all kinds, ours and others', for tests of wrong uses."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright.search.named_workloads import named_workloads
from loopwright.search.records.file import Record, append


def model(shape: list[int | str]) -> bytes:
    """An ONNX model of one Relu."""
    onnx = pytest.importorskip("onnx")
    helper, element = onnx.helper, onnx.TensorProto.FLOAT
    x, y = (helper.make_tensor_value_info(name, element, shape) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return bytes(made.SerializeToString())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of each kind, ours and others'."""
    path = tmp_path_factory.mktemp("uses")
    task = lw.SearchTask(named_workloads()["matmul"], (8, 8, 8), "llvm cores=1")
    text, digest = task.compute_dag.text, task.compute_dag.hash
    key, target = task.workload_key, str(task.target)
    append(path / "good.jsonl", [Record(key, digest, target, "default", (), "", times_s=(1e-6,), device="cpu")])
    assert "%a[i, k]" in text
    contents: dict[str, str | bytes] = {
        "good.mlir": text,
        f"good.{digest}.mlir": text,
        "outside.mlir": text.replace("%a[i, k]", "%a[i, k + 1]"),
        "relu.onnx": model([1, 4]),
        "open.onnx": model(["n", 4]),
        "text.txt": "hello\n",
        "victim.py": "x = 1\n",
        "empty.jsonl": "",
        "binary.bin": bytes(range(256)),
        "garbage.onnx": "not a model",
        "empty.onnx": "",
        "garbage.lw": "nope",
        "garbage.jsonl": "garbage\n",
        "garbage.mlir": "garbage",
        "notes.html": "<html>my own page</html>",
        "mine.lw": "my notes",
        "mine.cl": "__kernel void mine() {}",
        "mine_run.py": "print('mine')",
        "data.json": '{"a": 1}\n',
    }
    for name, content in contents.items():
        (path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    for name, shape in (("x", (1, 4)), ("bad", (2, 5))):
        saved = io.BytesIO()
        np.save(saved, np.zeros(shape, np.float32))
        (path / f"{name}.npy").write_bytes(saved.getvalue())
    (path / "folder").mkdir()
    return path


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """The files of a folder: the bytes of each."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


@pytest.fixture
def untouched(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The folder, which a wrong use leaves as it was."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # of scripts there that are imported
    before = snapshot(folder)
    yield
    assert snapshot(folder) == before
