"""Wrong uses, one a line: each is one clear sentence, with nothing written, nothing lost and no traceback."""

import io
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import call

import loopwright as lw
from loopwright import te, topi
from loopwright.frontends.mlir.errors import MlirImportError
from loopwright.frontends.onnx.errors import OnnxImportError
from loopwright.graph.runtime.reading import PackageError
from loopwright.passes.primitive import ScheduleError
from loopwright.search.cost_model import CostModelError
from loopwright.search.named_workloads import named_workloads
from loopwright.search.records.file import Record, RecordError, append
from loopwright.search.template.knobs.knob import ConfigError
from loopwright.te import ExpressionError, ShapeError

T = "llvm cores=1"


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
    task = lw.SearchTask(named_workloads()["matmul"], (8, 8, 8), T)
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


COMMANDS = [
    ("tune ''", "there is no workload or network '': give a file (.mlir, .onnx), a workload"),
    ("tune ' '", "there is no workload or network ' ': give a file (.mlir, .onnx), a workload"),
    ("tune resnet18", "there is no workload or network 'resnet18' (did you mean resnet-18?): give a file"),
    ("tune resnet50", "there is no workload or network 'resnet50' (did you mean resnet-50?): give a file"),
    ("tune bert-base", "there is no workload or network 'bert-base': give a file (.mlir, .onnx), a workload"),
    ("tune conv", "there is no workload or network 'conv' (did you mean conv3d?): give a file (.mlir,"),
    ("tune Conv2d", "there is no workload or network 'Conv2d' (did you mean conv2d?): give a file"),
    ("tune matmull", "there is no workload or network 'matmull' (did you mean matmul?): give a file"),
    ("tune relu.onnxx", "cannot read relu.onnxx: No such file or directory"),
    ("tune text.txt", "text.txt:2: Operation hello is not registered"),
    ("tune folder", "there is no workload or network 'folder': give a file (.mlir, .onnx), a workload"),
    ("tune good.jsonl", "good.jsonl is for records, and a workload is wanted: a name, or te-level IR (.mlir)"),
    ("tune binary.bin", "cannot read binary.bin: not text"),
    ("tune garbage.onnx", "model 'garbage.onnx' cannot be imported: this is no ONNX model: Error parsing"),
    ("tune garbage.mlir", "garbage.mlir:1: Operation garbage is not registered"),
    ("tune missing.onnx", "model 'missing.onnx' cannot be imported: cannot read missing.onnx: No such file or"),
    ("tune victim.py", "victim.py:1: Operation x is not registered"),
    ("tune good.mlir --m 4", "shapes are for workloads by name: good.mlir has its own, so leave out --m"),
    ("tune matmul --m -1", "placeholder 'a': extents are at least 1, got shape (-1, 512)"),
    ("tune matmul --m 0", "placeholder 'a': extents are at least 1, got shape (0, 512)"),
    ("tune matmul --m 1.5", "argument --m/--M: invalid int value: '1.5'"),
    ("tune matmul --m ten", "argument --m/--M: invalid int value: 'ten'"),
    ("tune matmul --m 99999999999999999999", "'T_matmul': index expression i does not fit into 64 bits"),
    (
        "tune matmul --m 1000000 --n 1000000 --k 1000000",
        "'T_matmul': its domain has 1e+18 points, at most 2.81e+14 can be computed",
    ),
    (
        "tune matmul --dtype float33",
        "placeholder 'a': element type 'float33' is not one of float16, bfloat16, float32,",
    ),
    ("tune matmul --dtype ''", "placeholder 'a': element type '' is not one of float16, bfloat16, float32, float64,"),
    ("tune matmul --target ''", "target '': kind must be llvm, cuda or opencl, got ''"),
    ("tune matmul --target ' '", "target ' ': kind must be llvm, cuda or opencl, got ''"),
    ("tune matmul --target gpu", "target 'gpu': kind must be llvm, cuda or opencl, got 'gpu'"),
    ("tune matmul --target cpu", "target 'cpu': kind must be llvm, cuda or opencl, got 'cpu'"),
    ("tune matmul --target cuda:0", "target 'cuda:0': kind must be llvm, cuda or opencl, got 'cuda:0'"),
    ("tune matmul --target llvm:4", "target 'llvm:4': kind must be llvm, cuda or opencl, got 'llvm:4'"),
    ("tune matmul --target 'llvm cores=0'", "target 'llvm cores=0': option 'cores' takes a positive integer, got 0"),
    (
        "tune matmul --target 'llvm cores=-1'",
        "target 'llvm cores=-1': option 'cores' takes a positive integer, got '-1'",
    ),
    (
        "tune matmul --target 'llvm cores=two'",
        "target 'llvm cores=two': option 'cores' takes a positive integer, got 'two'",
    ),
    ("tune matmul --target 'llvm cores='", "target 'llvm cores=': option 'cores' takes a positive integer, got ''"),
    (
        "tune matmul --target 'llvm cores=1e3'",
        "target 'llvm cores=1e3': option 'cores' takes a positive integer, got '1e3'",
    ),
    (
        "tune matmul --target 'llvm -mcpu=skylake'",
        "target 'llvm -mcpu=skylake': unknown option '-mcpu'; options are model, cores,",
    ),
    (
        "tune matmul --target 'llvm model=i386dx'",
        "target 'llvm model=i386dx': no CPU 'i386dx' is known, known: x86-64, x86-64-v2,",
    ),
    (
        "tune matmul --target 'llvm vector_bytes=0'",
        "target 'llvm vector_bytes=0': option 'vector_bytes' takes a positive integer, got 0",
    ),
    (
        "tune matmul --target 'llvm vector_bytes=-16'",
        "target 'llvm vector_bytes=-16': option 'vector_bytes' takes a positive integer, got",
    ),
    (
        "tune matmul --target 'llvm l1_bytes=-5'",
        "target 'llvm l1_bytes=-5': option 'l1_bytes' takes a non-negative integer, got '-5'",
    ),
    (
        "tune matmul --target 'llvm vector_bytes=7'",
        "target 'llvm vector_bytes=7': option 'vector_bytes' takes a power of two, got 7",
    ),
    (
        "tune matmul --target 'llvm vector_bytes=4'",
        "target 'llvm vector_bytes=4': option 'vector_bytes' takes at least 8, one float64, got 4",
    ),
    (
        "tune matmul --target 'llvm vector_bytes=100000000'",
        "target 'llvm vector_bytes=100000000': option 'vector_bytes' takes at most 1024, got 100000000",
    ),
    (
        "tune matmul --target 'llvm cores=1000000000'",
        "target 'llvm cores=1000000000': option 'cores' takes at most 1048576, got 1000000000",
    ),
    (
        "tune matmul --target 'llvm vector_registers=99999999999'",
        "target 'llvm vector_registers=99999999999': option 'vector_registers' takes at most 1048576",
    ),
    (
        "tune matmul --target 'llvm l2_bytes=9999999999999999'",
        "target 'llvm l2_bytes=9999999999999999': option 'l2_bytes' takes at most 1125899906842624",
    ),
    (
        "tune matmul --target 'cuda warp_size=31'",
        "target 'cuda warp_size=31': option 'warp_size' takes a power of two, got 31",
    ),
    (
        "tune matmul --target 'cuda model=h200 max_threads_per_block=7'",
        "option 'max_threads_per_block' takes at least 32 of a GPU, got 7",
    ),
    (
        "tune matmul --target 'cuda compute_capability=5000'",
        "target 'cuda compute_capability=5000': option 'compute_capability' takes at most 999, got 5000",
    ),
    ("tune matmul --target 'llvm cores=2 cores=3'", "target 'llvm cores=2 cores=3': option 'cores' is given twice"),
    (
        "tune matmul --target 'llvm features=+nothing'",
        "target 'llvm features=+nothing': no feature 'nothing' of x86_64 is known; known:",
    ),
    (
        "tune matmul --target 'llvm arch=z80'",
        "target 'llvm arch=z80': arch must be x86_64, aarch64 or riscv64, got 'z80'",
    ),
    (
        "tune matmul --target 'cuda model=voodoo2'",
        "target 'cuda model=voodoo2': no model 'voodoo2' of cuda is known, known: gtx1080ti,",
    ),
    (
        "tune matmul --target 'cuda arch=sm_1'",
        "target 'cuda arch=sm_1': what sm_1 has is not known, say max_threads_per_block= and",
    ),
    (
        "tune matmul --target 'cuda arch=80'",
        "target 'cuda arch=80': arch and features are for llvm, not for cuda, where it is",
    ),
    (
        "tune matmul --target 'cuda max_threads_per_block=-1'",
        "target 'cuda max_threads_per_block=-1': option 'max_threads_per_block' takes a",
    ),
    (
        "tune matmul --target 'cuda model=h200 max_shared_bytes=-1'",
        "target 'cuda model=h200 max_shared_bytes=-1': option 'max_shared_bytes' takes a",
    ),
    (
        "tune matmul --target 'cuda model=h200 warp_size=0'",
        "target 'cuda model=h200 warp_size=0': option 'warp_size' takes a positive integer,",
    ),
    (
        "tune matmul --target 'opencl model=nonsense'",
        "target 'opencl model=nonsense': no model 'nonsense' of opencl is known, known:",
    ),
    (
        'tune matmul --target \'{"kind":"llvm"}\'',
        'target \'{"kind":"llvm"}\': kind must be llvm, cuda or opencl, got \'{"kind":"llvm"}\'',
    ),
    (
        "tune matmul --target llvm,cores=2",
        "target 'llvm,cores=2': kind must be llvm, cuda or opencl, got 'llvm,cores=2'",
    ),
    ("tune matmul --target LLVM", "target 'LLVM': kind must be llvm, cuda or opencl, got 'LLVM'"),
    ("tune matmul --records ''", "argument --records: must name a file, got ''"),
    ("tune matmul --records folder", "cannot open record file 'folder': Is a directory"),
    (
        "tune matmul --records relu.onnx",
        "cannot open record file 'relu.onnx': it is there already and is no record file, so",
    ),
    (
        "tune matmul --records victim.py",
        "cannot open record file 'victim.py': it is there already and is no record file, so",
    ),
    (
        "tune matmul --records data.json",
        "cannot open record file 'data.json': it is there already and is no record file, so",
    ),
    (
        "tune matmul --records garbage.lw",
        "cannot open record file 'garbage.lw': it is there already and is no record file, so",
    ),
    (
        "tune matmul --records text.txt",
        "cannot open record file 'text.txt': it is there already and is no record file, so",
    ),
    ("tune matmul --records folder/", "cannot open record file 'folder': Is a directory"),
    ("tune matmul --records text.txt/x.jsonl", "cannot open record file 'text.txt/x.jsonl':"),
    (
        "tune relu.onnx --records relu.onnx",
        "relu.onnx has nothing to tune: no kernel of it has a reduction; compile it as it is",
    ),
    ("tune matmul --trials -1", "argument --trials: must be a whole number of at least 1, got '-1'"),
    ("tune matmul --trials 1e9", "argument --trials: must be a whole number of at least 1, got '1e9'"),
    ("tune matmul --trials 4 --more-trials 4", "argument --more-trials: not allowed with argument --trials"),
    ("tune matmul --more-trials 0", "argument --more-trials: must be a whole number of at least 1, got '0'"),
    ("tune matmul --seed x", "argument --seed: invalid int value: 'x'"),
    ("tune matmul --time-limit -1", "argument --time-limit: must be seconds above 0, got '-1'"),
    ("tune matmul --time-limit nan", "argument --time-limit: must be seconds above 0, got 'nan'"),
    ("tune matmul --time-limit inf", "argument --time-limit: must be seconds above 0, got 'inf'"),
    ("tune matmul --time-limit 5m", "argument --time-limit: must be seconds above 0, got '5m'"),
    ("tune matmul --early-stopping x", "argument --early-stopping: must be a whole number of at least 1, got 'x'"),
    ("tune matmul --build-timeout 0", "argument --build-timeout: must be seconds above 0, got '0'"),
    ("tune matmul --build-timeout -1", "argument --build-timeout: must be seconds above 0, got '-1'"),
    ("tune matmul --build-timeout nan", "argument --build-timeout: must be seconds above 0, got 'nan'"),
    ("tune matmul --build-timeout inf", "argument --build-timeout: must be seconds above 0, got 'inf'"),
    ("tune matmul --run-timeout x", "argument --run-timeout: must be seconds above 0, got 'x'"),
    ("tune matmul --repeat 0", "argument --repeat: must be a whole number of at least 1, got '0'"),
    ("tune matmul --number -3", "argument --number: must be a whole number of at least 1, got '-3'"),
    ("tune matmul --min-repeat-ms -1", "argument --min-repeat-ms: must be a number of at least 0, got '-1'"),
    ("tune matmul --min-repeat-ms nan", "argument --min-repeat-ms: must be a number of at least 0, got 'nan'"),
    ("tune matmul --min-repeat-ms inf", "argument --min-repeat-ms: must be a number of at least 0, got 'inf'"),
    ("tune matmul --cooldown -1", "argument --cooldown: must be a number of at least 0, got '-1'"),
    ("tune matmul --cooldown nan", "argument --cooldown: must be a number of at least 0, got 'nan'"),
    ("tune matmul --cooldown inf", "argument --cooldown: must be a number of at least 0, got 'inf'"),
    ("tune matmul --builders 0", "argument --builders: must be a whole number of at least 1, got '0'"),
    ("tune matmul --builders x", "argument --builders: must be a whole number of at least 1, got 'x'"),
    ("tune matmul --layout NHWC", "--layout is for networks, and matmul is a workload: leave it out"),
    ("tune matmul --batch 4", "--batch is for networks, and matmul is a workload: leave it out"),
    ("tune matmul --input-shape x=1", "--input-shape is for networks, and matmul is a workload: leave it out"),
    ("tune matmul --constant x=x.npy", "--constant is for networks, and matmul is a workload: leave it out"),
    ("tune matmul --winograd", "--winograd is for networks; tune conv2d_winograd, a workload, or a template of that"),
    (
        "tune matmul --no-winograd",
        "--winograd is for networks; tune conv2d_winograd, a workload, or a template of that",
    ),
    ("tune mlp --input-shape x=1", "mlp has its own shapes: --input-shape is for ONNX models"),
    ("tune mlp --constant x=x.npy", "mlp has no inputs that could be constant: --constant is for ONNX models"),
    ("tune mlp --batch 0", "argument --batch: must be a whole number of at least 1, got '0'"),
    ("tune mlp --batch -1", "argument --batch: must be a whole number of at least 1, got '-1'"),
    ("tune mlp --dtype int7", "network mlp: dtype is one of float16, bfloat16, float32, float64, got 'int7'"),
    ("tune mlp --m 4", "shapes are for workloads by name: mlp has its own, so leave out --m"),
    ("tune mlp --args 1", "--args are the arguments of a template, and mlp is a network"),
    (
        "tune mlp --records relu.onnx",
        "cannot open record file 'relu.onnx': it is there already and is no record file, so",
    ),
    ("tune mlp --trials 1", "--trials must be at least the number of tasks, 4, got 1"),
    ("tune relu.onnx", "relu.onnx has nothing to tune: no kernel of it has a reduction; compile it as it is"),
    ("tune relu.onnx --batch 2", "relu.onnx: --batch is for networks by name; give --input-shape NAME=N,..."),
    ("tune relu.onnx --dtype float16", "relu.onnx has its own types: --dtype is for networks by name"),
    ("tune relu.onnx --input-shape x", "--input-shape takes NAME=N,C,H,W with whole numbers, got 'x'"),
    ("tune relu.onnx --input-shape x=", "--input-shape takes NAME=N,C,H,W with whole numbers, got 'x='"),
    ("tune relu.onnx --input-shape x=1,-4", "--input-shape takes NAME=N,C,H,W with whole numbers, got 'x=1,-4'"),
    (
        "tune relu.onnx --input-shape x=1,4,5",
        "model 'relu' cannot be imported: input 'x' has the shape [1, 4], (1, 4, 5) does not",
    ),
    (
        "tune relu.onnx --input-shape nothing=1",
        "model 'relu' cannot be imported: there is no input 'nothing'; there are x",
    ),
    (
        "tune relu.onnx --input-shape x=99999999999999999999,4",
        "model 'relu' cannot be imported: input 'x' has the shape [1, 4],",
    ),
    ("tune open.onnx", "model 'open' cannot be imported: input 'x' is of shape (n, 4): give its extents,"),
    ("tune open.onnx --input-shape n=4", "model 'open' cannot be imported, for 2 reasons:"),
    ("tune relu.onnx --constant x=missing.npy", "cannot read missing.npy: No such file or directory"),
    (
        "tune relu.onnx --constant x=bad.npy",
        "model 'relu' cannot be imported: input 'x' has the shape [1, 4], values of shape",
    ),
    (
        "tune relu.onnx --constant nothing=x.npy",
        "model 'relu' cannot be imported: there is no input 'nothing'; there are x",
    ),
    ("tune relu.onnx --constant x=text.txt", "cannot read text.txt: it holds no array that NumPy saved (.npy)"),
    ("tune relu.onnx --layout NCWH", "argument --layout: invalid choice: 'NCWH'"),
    ("tune dense --args ''", "template dense: dense() missing 3 required positional arguments: 'batch',"),
    (
        "tune dense --args 1,2,3,4,5,6,7",
        "template dense: dense() takes from 3 to 4 positional arguments but 7 were given",
    ),
    ("tune dense --args '{}'", "template dense: unhashable type: 'dict'"),
    ("tune dense --args -1,2,3", "argument --args: expected one argument"),
    (
        "tune dense --args 1,2,3.5",
        "template dense: placeholder 'data': extents are integers, got 3.5 in shape (1, 3.5)",
    ),
    (
        "tune dense --args '1,2,\"x\"'",
        "template dense: placeholder 'data': extents are integers, got 'x' in shape (1, 'x')",
    ),
    ("tune victim.py: --args 1", "a template of your own is FILE.py:NAME or MODULE:NAME, got 'victim.py:'"),
    ("tune victim.py:x --args 1", "victim.py has no template 'x'; it has none"),
    ("tune dense --args 1,2,3 --tuner ''", "argument --tuner: unknown tuner ''; there are: xgb, ga, random, grid"),
    ("show ''", "argument records: must name a file, got ''"),
    ("show folder", "cannot read record file 'folder': Is a directory"),
    ("show text.txt", "text.txt holds no record: 1 line(s) skipped; line 1: not a JSON object: Expecting"),
    ("show binary.bin", "binary.bin holds no record: 2 line(s) skipped; line 1: not a JSON object: Expecting"),
    ("show relu.onnx", "relu.onnx holds no record: 11 line(s) skipped; line 1: not a JSON object: Expecting"),
    ("show good.mlir", "good.mlir holds no record: 11 line(s) skipped; line 1: not a JSON object: Expecting"),
    ("show empty.jsonl", "empty.jsonl holds no record: tune first"),
    ("show garbage.jsonl", "garbage.jsonl holds no record: 1 line(s) skipped; line 1: not a JSON object:"),
    ("show good.jsonl --workload nothing", "good.jsonl holds no record of workload 'nothing'; it holds"),
    ("show good.jsonl --workload ''", "good.jsonl holds no record of workload ''; it holds"),
    ("show good.jsonl --target ''", "target '': kind must be llvm, cuda or opencl, got ''"),
    ("show good.jsonl --workload-file missing.mlir --mode ir", "cannot read missing.mlir: No such file or directory"),
    ("show good.jsonl --workload-file text.txt --mode ir", "text.txt:2: Operation hello is not registered"),
    ("show good.jsonl --mode ''", "argument --mode: invalid choice: ''"),
    ("show", "the following arguments are required: records"),
    ("replay good.jsonl --schedule nonsense", "schedule text 'nonsense': Unrecognized passes: ['nonsense']"),
    (
        'replay good.jsonl --schedule \'lw-split{block="nope" loop="i" factors=0,4}\'',
        'lw-split{block="nope" loop="i" factors=0,4}: no block is called \'nope\'; blocks',
    ),
    (
        'replay good.jsonl --schedule \'lw-lower-te-to-loop,lw-split{block="T_matmul" loop="i" factors=0,-4}\'',
        'lw-split{block="T_matmul" loop="i" factors=0,-4}: factors must be positive, and at',
    ),
    (
        'replay good.jsonl --schedule \'lw-lower-te-to-loop,lw-split{block="T_matmul" loop="zz" factors=0,4}\'',
        'lw-split{block="T_matmul" loop="zz" factors=0,4}: block \'T_matmul\' is in no loop',
    ),
    (
        "replay good.jsonl --schedule canonicalize",
        "schedule text 'canonicalize': Unrecognized passes: ['canonicalize']",
    ),
    ("replay good.jsonl --min-repeat-ms nan", "argument --min-repeat-ms: must be a number of at least 0, got 'nan'"),
    ("replay good.jsonl --min-repeat-ms -1", "argument --min-repeat-ms: must be a number of at least 0, got '-1'"),
    ("replay good.jsonl --repeat 0", "argument --repeat: must be a whole number of at least 1, got '0'"),
    ("replay good.jsonl --repeat -1", "argument --repeat: must be a whole number of at least 1, got '-1'"),
    (
        "replay good.jsonl --export lib.txt",
        "--export: a library is an object file (.o) or a shared one (.so), not lib.txt",
    ),
    ("replay good.jsonl --export ''", "argument --export: must name a file, got ''"),
    (
        "replay good.jsonl --export victim.py",
        "--export: a library is an object file (.o) or a shared one (.so), not victim.py",
    ),
    (
        "replay good.jsonl --export-name x",
        "--export-name is the name of a function in a library: give --export FILE.so, too",
    ),
    ("replay good.mlir --workload x", "--workload is for record files, and good.mlir is a workload: leave it out"),
    (
        "replay good.mlir --workload-file good.mlir",
        "--workload-file is for record files, and good.mlir is a workload: leave it out",
    ),
    ("replay good.mlir --target nothing", "target 'nothing': kind must be llvm, cuda or opencl, got 'nothing'"),
    ("replay relu.onnx", "relu.onnx holds no record: 11 line(s) skipped; line 1: not a JSON object: Expecting"),
    ("replay missing.mlir", "cannot read missing.mlir: No such file or directory"),
    ("replay empty.jsonl", "empty.jsonl holds no record: tune first"),
    ("report ''", "argument records: must name a file, got ''"),
    ("report missing.jsonl", "cannot read record file 'missing.jsonl': No such file or directory"),
    ("report empty.jsonl", "there is no record to report on: tune first"),
    ("report relu.onnx", "relu.onnx holds no record: 11 line(s) skipped; line 1: not a JSON object: Expecting"),
    (
        "report good.jsonl -o good.jsonl",
        "the report would replace the record file good.jsonl: give another name with -o",
    ),
    ("report good.jsonl -o victim.py", "a report is a page (.html) or a curve alone (.svg), not 'victim.py'"),
    ("report good.jsonl -o relu.onnx", "a report is a page (.html) or a curve alone (.svg), not 'relu.onnx'"),
    ("report good.jsonl -o text.txt", "a report is a page (.html) or a curve alone (.svg), not 'text.txt'"),
    ("report good.jsonl -o folder", "a report is a page (.html) or a curve alone (.svg), not 'folder'"),
    ("report good.jsonl -o ''", "argument -o/--output: must name a file, got ''"),
    ("report good.jsonl --workload-file missing.mlir", "cannot read missing.mlir: No such file or directory"),
    ("records stats missing.jsonl", "cannot read record file 'missing.jsonl': No such file or directory"),
    ("records stats relu.onnx", "relu.onnx holds no record: 11 line(s) skipped; line 1: not a JSON object: Expecting"),
    ("records stats folder", "cannot read record file 'folder': Is a directory"),
    ("records stats good.jsonl --worst", "loopwright records: unrecognized arguments: --worst"),
    ("records merge good.jsonl", "the following arguments are required: -o/--output"),
    (
        "records merge good.jsonl -o relu.onnx",
        "cannot write relu.onnx: it is there already and is no record file, so it is left",
    ),
    (
        "records merge good.jsonl -o victim.py",
        "cannot write victim.py: it is there already and is no record file, so it is left",
    ),
    ("records merge good.jsonl -o folder", "cannot write folder: Is a directory"),
    ("records merge good.jsonl -o ''", "argument -o/--output: must name a file, got ''"),
    ("records merge missing.jsonl -o new.jsonl", "cannot read record file 'missing.jsonl': No such file or directory"),
    (
        "records distill good.jsonl -o text.txt",
        "cannot write text.txt: it is there already and is no record file, so it is left",
    ),
    (
        "records distill garbage.jsonl -o new.jsonl",
        "garbage.jsonl holds no record: 1 line(s) skipped; line 1: not a JSON object:",
    ),
    ("records sort good.jsonl", "argument ACTION: invalid choice: 'sort'"),
    ("compile ''", "there is no network '': give a .onnx file or one of resnet-18, resnet-34,"),
    ("compile nothing", "there is no network 'nothing': give a .onnx file or one of resnet-18, resnet-34,"),
    ("compile resnet18", "there is no network 'resnet18' (did you mean resnet-18?): give a .onnx file or one"),
    ("compile text.txt", "there is no network 'text.txt': give a .onnx file or one of resnet-18, resnet-34,"),
    ("compile good.mlir", "there is no network 'good.mlir': give a .onnx file or one of resnet-18, resnet-34,"),
    ("compile good.jsonl", "there is no network 'good.jsonl': give a .onnx file or one of resnet-18, resnet-34,"),
    ("compile garbage.onnx", "model 'garbage.onnx' cannot be imported: this is no ONNX model: Error parsing"),
    ("compile garbage.lw", "garbage.lw is compiled already: give an ONNX model or a network by name, with its"),
    ("compile missing.onnx", "model 'missing.onnx' cannot be imported: cannot read missing.onnx: No such file or"),
    ("compile relu.onnx -o victim.py", "-o takes a file of a compiled network (.lw), not victim.py"),
    ("compile relu.onnx -o relu.onnx", "-o takes a file of a compiled network (.lw), not relu.onnx"),
    ("compile relu.onnx -o folder", "-o takes a file of a compiled network (.lw), not folder"),
    ("compile relu.onnx -o ''", "argument -o/--output: must name a file, got ''"),
    ("compile relu.onnx -o text.txt", "-o takes a file of a compiled network (.lw), not text.txt"),
    ("compile relu.onnx --records missing.jsonl", "there is no record file missing.jsonl: tune first"),
    (
        "compile relu.onnx --records relu.onnx",
        "relu.onnx holds no record: 11 line(s) skipped; line 1: not a JSON object: Expecting",
    ),
    ("compile relu.onnx --records folder", "there is no record file folder: tune first"),
    ("compile relu.onnx --records ''", "argument --records: must name a file, got ''"),
    ("compile relu.onnx --target nothing", "target 'nothing': kind must be llvm, cuda or opencl, got 'nothing'"),
    ("compile relu.onnx --export x.dll", "--export: a library is an object file (.o) or a shared one (.so), not x.dll"),
    (
        "compile relu.onnx --export victim.py",
        "--export: a library is an object file (.o) or a shared one (.so), not victim.py",
    ),
    (
        "compile relu.onnx --export-name f",
        "--export-name is the name of a function in a library: give --export FILE.so, too",
    ),
    (
        "compile relu.onnx --export x.so --target 'cuda model=h200'",
        "--export is for targets of CPUs (llvm), whose kernels C can call, not for cuda",
    ),
    (
        "compile relu.onnx --winograd --no-winograd --batch 3",
        "relu.onnx: --batch is for networks by name; give --input-shape NAME=N,...",
    ),
    (
        "compile mlp --batch 1 --dtype complex64",
        "network mlp: dtype is one of float16, bfloat16, float32, float64, got 'complex64'",
    ),
    (
        "compile mlp --precision int4",
        "--precision is float16 or bfloat16 or tf32 or tf32x3, or None for the types that the network has, got 'int4'",
    ),
    (
        "tune relu.onnx --precision fp8",
        "--precision is float16 or bfloat16 or tf32 or tf32x3, or None for the types that the network has",
    ),
    ("tune matmul --precision float16", "--precision is for networks, and matmul is a workload: leave it out"),
    (
        "compile mlp --dtype float64 --precision float16",
        "network 'mlp' has nothing in float32 to compute in float16: its types are float64",
    ),
    ("compile mlp --check", "--check compares a network in another precision with the one it has: give --precision"),
    (
        "run garbage.lw --precision float16",
        "garbage.lw is compiled already: --precision is for ONNX models and networks by name",
    ),
    ("run garbage.lw", "garbage.lw is no compiled network: File is not a zip file"),
    ("run missing.lw", "cannot read missing.lw: No such file or directory"),
    ("run relu.onnx --trust", "relu.onnx is compiled here: --trust is for compiled networks (.lw)"),
    ("run relu.onnx --input x", "--input takes NAME=FILE.npy, got 'x'"),
    ("run relu.onnx --input x=missing.npy", "cannot read missing.npy: No such file or directory"),
    ("run relu.onnx --input x=bad.npy", "input 'x' must have shape (1, 4), got (2, 5)"),
    ("run relu.onnx --input x=text.txt", "cannot read text.txt: it holds no array that NumPy saved (.npy)"),
    ("run relu.onnx --input y=x.npy", "there is no input 'y'; inputs are x"),
    ("run relu.onnx --seed x", "argument --seed: invalid int value: 'x'"),
    ("run relu.onnx --output folder", "-o takes a file of arrays (.npz), not folder"),
    ("run relu.onnx --output relu.onnx", "-o takes a file of arrays (.npz), not relu.onnx"),
    ("run relu.onnx --output victim.py", "-o takes a file of arrays (.npz), not victim.py"),
    ("bench relu.onnx --number 0", "argument --number: must be a whole number of at least 1, got '0'"),
    ("bench relu.onnx --min-repeat-ms nan", "argument --min-repeat-ms: must be a number of at least 0, got 'nan'"),
    ("bench relu.onnx --min-repeat-ms -5", "argument --min-repeat-ms: must be a number of at least 0, got '-5'"),
    (
        "bench garbage.lw --target llvm",
        "garbage.lw is compiled already: --target is for ONNX models and networks by name",
    ),
    ("bench nothing", "there is no network 'nothing': give a .onnx file or one of resnet-18, resnet-34,"),
    ("devices --target llvm", "unrecognized arguments: --target llvm (see loopwright devices --help)"),
    ("doctor extra", "unrecognized arguments: extra (see loopwright doctor --help)"),
    ("pretuned", "the following arguments are required: NETWORK"),
    ("pretuned nothing", "there is no network 'nothing': give a .onnx file or one of resnet-18, resnet-34,"),
    ("pretuned list --target nothing", "target 'nothing': kind must be llvm, cuda or opencl, got 'nothing'"),
    ("nothing", "argument COMMAND: invalid choice: 'nothing'"),
    ("tun matmul", "argument COMMAND: invalid choice: 'tun'"),
    ("--nothing", "the following arguments are required: COMMAND"),
    ("-o", "the following arguments are required: COMMAND"),
    (
        "report good.jsonl -o notes.html",
        "cannot write report 'notes.html': it is there already and is no report, so it is",
    ),
    ("tune outside.mlir", "outside.mlir: 'T_matmul': 'a' is read out of bounds on axis 1: index k + 1 ranges"),
    (
        "compile relu.onnx -o mine.lw",
        "cannot write mine.lw: it is there already and is no compiled network, so it is left",
    ),
    ("tune :x --args 1", "a template of your own is FILE.py:NAME or MODULE:NAME, got ':x'"),
]


