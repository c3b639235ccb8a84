"""Damaged and crafted files, a few of each kind, and text of programs that no machine could hold."""

from pathlib import Path

import numpy as np
import pytest
from damage import damaged_bytes, damaged_text
from effort import usual
from trust.inputs import WAYS, tried

from loopwright.cli import main
from loopwright.dialects.unclosed import unclosed_string
from loopwright.passes.pipeline_text import parse_schedule
from loopwright.search.records.file import Record, append
from loopwright.search.records.workload_files import WorkloadFileError, read_module

FEW = {"records": 1, "te-level programs": 2, "ONNX models": 2, "packages": 1, "cost models": 1, "cache entries": 2}


@pytest.mark.parametrize("kind", FEW)
@pytest.mark.few(2)
def test_a_few_damaged_inputs_of_each_kind(kind: str) -> None:
    count = FEW[kind] * usual(2)
    row = tried(kind, count, 1, 1)
    assert row.tried == count and row.holds, row.examples


@pytest.mark.slow(1.2)
def test_what_must_not_happen_is_seen(tmp_path: Path) -> None:
    """Processes that crash, hang, run code, or leave files are told apart, and the next input gets a new one."""
    script = tmp_path / "misbehaves.py"
    script.write_text(
        "import json, os, pathlib, signal, sys, time\n"
        "kind, seed, folder, canary = sys.argv[1:]\n"
        "for line in sys.stdin:\n"
        "    n = int(line)\n"
        "    what = ['taken', 'refused', 'traceback', 'no sentence', 'strays', '', '', 'taken'][n % 8]\n"
        "    if n == 5:\n        os.kill(os.getpid(), signal.SIGSEGV)\n"
        "    if n == 6:\n        time.sleep(60)\n"
        "    if n == 7:\n        pathlib.Path(canary).mkdir()\n"
        "    print(json.dumps([n, what, 'said']), flush=True)\n"
    )
    row = tried("any", 9, 0, 1, script, limit_s=6.0)
    assert row.bad == dict.fromkeys(WAYS, 1) and row.tried == 9 and not row.holds
    assert row.note == "1 refused in a sentence, 2 taken" and "SIGSEGV" in "".join(row.examples)


def test_damage_is_damage() -> None:
    rng, data = np.random.default_rng(0), bytes(range(200))
    assert sum(damaged_bytes(data, data, rng) != data for _ in range(100)) > 80
    text = program()
    assert sum(damaged_text(text, ("f16",), "canary", rng) != text for _ in range(100)) > 80


# -- the text of programs ------------------------------------------------------------------------------------------


def program(
    axes: str = "i = 8",
    read: str = "%a[i]",
    shape: str = "8xf32",
    result: str = "8xf32",
    body: str = "",
    value: str = "%x",
    combiner: str = "",
) -> str:
    return f"""builtin.module {{
  func.func @main(%a: tensor<{shape}>) -> tensor<{result}> {{
    %c = lw_te.compute "c" [{axes}] {combiner} -> tensor<{result}> {{
      %x = lw_te.read {read} : tensor<{shape}>
      {body}
      lw_te.yield {value} : f32
    }}
    func.return %c : tensor<{result}>
  }}
}}"""


