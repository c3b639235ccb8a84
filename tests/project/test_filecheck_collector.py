"""The collector of FileCheck files fails where lit would, and where IR does not survive print -> parse -> print."""

from pathlib import Path

import pytest
from xdsl.dialects import test
from xdsl.parser import Parser
from xdsl.printer import Printer

pytest_plugins = ["pytester"]

PASSING = {
    "match": """
// RUN: xdsl-opt %s | filecheck %s
// CHECK: "test.op"() {a = 1 : i32}
"test.op"() {a = 1 : i32} : () -> ()
""",
    "pipe": """
// RUN: xdsl-opt %s --print-op-generic | xdsl-opt -p 'canonicalize' \\
// RUN:   | filecheck %s
// CHECK: func.func @f()
func.func @f() { return }
""",
    "refusal": """
// RUN: not xdsl-opt %s 2>&1 | filecheck %s
// CHECK: Expected 2 operands, but got 0
"arith.addi"() : () -> ()
""",
    "refusals_in_one_file": """
// RUN: xdsl-opt %s --verify-diagnostics --split-input-file | filecheck %s
// CHECK: Operation does not verify
"func.return"() ({}) : () -> ()
// -----
// CHECK: func.func @g()
func.func @g() { return }
""",
}

FAILING = {
    "no_match": """
// RUN: xdsl-opt %s | filecheck %s
// CHECK: "test.op"() {a = 2 : i32}
"test.op"() {a = 1 : i32} : () -> ()
""",
    "unexpected_error": """
// RUN: xdsl-opt %s -p 'no-such-pass' | filecheck %s
// CHECK-NOT: anything
func.func @f() { return }
""",
    "unexpected_success": """
// RUN: not xdsl-opt %s | filecheck %s
// CHECK: func.func @f()
func.func @f() { return }
""",
    "nothing_checked": """
// RUN: xdsl-opt %s
func.func @f() { return }
""",
    "no_run_line": """
func.func @f() { return }
""",
    "unknown_tool": """
// RUN: cat %s | filecheck %s
// CHECK: func.func @f()
func.func @f() { return }
""",
}


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest((Path(__file__).parents[1] / "conftest.py").read_text())
    (pytester.path / "filecheck").mkdir()
    return pytester


def outcomes(project: pytest.Pytester, program: str) -> dict[str, int]:
    (project.path / "filecheck" / "case.mlir").write_text(program)
    return project.runpytest_inprocess("-p", "no:cacheprovider").parseoutcomes()


@pytest.mark.parametrize("name", PASSING)
def test_passes(project: pytest.Pytester, name: str) -> None:
    assert outcomes(project, PASSING[name]) == {"passed": 1}


@pytest.mark.parametrize("name", FAILING)
def test_fails(project: pytest.Pytester, name: str) -> None:
    result = outcomes(project, FAILING[name])
    assert result.get("failed", 0) + result.get("errors", 0) == 1
    assert "passed" not in result


def test_print_parse_print_must_be_a_fixpoint(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = iter(range(1000))

    def print_differently(self: test.TestOp, printer: Printer) -> None:
        printer.print_string(f' "{next(printed)}"')

    def parse(cls: type[test.TestOp], parser: Parser) -> test.TestOp:
        parser.parse_str_literal()
        return cls()

    monkeypatch.setattr(test.TestOp, "print", print_differently)
    monkeypatch.setattr(test.TestOp, "parse", classmethod(parse))
    program = '// RUN: xdsl-opt %s | filecheck %s\n// CHECK: test.op\ntest.op "x"\n'
    (project.path / "filecheck" / "case.mlir").write_text(program)
    result = project.runpytest_inprocess("-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(["*print -> parse -> print changes the IR*"])
    assert result.parseoutcomes() == {"failed": 1}
