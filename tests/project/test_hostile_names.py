"""Names and texts from elsewhere: refused where IR enters, and made safe again by every printer."""

import ast
import ctypes
import functools
import json
import operator
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import effort
import numpy as np
import pytest
from gpu_programs import opencl_device
from hostile_names import HOSTILE, WORDS
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

import loopwright as lw
from loopwright import te
from loopwright.backends.build import lower_to_kernel
from loopwright.backends.context import create_context
from loopwright.backends.cuda.compile import print_cuda
from loopwright.backends.llvm.emit import emit
from loopwright.backends.llvm.jit import compile_text
from loopwright.backends.llvm.loaded_object import LoadedObject
from loopwright.backends.opencl.compile import print_opencl
from loopwright.cli import main
from loopwright.command._report import replay_command, replay_script
from loopwright.dialects.index import axis
from loopwright.dialects.interpret.loop import run_loops
from loopwright.dialects.kernel import AllocOp as KernelAllocOp
from loopwright.dialects.loop import AllocOp, BlockOp, ForOp, blocks_in, loops_in
from loopwright.dialects.names import LONGEST_NAME, check_name
from loopwright.dialects.shown_text import one_line, printable
from loopwright.dialects.te import ComputeOp
from loopwright.passes.pipeline_text import lower_to_loops, parse_schedule
from loopwright.search.records import file as rec
from loopwright.search.records.file import Record
from loopwright.search.records.workload_files import WorkloadFileError, read_module, workload_file
from loopwright.search.report.write import write_report
from loopwright.search.sketch.as_python import as_python

IN_FILES = {what: name for what, name in HOSTILE.items() if what != "surrogate"}
"""Those that a file of text holds."""


def workload(name: str = "a") -> ModuleOp:
    a = te.placeholder((8,), name=name)
    b = te.compute((8,), lambda i: a[i] * 2.0, name="b")
    return te.create_module([a, te.compute((8,), lambda i: b[i] + 1.0, name="c")])


def function(module: ModuleOp) -> FuncOp:
    return next(op for op in module.ops if isinstance(op, FuncOp))


def named_function(module: ModuleOp, name: str) -> None:
    function(module).sym_name = StringAttr(name)


def named_argument(module: ModuleOp, name: str) -> None:
    func = function(module)
    assert func.arg_attrs is not None
    first, *others = func.arg_attrs.data
    func.arg_attrs = ArrayAttr([DictionaryAttr({**first.data, "lw.name": StringAttr(name)}), *others])


def named_compute(module: ModuleOp, name: str) -> None:
    next(op for op in module.walk() if isinstance(op, ComputeOp)).label = StringAttr(name)


def named_loop(module: ModuleOp, name: str) -> None:
    next(loops_in(function(module))).label = StringAttr(name)


def named_block(module: ModuleOp, name: str) -> None:
    next(blocks_in(module)).label = StringAttr(name)


def named_buffer(module: ModuleOp, name: str) -> None:
    next(op for op in module.walk() if isinstance(op, AllocOp | KernelAllocOp)).properties["label"] = StringAttr(name)


Rename = Callable[[ModuleOp, str], None]


@pytest.mark.parametrize("rename", (named_function, named_argument, named_compute))
def test_a_file_with_a_hostile_name_is_refused_in_a_sentence(rename: Rename, tmp_path: Path) -> None:
    path = tmp_path / "evil.mlir"
    for what, name in IN_FILES.items():
        if rename is named_argument and not name:
            continue
        module = workload()
        rename(module, name)
        path.write_text(str(module))
        with pytest.raises(WorkloadFileError) as refused:
            read_module(path)
        assert str(refused.value).isprintable() and len(str(refused.value)) < 500, what
        with pytest.raises(VerifyException):
            lw.SearchTask(module)
        with pytest.raises(VerifyException):
            lw.build(module)


@pytest.mark.parametrize("rename", (named_loop, named_block, named_buffer))
def test_loops_with_a_hostile_name_do_not_verify(rename: Rename) -> None:
    for what, name in IN_FILES.items():
        module = workload()
        lower_to_loops(module)
        rename(module, name)
        with pytest.raises(VerifyException) as refused:
            module.verify()
        assert str(refused.value).strip(), what