LARGE = 1 << 63
RANK = 3000
TEXTS = {
    "an extent of 0": (program("i = 0", result="0xf32"), "axis 'i' has extent 0"),
    "an input of extent 0": (program(shape="0xf32"), "read out of bounds on axis 0"),
    "an extent of 2^63": (
        program(f"i = {LARGE}", shape=f"{LARGE}xf32", result=f"{LARGE}xf32"),
        "does not fit into 64 bits|cannot be addressed|points",
    ),
    "an extent of 2^50": (program(f"i = {1 << 50}", result=f"{1 << 50}xf32", read="%a[i mod 8]"), "points"),
    "a tensor of 2^46 numbers": (program(shape=f"{1 << 46}xf32"), "2.81e.14 bytes cannot be addressed"),
    "a negative extent": (program("i = -8"), r":3: .*"),
    "an extent of words": (program("i = n"), r":3: .*"),
    "a number of 5,000 digits": (program("i = " + "9" * 5000), "cannot be parsed|axes give shape|digits"),
    "a reduction without end": (
        program(f"i = 8, reduce k = {1 << 60}", combiner="add"),
        "its domain has 9.22e.18 points",
    ),
    "a rank of thousands": (
        program(
            ", ".join(f"i{d} = 1" for d in range(RANK)),
            "%a[0]",
            result="x".join(["1"] * RANK) + "xf32",
        ),
        f"{RANK} axes, at most 32 are allowed",
    ),
    "an extent that is not known": (program(shape="?xf32"), "read out of bounds|extents are constants"),
    "an index beyond 64 bits": (program(read=f"%a[i * {1 << 70}]"), "does not fit into 64 bits"),
    "a divisor beyond 64 bits": (program(read=f"%a[i floordiv {1 << 70}]"), "does not fit into 64 bits"),
    "a read outside": (program(read="%a[i + 1]"), "read out of bounds on axis 0: index i . 1 ranges over .1, 8."),
    "a guard that does not guard": (program(read="%a[i + 1] where (i >= 0)"), "read out of bounds"),
    "a condition beyond 64 bits": (program(read=f"%a[i] where (i + {1 << 64} >= 0)"), "does not fit into 64 bits"),
    "nesting": (program(read="%a[" + "(" * 5000 + "i" + ")" * 5000 + "]"), "nested too deeply"),
    "nested attributes": ("builtin.module attributes {a = " + "[" * 5000 + "]" * 5000 + "} {}", "nested too deeply"),
    "a type of no number": (
        program(body='%y = "test.op"(%x) : (f32) -> f32', value="%y"),
        r"test.op",
    ),
    "an operation without meaning": (
        program(body="%n = arith.constant 1 : i32\n %m = math.ctpop %n : i32"),
        "operation math.ctpop has no meaning",
    ),
    "an odd type": (program(body="%n = arith.constant 1 : i7"), "a value is i7"),
    "a tensor that is computed later": (
        program(read="%c[i]"),
        "lw_te.read uses a value that is not computed before it",
    ),
    "a value of another block": (
        program(body="%y = arith.addf %x, %z : f32\n %z = arith.addf %x, %x : f32"),
        "arith.addf uses",
    ),
    "a string without end": (program(read='%a[i] "' + "x" * 200), ":4: a string does not end"),
    "two functions": (program()[:-1] + "func.func @other() { func.return } }", "the module holds func.func, func.func"),
    "a call": (
        "builtin.module { func.func @f(%a: tensor<8xf32>) -> tensor<8xf32> "
        "{ %b = func.call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>\n func.return %b : tensor<8xf32> } }",
        "it holds func.call",
    ),
    "a chain of operations": (
        program(
            body="\n".join(f"%y{n} = arith.addf %{f'y{n - 1}' if n else 'x'}, %x : f32" for n in range(1500)),
            value="%y1499",
        ),
        "more than 300 deep",
    ),
    "marks of other levels": (
        program().replace("%a: tensor<8xf32>", "%a: tensor<8xf32> {lw.output}"),
        "is marked lw.output",
    ),
    "nothing": ("builtin.module {}", "the module holds nothing"),
    "no text": (" \n", ": it is empty"),
    "no end": (program().rstrip().removesuffix("}"), ": it ends in the middle of a program"),
}


@pytest.mark.parametrize("what", TEXTS)
def test_text_that_cannot_be_is_refused_with_its_place(what: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.mlir"
    path.write_text(TEXTS[what][0])
    with pytest.raises(WorkloadFileError, match=TEXTS[what][1]) as refused:
        read_module(path)
    assert str(refused.value).startswith(str(path)) and str(refused.value).isprintable()
    assert len(str(refused.value)) < 700


def test_the_plain_program_is_taken(tmp_path: Path) -> None:
    (tmp_path / "plain.mlir").write_text(program())
    read_module(tmp_path / "plain.mlir")


def test_strings_end_where_the_lexer_says_so() -> None:
    assert unclosed_string('a "b\\22" // "c\n @"d\\n" / "e"') is None
    assert unclosed_string('a "b') == 2
    assert unclosed_string('a "b\n"') == 2
    assert unclosed_string('"a" "b\\q"') == 4
    assert unclosed_string("x" * 100_000 + '"' + "y" * 100_000) == 100_000


def test_a_schedule_that_is_none_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plain.mlir").write_text(program())
    assert main(["replay", str(tmp_path / "plain.mlir"), "--schedule", "lw-split{{", "--target", "llvm cores=1"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and said[0].startswith("loopwright: schedule text 'lw-split{{'")
    with pytest.raises(ValueError, match=r"schedule text 'lw-reorder.*Invalid escape sequence"):
        parse_schedule('lw-reorder{block="c" loops="i","x\\rdefine"}')


def test_a_record_of_a_target_that_is_none_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.jsonl"
    append(path, [Record('["x", [], "0123"]', "0123", "x" * 1000, "s", (), "", times_s=(1.0,))])
    (tmp_path / "r.0123.mlir").write_text(program())
    for words in (["replay"], ["show", "--mode", "dag"]):
        assert main([*words, str(path)]) == 2
        said = capsys.readouterr().err.splitlines()
        assert len(said) == 1 and "kind must be llvm, cuda or opencl" in said[0] and len(said[0]) < 600
