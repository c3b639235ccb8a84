"""Wrong calls, one a line: each is one clear sentence, with nothing written and nothing lost. First guesses work."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wrong_expressions
import wrong_networks
import wrong_records
import wrong_schedules
import wrong_searches

import loopwright as lw
from loopwright import te, topi

T = "llvm cores=1"

TABLES = (wrong_searches, wrong_records, wrong_schedules, wrong_expressions, wrong_networks)
CALLS = [call for table in TABLES for call in table.CALLS]


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
    for factors in ([None, 4], [None, np.int64(4)], [None, np.array(4)], np.array([128, 4])):
        assert lw.Schedule(c).split(c, "i", factors) == ["i0", "i1"]
    assert topi.sum(a, np.int64(1)).shape == topi.sum(a, 1).shape  # type: ignore[arg-type]
    assert topi.nn.softmax(a, np.array(-1)).shape == a.shape  # type: ignore[arg-type]
    for kernel in (lw.build(c, T), lw.build([a, b, c], T)):
        np.testing.assert_allclose(kernel(x + 1, x + 1), 8.0)
    assert lw.extract_tasks("relu.onnx", T) == ([], [])
    ones = -np.ones((1, 4), np.float32)
    for out in (built["compiled"](ones), built["compiled"](x=ones)):
        np.testing.assert_array_equal(out, 0.0)
    net = lw.Network("n")
    net.output(net.input("x", (2, 3)) @ np.ones((3, 4), np.float32))
    np.testing.assert_array_equal(lw.compile(net, T)(np.ones((2, 3), np.float32)), np.full((2, 4), 3.0))
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