@pytest.mark.parametrize(("line", "sentence"), COMMANDS, ids=[line for line, _ in COMMANDS])
@pytest.mark.usefixtures("untouched")
@pytest.mark.few(130)
def test_a_wrong_command_is_a_sentence(line: str, sentence: str) -> None:
    code, out, err = call(*shlex.split(line))
    assert (code, out) == (2, ""), err
    first, *more = err.splitlines()
    assert first.startswith("loopwright") and sentence in first, err
    assert all(line.startswith("  ") for line in more), "one sentence, and what it lists or points at below it"


CALLS: list[tuple[str, type[Exception], str]] = [
    (
        'lw.SearchTask("reg", target=T)',
        TypeError,
        "workload 'reg': missing a required argument: 'm'; it is called with ()",
    ),
    (
        'lw.SearchTask("nothing", target=T)',
        ValueError,
        "there is no workload 'nothing'; there are: avg_pool, batch_matmul, conv2d,",
    ),
    (
        'lw.SearchTask("relu.onnx", target=T)',
        ValueError,
        "there is no workload 'relu.onnx'; there are: avg_pool, batch_matmul, conv2d,",
    ),
    (
        'lw.SearchTask("resnet-18", target=T)',
        ValueError,
        "there is no workload 'resnet-18'; there are: avg_pool, batch_matmul, conv2d,",
    ),
    (
        "lw.SearchTask(5, target=T)",
        TypeError,
        "a workload is a function that returns tensors, its registered name, or a te-level",
    ),
    ("lw.SearchTask(None)", TypeError, "a task is of a workload or of a workload_key: give one of them"),
    (
        "lw.SearchTask(sch, target=T)",
        TypeError,
        "a workload is a function that returns tensors, its registered name, or a te-level",
    ),
    (
        "lw.SearchTask(mm, args=8, target=T)",
        TypeError,
        "args are the arguments of the workload, in a list or a tuple, got 8",
    ),
    (
        "lw.SearchTask(mm, args=(1,2,3,4), target=T)",
        TypeError,
        "workload 'mm': too many positional arguments; it is called with (1, 2, 3, 4)",
    ),
    ("lw.SearchTask(mm, (8,8,8), 'tpu')", ValueError, "target 'tpu': kind must be llvm, cuda or opencl, got 'tpu'"),
    ("lw.SearchTask(mm, (8,8,8), 5)", TypeError, "a target is text, as 'llvm cores=2', or a Target, got int"),
    ("lw.SearchTask(mm, (8,8,8), None)", TypeError, "a target is text, as 'llvm cores=2', or a Target, got NoneType"),
    ("lw.SearchTask(mm, ('a',8,8), T)", ShapeError, "placeholder 'a': extents are integers, got 'a' in shape ('a', 8)"),
    ("lw.SearchTask(mm, (0,8,8), T)", ShapeError, "placeholder 'a': extents are at least 1, got shape (0, 8)"),
    ("lw.SearchTask(mm, (-1,8,8), T)", ShapeError, "placeholder 'a': extents are at least 1, got shape (-1, 8)"),
    ("lw.SearchTask(mm, (8.0,8,8), T)", ShapeError, "placeholder 'a': extents are integers, got 8.0 in shape (8.0, 8)"),
    ("lw.SearchTask(mm, rules=5, target=T)", TypeError, "rules are a list of sketch rules, got 5"),
    ("lw.SearchTask(mm, rules=['x'], target=T)", TypeError, "rules: a sketch rule must be a lw.SketchRule, got str"),
    (
        "lw.SearchTask(workload_key='nothing')",
        ValueError,
        "not a workload key: nothing; one is JSON: [name, arguments, hash]",
    ),
    (
        'lw.SearchTask(workload_key=\'["nothing", [], "x"]\')',
        ValueError,
        "there is no workload 'nothing'; there are: avg_pool, batch_matmul, conv2d,",
    ),
    ("task.tune(-1)", ValueError, "num_measure_trials must be a whole number of at least 1, got -1"),
    ('task.tune("64")', TypeError, "options are lw.TuningOptions(...) or a number of trials, got str"),
    ("task.tune(0)", ValueError, "num_measure_trials must be a whole number of at least 1, got 0"),
    ("task.tune(trials=64)", TypeError, "SearchTask.tune() got an unexpected keyword argument 'trials'"),
    (
        "task.tune(num_measure_trials=64)",
        TypeError,
        "SearchTask.tune() got an unexpected keyword argument 'num_measure_trials'",
    ),
    ("task.tune(records='r.jsonl')", TypeError, "SearchTask.tune() got an unexpected keyword argument 'records'"),
    (
        "task.tune(lw.MeasureOptions('x'))",
        TypeError,
        "options are lw.TuningOptions(...) or a number of trials, got MeasureOptions",
    ),
    (
        "task.tune(lw.TuningOptions(num_measure_trials=0))",
        ValueError,
        "num_measure_trials must be a whole number of at least 1, got 0",
    ),
    (
        "lw.TuningOptions(num_measure_trials='64')",
        ValueError,
        "num_measure_trials must be a whole number of at least 1, got '64'",
    ),
    (
        "lw.TuningOptions(num_measure_trials=1.5)",
        ValueError,
        "num_measure_trials must be a whole number of at least 1, got 1.5",
    ),
    ("lw.TuningOptions(trials=4)", TypeError, "TuningOptions.__init__() got an unexpected keyword argument 'trials'"),
    (
        "lw.TuningOptions(strategy='evo')",
        ValueError,
        "unknown strategy 'evo'; there are: evolution, annealing, genetic, random, grid",
    ),
    (
        "lw.TuningOptions(strategy=5)",
        TypeError,
        "a strategy is one of evolution, annealing, genetic, random, grid, or makes one, got",
    ),
    (
        "lw.TuningOptions(cost_model='tree')",
        ValueError,
        "unknown cost model 'tree'; there are: trees, rank, linear, roofline, random",
    ),
    ("lw.TuningOptions(cost_model=5)", TypeError, "cost_model must be a name or a cost model, got int"),
    ("lw.TuningOptions(time_limit_s='5m')", ValueError, "time_limit_s must be seconds of at least 0, got '5m'"),
    ("lw.TuningOptions(time_limit_s=float('nan'))", ValueError, "time_limit_s must be seconds of at least 0, got nan"),
    ("lw.TuningOptions(time_limit_s=-1)", ValueError, "time_limit_s must be seconds of at least 0, got -1"),
    ("lw.TuningOptions(seed='x')", ValueError, "seed must be a whole number, got 'x'"),
    ("lw.TuningOptions(records=5)", TypeError, "records must be the path of a file, got int"),
    (
        "lw.TuningOptions(callbacks=5)",
        TypeError,
        "callbacks must be a list of functions of a state and a record, got 5",
    ),
    (
        "lw.TuningOptions(callbacks=[5])",
        TypeError,
        "callbacks must be a list of functions of a state and a record, got [5]",
    ),
    ("lw.TuningOptions(batch_size=0)", ValueError, "batch_size must be a whole number of at least 1, got 0"),
    ("lw.TuningOptions(early_stopping=-1)", ValueError, "early_stopping must be a whole number of at least 1, got -1"),
    ("lw.TuningOptions(final_laps=0)", ValueError, "final_laps must be a whole number of at least 1, got 0"),
    (
        "task.apply_best('missing.jsonl')",
        RecordError,
        "cannot read record file 'missing.jsonl': No such file or directory",
    ),
    (
        "task.apply_best('text.txt')",
        RecordError,
        "text.txt holds no record: 1 line(s) skipped; line 1: not a JSON object: Expecting",
    ),
    (
        "task.apply_best('relu.onnx')",
        RecordError,
        "relu.onnx holds no record: 11 line(s) skipped; line 1: not a JSON object: Expecting",
    ),
    ("task.apply_best([])", RecordError, "no record for workload "),
    ("task.apply_best(5)", TypeError, "records are the path of a file, or a list of records, got int"),
    ("task.apply_best(None)", TypeError, "records are the path of a file, or a list of records, got NoneType"),
    (
        "task.print_best('missing.jsonl')",
        RecordError,
        "cannot read record file 'missing.jsonl': No such file or directory",
    ),
    ("task.build('nonsense')", ValueError, "schedule text 'nonsense': Unrecognized passes: ['nonsense']"),
    ("task.build(5)", TypeError, "a schedule is text, or a list of steps, got int"),
    (
        "task.build('lw-split{block=\"x\"}')",
        ValueError,
        'schedule text \'lw-split{block="x"}\': lw-split requires argument "loop"',
    ),
    ("task.render('', 'poem')", ValueError, "mode must be schedule, python, ir or source, got 'poem'"),
    (
        "task.best_record('text.txt')",
        RecordError,
        "text.txt holds no record: 1 line(s) skipped; line 1: not a JSON object: Expecting",
    ),
    ("task.nothing", AttributeError, "'SearchTask' object has no attribute 'nothing'"),
    (
        "lw.Schedule([])",
        ExpressionError,
        "there is no computed tensor in the list, only placeholders: list the outputs too",
    ),
    ("lw.Schedule(5)", TypeError, "a program is a te tensor, or a list of its inputs and outputs, got int"),
    ("lw.Schedule('matmul')", TypeError, "a program is a te tensor, or a list of its inputs and outputs, got str"),
    ("lw.Schedule(mm)", TypeError, "a program is a te tensor, or a list of its inputs and outputs, got function"),
    ("lw.Schedule([a,b,5])", TypeError, "a program is a te tensor, or a list of its inputs and outputs, got int"),
    ("lw.Schedule(task)", TypeError, "a program is a te tensor, or a list of its inputs and outputs, got SearchTask"),
    ("lw.Schedule([a,b,c], target='tpu')", ValueError, "target 'tpu': kind must be llvm, cuda or opencl, got 'tpu'"),
    (
        "sch.splitt(c)",
        AttributeError,
        "a Schedule has no 'splitt'; primitives: bind, cache_read, cache_write, compute_at,",
    ),
    (
        "sch.split('nope', 'i', [2,None])",
        ScheduleError,
        'lw-split{block="nope" loop="i" factors=2,0}: no block is called \'nope\'; blocks',
    ),
    (
        "sch.split(c, 'zz', [2,None])",
        ScheduleError,
        'lw-split{block="T_matmul" loop="zz" factors=2,0}: block \'T_matmul\' is in no loop',
    ),
    (
        "sch.split(c, 'i', 3)",
        ScheduleError,
        'lw-split{block="T_matmul" loop="i" factors=3}: at least two factors are needed, got',
    ),
    ("sch.split(c, 'i')", TypeError, "split() missing 1 required positional argument: 'factors'"),
    ("sch.split(c)", TypeError, "split() missing 2 required positional arguments: 'loop' and 'factors'"),
    ("sch.split()", TypeError, "Schedule.split() missing 1 required positional argument: 'block'"),
    ("sch.split(c, 'i', [2,None], foo=1)", TypeError, "split() got an unexpected keyword argument 'foo'"),
    (
        "sch.split(c, 'i', factors='x')",
        ScheduleError,
        'lw-split{block="T_matmul" loop="i" factors="x"}: at least two factors are needed,',
    ),
    (
        "sch.split(c, 'i', [None, None])",
        ScheduleError,
        'lw-split{block="T_matmul" loop="i" factors=0,0}: factors must be positive, and at',
    ),
    (
        "sch.reorder(c, 'i', 'zz')",
        ScheduleError,
        'lw-reorder{block="T_matmul" loops="i","zz"}: block \'T_matmul\' is in no loop \'zz\';',
    ),
    ("sch.reorder(c)", TypeError, "reorder() missing 1 required positional argument: 'loops'"),
    ("sch.fuse(c, 'i')", ScheduleError, 'lw-fuse{block="T_matmul" loops="i"}: at least two loops are needed, got 1'),
    (
        "sch.fuse(c, 'i', 'k')",
        ScheduleError,
        'lw-fuse{block="T_matmul" loops="i","k"}: each loop must be directly in the one',
    ),
    (
        "sch.vectorize(c, 5)",
        ScheduleError,
        "lw-vectorize{block=\"T_matmul\" loop=5}: block 'T_matmul' is in no loop '5'; loops",
    ),
    ("sch.vectorize('i')", TypeError, "vectorize() missing 1 required positional argument: 'loop'"),
    (
        "sch.parallel(c, 'k')",
        ScheduleError,
        'lw-parallel{block="T_matmul" loop="k"}: iterations that run at once must share',
    ),
    (
        "sch.bind(c, 'i', 'threadIdx.w')",
        ScheduleError,
        'lw-bind{block="T_matmul" loop="i" thread="threadIdx.w"}: thread must be one of',
    ),
    ("sch.bind(c, 'i')", TypeError, "bind() missing 1 required positional argument: 'thread'"),
    ("sch.unroll(c)", TypeError, "unroll() missing 1 required positional argument: 'loop'"),
    (
        "sch.compute_at(c, 'nope')",
        ScheduleError,
        'lw-compute-at{block="T_matmul" loop="nope"}: \'T_matmul\' must not be an output of',
    ),
    (
        "sch.cache_read(c, 'zz', 'shared')",
        ScheduleError,
        'lw-cache-read{block="T_matmul" buffer="zz" scope="shared"}: block \'T_matmul\' must',
    ),
    ("sch.cache_read(c)", TypeError, "cache_read() missing 1 required positional argument: 'buffer'"),
    ("sch.get_loops('nope')", ScheduleError, "get_loops: no block is called 'nope'; blocks here: T_matmul"),
    ("sch.get_loops(5)", TypeError, "a block is given by its name or its tensor, a loop by its name, got 5"),
    ("sch.get_loops(a)", ScheduleError, "get_loops: no block is called 'a'; blocks here: T_matmul"),
    ("sch.apply(5)", TypeError, "a schedule is text, a step, or a list of steps, got 5"),
    ("sch.apply('nothing')", ValueError, "schedule text 'nothing': Unrecognized passes: ['nothing']"),
    ("sch.apply(None)", TypeError, "a schedule is text, a step, or a list of steps, got None"),
    ("sch[c]", TypeError, "'Schedule' object is not subscriptable; instead of TVM's 's[stage]' use methods of"),
    ("lw.build(mm)", TypeError, "build takes te tensors, a module or a schedule, got function"),
    ("lw.build('matmul')", TypeError, "build takes te tensors, a module or a schedule, got str"),
    ("lw.build(None)", TypeError, "build takes te tensors, a module or a schedule, got NoneType"),
    ("lw.build(sch, target='tpu')", ValueError, "target 'tpu': kind must be llvm, cuda or opencl, got 'tpu'"),
    ("lw.build(sch, params=5)", TypeError, "params of kernel main are arrays by name, got int"),
    ("lw.build(sch, params={'nope': x})", ValueError, "kernel main: there is no constant 'nope'; it has none"),
    ("k()", TypeError, "kernel main takes 2 arrays (a, b), or 3 with its outputs (T_matmul), got 0"),
    ("k(x)", TypeError, "kernel main takes 2 arrays (a, b), or 3 with its outputs (T_matmul), got 1"),
    ("k(x,x,x,x)", TypeError, "kernel main takes 2 arrays (a, b), or 3 with its outputs (T_matmul), got 4"),
    ("k(x.astype(np.float64), x)", TypeError, "kernel main: input 'a' must be float32, got float64"),
    ("k(np.zeros((3,3),np.float32), x)", ValueError, "kernel main: input 'a' must have shape (8, 8), got (3, 3)"),
    ("k('a','b')", TypeError, "kernel main: input 'a' must be float32, got <U1"),
    ("k(None, x)", TypeError, "kernel main: input 'a' must be float32, got object"),
    ("k(a=x, b=x)", TypeError, "Kernel.__call__() got an unexpected keyword argument 'a'"),
    ("k([1,2],[3])", TypeError, "kernel main: input 'a' must be float32, got int64"),
    ("k.benchmark(number=0)", ValueError, "number must be a whole number of at least 1, got 0"),
    ("k.benchmark(repeat=0)", ValueError, "repeat must be a whole number of at least 1, got 0"),
    ("k.benchmark(min_repeat_ms=-1)", ValueError, "min_repeat_ms must be at least 0, got -1"),
    ("k.benchmark(x, repeat='5')", ValueError, "repeat must be a whole number of at least 1, got '5'"),
    ("k.nothing", AttributeError, "'CpuKernel' object has no attribute 'nothing'"),
    (
        "k.export_library('k.txt')",
        ValueError,
        "kernel main: a library is an object file (.o) or a shared one (.so), not k.txt",
    ),
    ("k.save('k.txt')", ValueError, "kernel main is for llvm: it is saved as .ll or .so, not as k.txt"),
    ("k.save('k.cu')", ValueError, "kernel main is for llvm: it is saved as .ll or .so, not as k.cu"),
    ("k.save('k')", ValueError, "kernel main is for llvm: it is saved as .ll or .so, not as k"),
    ("k.save('')", ValueError, "kernel main is for llvm: it is saved as .ll or .so, not as ."),
    ("k.save(5)", TypeError, "kernel main is saved at the path of a file, got int"),
    (
        "k.save('my kernel.so')",
        ValueError,
        "kernel main: programs name its file, in letters, digits, '.', '_', '+' and",
    ),
    ("k.save('missing/k.so')", FileNotFoundError, "No such file or directory: 'missing/k.so'"),
    ("k.save('missing/k.ll')", FileNotFoundError, "No such file or directory: 'missing/k.ll'"),
    (
        "k.save('mine.so')",
        FileExistsError,
        "it is there already and is no file of a saved kernel, so it is left alone:",
    ),
    (
        "lw.build([a, b, c], 'opencl model=mali-g610').save('k.cu')",
        ValueError,
        "kernel main is for opencl: it is saved as .cl, not as k.cu",
    ),
    (
        "lw.build([a, b, c], 'opencl model=mali-g610').save('missing/k.cl')",
        FileNotFoundError,
        "No such file or directory: 'missing/k.cl'",
    ),
    (
        "lw.build([a, b, c], 'opencl model=mali-g610').save('mine.cl')",
        FileExistsError,
        "it is there already and is no file of a saved kernel, so it is left alone:",
    ),
    ("k.export_library('text.so/k.so')", FileNotFoundError, "No such file or directory: 'text.so/k.so'"),
    ("te.placeholder(5.5)", ShapeError, "placeholder 'placeholder': extents are integers, got 5.5 in shape (5.5,)"),
    ("te.placeholder((0,4))", ShapeError, "placeholder 'placeholder': extents are at least 1, got shape (0, 4)"),
    ("te.placeholder((-1,))", ShapeError, "placeholder 'placeholder': extents are at least 1, got shape (-1,)"),
    ("te.placeholder(('a',))", ShapeError, "placeholder 'placeholder': extents are integers, got 'a' in shape ('a',)"),
    (
        "te.placeholder('abc')",
        ShapeError,
        "placeholder 'placeholder': extents are integers, got 'a' in shape ('a', 'b', 'c')",
    ),
    ("te.placeholder(None)", ShapeError, "placeholder 'placeholder': extents are integers, got None in shape (None,)"),
    (
        "te.placeholder((4,4), dtype=float)",
        ExpressionError,
        "placeholder 'placeholder': element type '<class 'float'>' is not one of float16,",
    ),
    (
        "te.placeholder((4,4), dtype=int)",
        ExpressionError,
        "placeholder 'placeholder': element type '<class 'int'>' is not one of float16,",
    ),
    (
        "te.placeholder((4,4), dtype='f32')",
        ExpressionError,
        "placeholder 'placeholder': element type 'f32' is not one of float16, bfloat16,",
    ),
    (
        "te.placeholder((4,4), dtype='float')",
        ExpressionError,
        "placeholder 'placeholder': element type 'float' is not one of float16, bfloat16,",
    ),
    (
        "te.placeholder((4,4), dtype=None)",
        ExpressionError,
        "placeholder 'placeholder': element type 'None' is not one of float16, bfloat16,",
    ),
    (
        "te.compute((8,), lambda i: np.fft.fft(A[i]))",
        TypeError,
        "a te expression is no array, and no index of one: index te tensors, and use te.exp,",
    ),
    (
        "te.compute((8,), lambda i: np.arctan2(A[i],1.0))",
        TypeError,
        "te has no np.arctan2: it has absolute, add, ceil, cos, divide, equal, exp, exp2,",
    ),
    (
        "te.compute((8,), lambda i: max(A[i], 0))",
        TypeError,
        "a te expression has no truth value while the program is written: use te.all(a, b),",
    ),
    (
        "te.compute((8,), lambda i: __import__('math').exp(A[i]))",
        TypeError,
        "a te expression has no value while the program is written: use te.exp, not math.exp",
    ),
    (
        "te.compute((8,), lambda i: A[i] if A[i] > 0 else 0)",
        TypeError,
        "a te expression has no truth value while the program is written: use te.all(a, b),",
    ),
    (
        "te.compute((8,), lambda i: A[i] and 1)",
        TypeError,
        "a te expression has no truth value while the program is written: use te.all(a, b),",
    ),
    ("te.compute((8,), lambda i: A[i].sum())", AttributeError, "'Read' object has no attribute 'sum'"),
    ("te.compute((8,), lambda i: A[i, i])", ExpressionError, "tensor 'A' of shape (8,) takes 1 indices, got 2"),
    (
        "te.compute((8,), lambda i: A[0.5])",
        ExpressionError,
        "tensor 'A' is indexed by a value of type float32, not by an integer",
    ),
    (
        "te.compute((8,), lambda i: A['x'])",
        TypeError,
        "a te expression takes numbers, expressions and tensor elements, got str",
    ),
    (
        "te.compute((8,), lambda i: A[i:])",
        TypeError,
        "a te expression takes numbers, expressions and tensor elements, got slice",
    ),
    (
        "te.compute((8,), lambda i: A[...])",
        TypeError,
        "a te expression takes numbers, expressions and tensor elements, got ellipsis",
    ),
    (
        "te.compute((8,), lambda i: 'x')",
        TypeError,
        "a te expression takes numbers, expressions and tensor elements, got str",
    ),
    (
        "te.compute((8,), lambda i: None)",
        TypeError,
        "a te expression takes numbers, expressions and tensor elements, got NoneType",
    ),
    (
        "te.compute((8,), lambda i: np.zeros(3))",
        TypeError,
        "a te expression takes numbers, expressions and tensor elements, got ndarray",
    ),
    ("te.compute((8,), lambda i: a)", TypeError, "tensor 'a' of shape (8, 8) is used as a scalar: index it, a[...]"),
    (
        "te.compute((8,), lambda: 1.0)",
        ExpressionError,
        "compute 'compute': the shape has 1 axes, the function takes 0 arguments",
    ),
    (
        "te.compute((8,), lambda i, j: A[i])",
        ExpressionError,
        "compute 'compute': the shape has 1 axes, the function takes 2 arguments",
    ),
    ("te.compute((8,), 5)", TypeError, "compute 'compute': an element is given by a function of the axes, got 5"),
    ("te.compute(8.5, lambda i: A[i])", ShapeError, "compute 'compute': extents are integers, got 8.5 in shape (8.5,)"),
    (
        "te.compute((8,), lambda i: A[i].astype('f64'))",
        ExpressionError,
        "element type 'f64' is not one of float16, bfloat16, float32, float64, int8, int16,",
    ),
    (
        "te.compute((8,), lambda i: te.sum(A[i], axis='k'))",
        ExpressionError,
        "te.sum reduces over axes made by te.reduce_axis, got 'k'",
    ),
    (
        "te.compute((8,), lambda i: te.sum(A[i], axis=0))",
        ExpressionError,
        "te.sum reduces over axes made by te.reduce_axis, got 0",
    ),
    ("te.compute((8,), lambda i: te.sum(A[i]))", TypeError, "sum() missing 1 required positional argument: 'axis'"),
    (
        "te.compute((8,), lambda i: 1 + te.sum(A[i], axis=te.reduce_axis((0,8))))",
        ExpressionError,
        "a reduction must be the whole body of a compute: name it with te.compute first,",
    ),
    (
        "te.create_module([A, te.compute((8,), lambda i: A[i + 1])])",
        ExpressionError,
        "compute 'compute': tensor 'A' is read out of bounds on axis 0: index i + 1 ranges",
    ),
    ("te.reduce_axis(8)", ExpressionError, "reduce_axis 'rv': the domain is two whole numbers, as in (0, n), got 8"),
    (
        "te.reduce_axis((0,))",
        ExpressionError,
        "reduce_axis 'rv': the domain is two whole numbers, as in (0, n), got (0,)",
    ),
    ("te.reduce_axis((0,-1))", ExpressionError, "reduce_axis 'rv': the domain [0, -1) is empty"),
    (
        "te.reduce_axis((0,8.5))",
        ExpressionError,
        "reduce_axis 'rv': the domain is two whole numbers, as in (0, n), got (0, 8.5)",
    ),
    (
        "te.reduce_axis('k')",
        ExpressionError,
        "reduce_axis 'rv': the domain is two whole numbers, as in (0, n), got 'k'",
    ),
    ("te.sum(A)", TypeError, "sum() missing 1 required positional argument: 'axis'"),
    ("te.exp('x')", TypeError, "a te expression takes numbers, expressions and tensor elements, got str"),
    ("te.create_module([c])", ExpressionError, "placeholder 'a' is read, but is not in the list: list every input"),
    (
        "te.create_module([])",
        ExpressionError,
        "there is no computed tensor in the list, only placeholders: list the outputs too",
    ),
    (
        "te.create_module([a, a])",
        ExpressionError,
        "there is no computed tensor in the list, only placeholders: list the outputs too",
    ),
    ("te.nothing", AttributeError, "module 'loopwright.te' has no attribute 'nothing'"),
    ("topi.matmul(a)", TypeError, "matmul() missing 1 required positional argument: 'b'"),
    (
        "topi.matmul(a, x)",
        TypeError,
        "a te expression is no array, and no index of one: index te tensors, and use te.exp,",
    ),
    (
        "topi.matmul(a, te.placeholder((3,3)))",
        ShapeError,
        "matmul: a (8, 8) and b (3, 3) do not fit: 8 columns against 3 rows",
    ),
    ("topi.nothing", AttributeError, "module 'loopwright.topi' has no attribute 'nothing'"),
    (
        "topi.nn.relu(x)",
        TypeError,
        "a te expression is no array, and no index of one: index te tensors, and use te.exp,",
    ),
    ("topi.nn.softmax(a, axis=7)", ShapeError, "softmax: axis 7 is out of range for a tensor with 2 axes"),
    ("a + 'x'", TypeError, "a te expression takes numbers, expressions and tensor elements, got str"),
    ("a @ b", TypeError, "tensor 'a': a product is topi.matmul(a, b)"),
    ("bool(a)", TypeError, "tensor 'a' has no truth value"),
    ("list(a)", TypeError, "tensor 'a' cannot be iterated: index it inside te.compute"),
    (
        "lw.compile('missing.onnx', T)",
        OnnxImportError,
        "model 'missing.onnx' cannot be imported: cannot read missing.onnx: No such file or",
    ),
    (
        "lw.compile('text.txt', T)",
        TypeError,
        "'text.txt' is no network: give the path of a model (.onnx), or what lw.from_onnx,",
    ),
    (
        "lw.compile('resnet-18x', T)",
        TypeError,
        "'resnet-18x' is no network: give the path of a model (.onnx), or what lw.from_onnx,",
    ),
    ("lw.compile(5, T)", TypeError, "5 is no network: give the path of a model (.onnx), or what lw.from_onnx,"),
    ("lw.compile(mm, T)", TypeError, " network: give the path of a model (.onnx), or"),
    (
        "lw.compile([a,b,c], T)",
        TypeError,
        "[Tensor('a', shape=(8, 8), dtype=float32), Tensor('b', shape... is no network: give",
    ),
    (
        "lw.compile(lw.from_onnx('relu.onnx'), 'tpu')",
        ValueError,
        "target 'tpu': kind must be llvm, cuda or opencl, got 'tpu'",
    ),
    (
        "lw.compile(lw.from_onnx('relu.onnx'), T, records='missing.jsonl')",
        RecordError,
        "cannot read record file 'missing.jsonl': No such file or directory",
    ),
    (
        "lw.compile(lw.from_onnx('relu.onnx'), T, records='text.txt')",
        RecordError,
        "text.txt holds no record: 1 line(s) skipped; line 1: not a JSON object: Expecting",
    ),
    (
        "lw.compile(lw.from_onnx('relu.onnx'), T, layout='NCWH')",
        ValueError,
        "layout is one of NCHW, NHWC, auto or None, got 'NCWH'",
    ),
    (
        "lw.compile(lw.from_onnx('relu.onnx'), T, precision='int4')",
        ValueError,
        "precision is float16 or bfloat16 or tf32 or tf32x3, or None for the types that the network has, got 'int4'",
    ),
    (
        "lw.extract_tasks(lw.from_onnx('relu.onnx'), T, precision='fp16')",
        ValueError,
        "precision is float16 or bfloat16 or tf32 or tf32x3, or None for the types that the network has, got 'fp16'",
    ),
    ("lw.extract_tasks(5, T)", TypeError, "5 is no network: give the path of a model (.onnx), or what lw.from_onnx,"),
    (
        "lw.extract_tasks(lw.from_onnx('relu.onnx'), 'tpu')",
        ValueError,
        "target 'tpu': kind must be llvm, cuda or opencl, got 'tpu'",
    ),
    (
        "lw.from_onnx('missing.onnx')",
        OnnxImportError,
        "model 'missing.onnx' cannot be imported: cannot read missing.onnx: No such file or",
    ),
    (
        "lw.from_onnx('text.txt')",
        OnnxImportError,
        "model 'text.txt' cannot be imported: this is no ONNX model: Error parsing message",
    ),
    (
        "lw.from_onnx(5)",
        OnnxImportError,
        "model '5' cannot be imported: expected str, bytes or os.PathLike object, not int",
    ),
    (
        "lw.from_onnx('relu.onnx', shapes={'x': 5})",
        OnnxImportError,
        "model 'relu' cannot be imported: the extents of input 'x' must be a list or a",
    ),
    (
        "lw.from_onnx('relu.onnx', shapes=5)",
        TypeError,
        "shapes are given by the names of inputs, shapes={'x': ...}, got int",
    ),
    (
        "lw.from_onnx('relu.onnx', shapes={'zz': (1,4)})",
        OnnxImportError,
        "model 'relu' cannot be imported: there is no input 'zz'; there are x",
    ),
    (
        "lw.from_onnx('relu.onnx', constants={'x': 5})",
        OnnxImportError,
        "model 'relu' cannot be imported: input 'x' has the shape [1, 4], values of shape ()",
    ),
    ("lw.from_onnx('relu.onnx', layout='x')", ValueError, "layout is one of NCHW, NHWC, auto or None, got 'x'"),
    ("compiled()", TypeError, "network relu takes 1 arrays (x), got 0"),
    ("compiled(x)", ValueError, "input 'x' must have shape (1, 4), got (8, 8)"),
    ("compiled(1,2,3)", TypeError, "network relu takes 1 arrays (x), got 3"),
    ("compiled(y=x)", ValueError, "network relu has no input 'y'; it has x"),
    ("compiled.run(x)", AttributeError, "'CpuNetwork' object has no attribute 'run'"),
    (
        "compiled['default']",
        TypeError,
        "'CpuNetwork' object is not subscriptable; instead of TVM's 'lib[\"default\"]' use",
    ),
    ("compiled.nothing", AttributeError, "'CpuNetwork' object has no attribute 'nothing'"),
    ("compiled.executor().set_input(zz=x)", ValueError, "network relu has no input 'zz'; it has x"),
    ("compiled.executor().set_input('x', x)", ValueError, "input 'x' must have shape (1, 4), got (8, 8)"),
    ("compiled.executor().get_output(7)", ValueError, "network relu has no output 7; it has y"),
    ("compiled.executor('gpu')", ValueError, "there is no CPU gpu"),
    (
        "compiled.save('text.txt')",
        FileExistsError,
        "it is there already and is no compiled network, so it is left alone:",
    ),
    (
        "compiled.export_library('x.txt')",
        ValueError,
        "network relu: a library is an object file (.o) or a shared one (.so), not x.txt",
    ),
    ("lw.load_network('missing.lw')", FileNotFoundError, "No such file or directory: 'missing.lw'"),
    ("lw.load_network('text.txt')", PackageError, "text.txt is no compiled network: File is not a zip file"),
    ("lw.load_network(5)", TypeError, "a compiled network is given by the path of its file, got int"),
    ("lw.TaskScheduler([])", ValueError, "there is no task to tune"),
    ("lw.TaskScheduler(task)", TypeError, "tasks are a list of tasks, as lw.extract_tasks gives, got"),
    ("lw.TaskScheduler([task], [1,2])", ValueError, "weights must have one entry for each of the 1 tasks, got 2"),
    ("lw.TaskScheduler([5])", TypeError, "tasks are a list of tasks, as lw.extract_tasks gives, got [5]"),
    (
        "lw.TaskScheduler([task]).tune(-3)",
        ValueError,
        "num_measure_trials must be a whole number of at least 1, got -3",
    ),
    ("lw.resolve_target('')", ValueError, "target '': kind must be llvm, cuda or opencl, got ''"),
    ("lw.resolve_target(None)", TypeError, "a target is text, as 'llvm cores=2', or a Target, got NoneType"),
    ("lw.resolve_target('cuda:0')", ValueError, "target 'cuda:0': kind must be llvm, cuda or opencl, got 'cuda:0'"),
    (
        "lw.resolve_target('llvm cores=zero')",
        ValueError,
        "target 'llvm cores=zero': option 'cores' takes a positive integer, got 'zero'",
    ),
    (
        "lw.resolve_target('nvidia/h100')",
        ValueError,
        "target 'nvidia/h100': kind must be llvm, cuda or opencl, got 'nvidia/h100'",
    ),
    ("lw.Target(cores=0)", ValueError, "target: option 'cores' takes a positive integer, got 0"),
    ("lw.Target(kind='tpu')", ValueError, "target: kind must be llvm, cuda or opencl, got 'tpu'"),
    (
        "lw.load_best('missing.jsonl')",
        RecordError,
        "cannot read record file 'missing.jsonl': No such file or directory",
    ),
    (
        "lw.load_best('text.txt')",
        RecordError,
        "text.txt holds no record: 1 line(s) skipped; line 1: not a JSON object: Expecting",
    ),
    (
        "lw.pick_best('missing.jsonl')",
        RecordError,
        "cannot read record file 'missing.jsonl': No such file or directory",
    ),
    (
        "lw.pick_best('text.txt', 'out.jsonl')",
        RecordError,
        "text.txt holds no record: 1 line(s) skipped; line 1: not a JSON object: Expecting",
    ),
    (
        "lw.apply_history_best('missing.jsonl').__enter__()",
        RecordError,
        "cannot read record file 'missing.jsonl': No such file or directory",
    ),
    (
        "lw.write_report('missing.jsonl', 'r.html')",
        RecordError,
        "cannot read record file 'missing.jsonl': No such file or directory",
    ),
    (
        "lw.write_report('text.txt', 'r.html')",
        RecordError,
        "text.txt holds no record: 1 line(s) skipped; line 1: not a JSON object: Expecting",
    ),
    ("lw.write_report([], 'r.html')", RecordError, "there is no record to report on: tune first"),
    ("lw.write_report(5, 'r.html')", TypeError, "records are the path of a file, or a list of records, got int"),
    ("lw.load_cost_model('text.txt')", CostModelError, "text.txt is no cost model: it does not begin as one"),
    ("lw.load_cost_model('missing')", FileNotFoundError, "No such file or directory: 'missing'"),
    (
        "lw.train_cost_model('missing.jsonl')",
        TypeError,
        "train_cost_model() missing 1 required positional argument: 'tasks'",
    ),
    ("lw.train_cost_model([])", TypeError, "train_cost_model() missing 1 required positional argument: 'tasks'"),
    ("lw.register_workload(5)", TypeError, "a workload is a function that returns tensors, got int 5"),
    ("lw.register_workload('reg', mm)", ValueError, "workload 'reg' is registered already, of "),
    (
        "lw.register_workload(lambda: 1)",
        TypeError,
        "a lambda has no name to be registered by: register_workload('name', function)",
    ),
    ("lw.register_sketch_rule(5)", TypeError, "register_sketch_rule: a sketch rule must be a lw.SketchRule, got int"),
    ("lw.template(5)", TypeError, "a template is a function f(cfg, *args), got int"),
    (
        "lw.TemplateTask('nothing', (), T)",
        ConfigError,
        "there is no template 'nothing' for target 'llvm'; there are: batch_matmul_cpu,",
    ),
    ("lw.TemplateTask('dense', (1,2), T)", TypeError, "dense() missing 1 required positional argument: 'in_dim'"),
    ("lw.TemplateTask(5, (), T)", TypeError, "a template is a name or a function f(cfg, *args), got int"),
    ("lw.LocalBuilder(timeout=0)", ValueError, "timeout must be above 0 seconds, got 0"),
    ("lw.LocalRunner(repeat=0)", ValueError, "repeat must be a whole number of at least 1, got 0"),
    ("lw.LocalRunner(number='x')", ValueError, "number must be a whole number of at least 1, got 'x'"),
    ("lw.measure_option(5)", TypeError, "builder must be a LocalBuilder, got int"),
    ("lw.tuners.nothing", AttributeError, "module 'loopwright.tuners' has no attribute 'nothing'"),
    ("lw.BuildLimits(nothing=1)", TypeError, "BuildLimits.__init__() got an unexpected keyword argument 'nothing'"),
    (
        "lw.ComputeDAG([a,b,c]).flops",
        TypeError,
        "ComputeDAG is of a module: of tensors it is ComputeDAG.from_tensors(...), got list",
    ),
    ("net.input('x', (0,))", ValueError, "input 'x': extents are numbers of at least 1, got (0,)"),
    (
        "net.input('z', (1,4), 'float33')",
        ValueError,
        "element type 'float33' is not one of float16, bfloat16, float32, float64, int8,",
    ),
    ("net.nothing", AttributeError, "there is no operator 'nothing'; there are abs, acos, acosh, adaptive_avg_pool,"),
    ("net.conv2d(5)", ValueError, "network 'n', operator conv2d: operator 'conv2d' takes 2 tensor(s), got 1"),
    (
        "lw.testing.network('resnet18')",
        ValueError,
        "there is no network 'resnet18'; there are resnet-18, resnet-34, resnet-50,",
    ),
    ("lw.testing.nothing", AttributeError, "module 'loopwright.testing' has no attribute 'nothing'"),
    (
        "lw.from_mlir('garbage')",
        MlirImportError,
        "the program cannot be imported: line 1: garbage cannot be read: Operation garbage",
    ),
    ("lw.from_mlir(5)", TypeError, "from_mlir takes text, a path, bytes or a module, got int"),
    ("lw.from_mlir('missing.mlir')", FileNotFoundError, "No such file or directory: 'missing.mlir'"),
    (
        "lw.onnx.InferenceSession('missing.onnx')",
        OnnxImportError,
        "model 'missing.onnx' cannot be imported: cannot read missing.onnx: No such file or",
    ),
    (
        "task.tune(lw.TuningOptions(records='relu.onnx', num_measure_trials=1))",
        RecordError,
        "cannot open record file 'relu.onnx': it is there already and is no record file, so",
    ),
    (
        "task.tune(lw.TuningOptions(records='', num_measure_trials=1))",
        RecordError,
        "cannot open record file '': No such file or directory",
    ),
    ("lw.Schedule([a, b, 5])", TypeError, "a program is a te tensor, or a list of its inputs and outputs, got int"),
    ("sch.get_loops(None)", TypeError, "a block is given by its name or its tensor, a loop by its name, got None"),
    (
        "te.compute((8,), lambda i: np.add.reduce(A[i]))",
        TypeError,
        "np.add.reduce is for arrays: reduce te expressions with te.sum, te.max and their",
    ),
    (
        "te.compute((8,), lambda i: np.cbrt(A[i]))",
        TypeError,
        "te has no np.cbrt: it has absolute, add, ceil, cos, divide, equal, exp, exp2,",
    ),
    ("np.asarray(a)", TypeError, "tensor 'a' is no array: it has no values until a kernel of it runs"),
    ("float(A[0])", TypeError, "a te expression has no value while the program is written: use te.exp, not math.exp"),
    ("sch.split(c, 'i', [2.5, None])", ScheduleError, "whole numbers"),
    ("lw.Network(5)", TypeError, "a network is named by a text, got int"),
    ("lw.tuners.XGBTuner(5)", TypeError, "a tuner searches a lw.TemplateTask, got int"),
]