@pytest.mark.parametrize("rename", (named_loop, named_block))
def test_the_interpreter_of_loops_runs_no_name(rename: Rename, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes Python source: names become words of their own, and strings."""
    monkeypatch.chdir(tmp_path)
    code = "x in [__import__('os').mkdir('evil')]:\n  pass\n for l_i"
    for name in (*IN_FILES.values(), code, "'+__import__('os').mkdir('evil')+'"):
        module = workload()
        lower_to_loops(module)
        rename(module, name)
        if rename is named_loop:
            for block in blocks_in(module):
                if block.enclosing_loops[0].loop_name == name:
                    block.rebind([axis(name)], ())
        (found,) = run_loops(module, [np.arange(8, dtype=np.float32)])
        np.testing.assert_array_equal(found, 2 * np.arange(8) + 1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("rename", (named_function, named_argument, named_buffer))
def test_llvm_text_holds_no_more_than_the_kernel(rename: Rename) -> None:
    import llvmlite.binding as llvm

    for what, name in HOSTILE.items():
        module = lower_to_kernel(workload(), "llvm cores=1")
        rename(module, name)
        with llvm.create_context() as context, llvm.parse_assembly(emit(module).source, context) as parsed:
            defined = {f.name for f in parsed.functions if not f.is_declaration}
            variables = list(parsed.global_variables)
        assert defined == {"kernel", "lw_run", "lw_time"} and not variables, what


@pytest.mark.parametrize("rename", (named_function, named_argument, named_buffer))
def test_c_text_has_the_same_form_whatever_the_names_are(rename: Rename) -> None:
    for print_source, target in ((print_cuda, "cuda model=h100"), (print_opencl, "opencl")):
        plain = lower_to_kernel(workload(), target)
        wanted = shape_of(print_source(plain).source)
        for what, name in HOSTILE.items():
            module = plain.clone()
            rename(module, name)
            source = print_source(module).source
            assert source.isascii() and shape_of(source) == wanted, what
            assert max(map(len, source.split())) < LONGEST_NAME, what


def shape_of(source: str) -> str:
    """The text without its words."""
    return re.sub(r"\w+", "", source)


def test_an_injected_function_does_not_run(tmp_path: Path) -> None:
    """The kernel calls `powf`, which a name would bring along; the same text with the name as it is runs it."""
    marker = tmp_path / "marker"
    name = (
        f'main\n@path = private constant [{len(str(marker)) + 1} x i8] c"{marker}\\00"\n'
        "declare i32 @mkdir(ptr, i32)\n"
        "define float @powf(float %a, float %b) {\n  %r = call i32 @mkdir(ptr @path, i32 511)\n  ret float 0.0\n}\n;"
    )
    a = te.placeholder((8,), name="a")
    module = te.create_module([a, te.compute((8,), lambda i: a[i] ** a[i], name="c")])
    path = tmp_path / "evil.mlir"
    evil = module.clone()
    named_function(evil, name)
    path.write_text(str(evil))
    done = subprocess.run(
        [sys.executable, "-m", "loopwright", "replay", str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "is called 'main\\n@path" in done.stderr
    kernel = lower_to_kernel(module, "llvm cores=1")
    naive = emit(kernel).source.replace("; kernel main", f"; kernel {name}")
    named_function(kernel, name)
    run_text(emit(kernel).source)
    assert not marker.exists()
    run_text(naive)
    assert marker.exists(), "the injected function of this test is one that would run"


def run_text(source: str) -> None:
    loaded = LoadedObject(compile_text(source).object_code, 1)
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.run)((ctypes.c_void_p * 3)(x.ctypes.data, y.ctypes.data, 0))
    loaded.close()


def test_names_given_in_python_go_on_working() -> None:
    given = np.arange(8, dtype=np.float32)
    for name in HOSTILE.values():
        kernel = lw.build(workload(name), "llvm cores=1")
        np.testing.assert_array_equal(kernel(given), 2 * given + 1)
    assert function(te.create_module(sum_of(["x"]), name=HOSTILE["newline"])).sym_name.data.isidentifier()


def sum_of(names: Sequence[str]) -> list[te.Tensor]:
    """The sum of inputs of these names."""
    inputs = [te.placeholder((4,), name=name) for name in names]
    return [*inputs, te.compute((4,), lambda i: functools.reduce(operator.add, [t[i] for t in inputs]), name="total")]


def test_words_of_other_languages_are_names() -> None:
    tensors = sum_of(WORDS)
    arrays = [np.full(4, n, np.float32) for n in range(len(WORDS))]
    wanted = np.full(4, sum(range(len(WORDS))), np.float32)
    np.testing.assert_array_equal(lw.build(te.create_module(tensors), "llvm cores=1")(*arrays), wanted)
    lw.build(te.create_module(tensors), "cuda model=h100")
    opencl_device()
    np.testing.assert_array_equal(lw.build(te.create_module(tensors), "opencl")(*arrays), wanted)


def test_text_of_the_ir_takes_words_of_other_languages(tmp_path: Path) -> None:
    for word in WORDS:
        module = workload()
        named_function(module, word)
        named_argument(module, word)
        path = tmp_path / "word.mlir"
        path.write_text(str(module))
        read_module(path)
        check_name("it", word)


def test_labels_are_refused_while_parsing() -> None:
    text = 'builtin.module { func.func @f() { %b = lw_loop.alloc "a\\0Ab" : memref<4xf32>\n func.return } }'
    with pytest.raises(ParseError, match="a buffer is called"):
        Parser(create_context(), text).parse_module()


# -- records ----------------------------------------------------------------------------------------------------------


def record(text: str, **fields: Any) -> Record:
    key = json.dumps([text, [text], "0123456789abcdef"])
    values: dict[str, Any] = {
        "device": text,
        "versions": {"python": text, "llvmlite": text},
        "times_s": (1e-3,),
        "flop": 1e6,
    }
    schedule = f'lw-split{{block="{text}" loop="i" factors=2,4}}'
    return Record(key, "0123456789abcdef", "llvm cores=1", text, (1, 2), schedule, **{**values, **fields})


class Tags(HTMLParser):
    """The elements of a page, with the names of their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.seen.update(name for name, _ in attrs)
        for name, value in attrs:
            assert name != "href" or (value or "").startswith("#w")


def tags_of(text: str) -> set[str]:
    parser = Tags()
    parser.feed(text)
    return parser.seen


def hostile_records(text: str) -> list[Record]:
    failed: dict[str, Any] = {"error": rec.ErrorCode.COMPILE_ERROR, "message": text, "times_s": ()}
    launch = {"registers": text, text: 1}
    template = {"name": text, "config": {text: text}}
    return [
        record(text),
        record(text, resources=(launch,)),
        record(text, template=template, times_s=(2e-3,)),
        record(text, **failed),
    ]


@pytest.mark.slow(1.2)
def test_reports_hold_text_as_text(tmp_path: Path) -> None:
    plain = write_report(hostile_records("plain"), tmp_path / "plain.html", measure=False).read_text()
    plain_curve = write_report(hostile_records("plain")[:1], tmp_path / "plain.svg", measure=False).read_text()
    for what, text in effort.spread(list(HOSTILE.items()), 5 * effort.level()):
        page = write_report(hostile_records(text), tmp_path / "page.html", measure=False, title=text).read_text()
        assert tags_of(page) <= tags_of(plain), what
        own = re.sub(r'<script type="module">.*?</script>', "", page, flags=re.DOTALL)
        assert own.count("<script") == own.count('<script type="application/json">') == plain.count("application/json")
        assert all(c.isprintable() or c in "\n\t" for c in own), what
        curve = write_report(hostile_records(text)[:1], tmp_path / "curve.svg", measure=False).read_text()
        assert tags_of(curve) <= tags_of(plain_curve) and printable(curve) == curve, what


def test_terminals_are_sent_no_controls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.jsonl"
    for what, text in HOSTILE.items():
        if '"' in text or "\\" in text:
            continue
        path.unlink(missing_ok=True)
        rec.append(path, hostile_records(text))
        for words in (["show"], ["records", "stats"], ["records", "best"], ["show", "--mode", "dag"], ["replay"]):
            code = main([*words, str(path)])
            shown = "".join(capsys.readouterr())
            assert code in (0, 2) and printable(shown) == shown, (what, words)


def test_lines_for_a_shell_are_one_command() -> None:
    for text in HOSTILE.values():
        schedule = f'lw-split{{block="{text}"}}'
        script = replay_script(text, "module {}", schedule, "END")
        words = shlex.split(script[script.index("exec ") : script.rindex(" <<'END'")])
        assert words[-3:] == ["$@", "-p", schedule] and script.count("\n#") == 1
        assert shlex.split(replay_command(Path(f"{text}.sh"))) == ["sh", f"{text}.sh"]


def test_python_code_is_calls_of_literals() -> None:
    for text in HOSTILE.values():
        if '"' in text or "\\" in text or "\n" in text:
            continue
        code = as_python(parse_schedule(f'lw-split{{block="{text}" loop="{text}" factors=2,4}}'), f"llvm model={text}")
        _, made, split = ast.parse(code).body
        assert isinstance(made, ast.Assign) and isinstance(split, ast.Expr)
        for call in (made.value, split.value):
            assert isinstance(call, ast.Call)
            found = [ast.literal_eval(a) for a in (*call.args, *(k.value for k in call.keywords)) if not_a_name(a)]
            assert text in found or f"llvm model={text}" in found
    assert ast.literal_eval(as_python((), 'a"b').splitlines()[-1].split("target=")[1][:-1]) == 'a"b'


def not_a_name(node: ast.expr) -> bool:
    return not isinstance(node, ast.Name)


def test_a_record_names_no_file_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = tmp_path / "inner" / "r.jsonl"
    for text in ("../../etc/passwd", "/etc/passwd", "a/b", "..", "a\0b", "", "x" * 300):
        with pytest.raises(WorkloadFileError, match="a workload's hash"):
            workload_file(records, text)
        records.unlink(missing_ok=True)
        rec.append(records, [hashed(text)])
        assert main(["replay", str(records)]) == 2
        assert len(capsys.readouterr().err.splitlines()) <= 2
    assert [p.name for p in tmp_path.rglob("*")] == ["inner", "r.jsonl"]


def hashed(text: str) -> Record:
    return Record(json.dumps(["x", [], text]), text, "llvm cores=1", "s", (), "", times_s=(1.0,))


# -- shown text -------------------------------------------------------------------------------------------------------


def test_foreign_text_is_shown_by_its_escapes() -> None:
    assert one_line("a\nb\x1b[0m\u202e") == "a\\nb\\x1b[0m\\u202e"
    assert one_line("x" * 100) == "x" * 80 + "..."
    assert printable("a\n\tb\x07\ud800") == "a\n\tb\\x07\\ud800"
    assert printable("größe 中 ok") == "größe 中 ok"
    for text in HOSTILE.values():
        assert one_line(text).isprintable()
        os.fsencode(printable(text))


def test_loops_called_like_grammar_are_refused() -> None:
    module = workload()
    lower_to_loops(module)
    loop = next(loops_in(function(module)))
    assert isinstance(loop, ForOp) and any(isinstance(op, BlockOp) for op in loop.body.block.ops)
    loop.label = StringAttr("floordiv")
    with pytest.raises(VerifyException, match="has a meaning in the IR's text"):
        loop.verify_()


def test_networks_show_and_keep_hostile_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names of a network's inputs and outputs are any text, as in ONNX: kept as they are, and shown as escapes."""
    path = tmp_path / "net.lw"
    for what, name in IN_FILES.items():
        if not name or what == "long":
            continue
        net = lw.Network(name)
        net.output(net.relu(net.input(name, (4,))), names=[f"{name} out"])
        assert repr(net).isprintable(), what
        compiled = lw.compile(net, "llvm cores=1")
        given = np.array([-1, 0, 1, 2], np.float32)
        executor = compiled.executor()
        executor.set_input(name, given)
        executor.run()
        np.testing.assert_array_equal(executor.get_output(0), np.maximum(given, 0))
        compiled.save(path)
        assert main(["run", str(path)]) == 0
        shown = "".join(capsys.readouterr())
        assert printable(shown) == shown, what


def test_options_of_operators_print_and_parse_back() -> None:
    from loopwright.dialects.graph import OptionsAttr

    for what, text in IN_FILES.items():
        if not text.isascii():
            continue
        attribute = OptionsAttr.of({"equation": text})
        assert Parser(create_context(), str(attribute)).parse_attribute() == attribute, what
        assert str(attribute).isprintable(), what