def names() -> dict[str, Any]:
    """Names that a user has at hand who calls something wrongly."""

    def mm(m: int = 8, n: int = 8, k: int = 8) -> list[te.Tensor]:
        a, b = te.placeholder((m, k), name="a"), te.placeholder((k, n), name="b")
        return [a, b, topi.matmul(a, b)]

    def reg(m: int, n: int) -> list[te.Tensor]:
        return [a := te.placeholder((m, n), name="a"), topi.nn.relu(a)]

    lw.register_workload("reg", reg, override=True)
    a, b, c = mm()
    known: dict[str, Any] = {"lw": lw, "te": te, "topi": topi, "np": np, "T": T, "mm": mm, "a": a, "b": b, "c": c}
    known |= {"A": te.placeholder((8,), name="A"), "x": np.zeros((8, 8), np.float32), "net": lw.Network("n")}
    known |= {"task": lw.SearchTask(mm, target=T), "sch": lw.Schedule([a, b, c], target=T)}
    return known


@pytest.fixture(scope="module")
def built(folder: Path) -> dict[str, Any]:
    """A kernel and a network that are compiled once."""
    sch = names()["sch"]
    return {"k": lw.build(sch), "compiled": lw.compile(folder / "relu.onnx", T, processes=1)}


@pytest.mark.parametrize(("text", "error", "sentence"), CALLS, ids=[text for text, _, _ in CALLS])
@pytest.mark.usefixtures("untouched")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.few(143)
def test_a_wrong_call_is_a_sentence(text: str, error: type[Exception], sentence: str, built: dict[str, Any]) -> None:
    with pytest.raises(error, match=re.escape(sentence)) as refused:
        eval(text, {**names(), **built})
    assert "Traceback" not in str(refused.value)


def test_first_guesses_work(folder: Path, monkeypatch: pytest.MonkeyPatch, built: dict[str, Any]) -> None:
    """Calls that somebody tries who has read nothing."""
    monkeypatch.chdir(folder)
    known = {**names(), **built}
    a, b, c, x = (known[name] for name in "abcx")
    tasks = [lw.SearchTask(given, target=T) for given in ([a, b, c], c)]
    assert [task.name for task in tasks] == ["T_matmul"] * 2 and tasks[0].workload_key == tasks[1].workload_key
    assert lw.SearchTask("reg", (4, 4), T).name == "reg" and lw.SearchTask("matmul", target=T).flops == 2 * 512**3
    assert lw.Schedule(c).blocks == ["T_matmul"]
    for kernel in (lw.build(c, T), lw.build([a, b, c], T)):
        np.testing.assert_allclose(kernel(x + 1, x + 1), 8.0)
    assert lw.extract_tasks("relu.onnx", T) == ([], [])
    ones = -np.ones((1, 4), np.float32)
    for out in (built["compiled"](ones), built["compiled"](x=ones)):
        np.testing.assert_array_equal(out, 0.0)
    given = te.placeholder((8,), np.float32, "given")
    assert te.placeholder(iter([4, 4]), np.dtype("int8")).dtype == "int8"
    assert (
        given[0].astype(np.float64).dtype == "float64"
        and lw.Network("n").input("i", (1,), np.float16).dtype == "float16"
    )
    made = te.compute(
        (8,),
        lambda i: np.exp(given[i]) + np.maximum(abs(given[i]), np.float32(2)) * np.float32(3),  # type: ignore[arg-type, return-value]
    )
    values = np.linspace(-4, 4, 8, dtype=np.float32)
    expected = np.exp(values) + np.maximum(abs(values), 2) * 3
    np.testing.assert_allclose(lw.build(made, T)(values), expected, rtol=1e-5)
    np.testing.assert_allclose(lw.build(np.float32(2) * np.tanh(given), T)(values), 2 * np.tanh(values), rtol=1e-5)


def test_a_number_of_trials_is_enough(quick_measuring: None) -> None:
    task = lw.SearchTask("matmul", (8, 8, 8), T)
    assert task.tune(2).state.done == lw.TaskScheduler([task]).tune(2).state.done == 2
