"""The command that makes pre-tuned sets."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from commands import call
from onnx_models import small_network

import loopwright as lw
from loopwright.backends.targets import resolve_target
from loopwright.search.records import file as rec
from loopwright.search.records import pretuned

TARGET = "llvm model=x86-64 cores=1"
pytestmark = pytest.mark.usefixtures("quick_measuring")

ARGV = ["pretuned", "mlp", "--target", TARGET, "--trials", "2", "--min-repeat-ms", "1", "--repeat", "1"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pretuned, "FOLDER", tmp_path / "package")
    pretuned.index.cache_clear()
    yield tmp_path
    pretuned.index.cache_clear()


@pytest.mark.slow(1.2)
def test_a_set_is_made_found_and_gone_on_with() -> None:
    code, out, err = call(*ARGV, "--json", "--note", "The machine was busy.")
    assert code == 0, err
    report = json.loads(out)
    path = Path(report["set"])
    assert path.parent.name == "package" and path.name == "x86_64.jsonl"
    records = rec.load(path)
    templates = [r for r in records if r.template]
    assert len(records) == report["records"]
    assert len({r.template["name"] for r in templates}) == 1
    assert len(templates) >= 3  # of one template, for three kernels
    assert all(r.target == str(resolve_target(TARGET)) and r.ok for r in records)
    described = path.with_suffix(".md").read_text()
    assert described.startswith("# Pre-tuned records for `llvm model=x86-64`\n")
    assert f"measured on {records[0].device}, as `{resolve_target(TARGET)}`;" in described
    assert described.endswith(
        f"- {len(records)} records, {len(templates)} of them of templates\n- The machine was busy.\n"
    )

    # Whoever has the model and as many threads finds them.
    compiled = {n: lw.compile(lw.testing.mlp(), f"llvm model=x86-64 cores={n}", processes=1) for n in (1, 2)}
    assert all(kernel.tuned for kernel in compiled[1].kernels)
    assert not any(kernel.tuned for kernel in compiled[2].kernels)

    trials = sum(len(rec.load(file)) for file in Path("x86_64.trials").glob("*.jsonl"))
    code, out, err = call(*ARGV, "--json")
    assert code == 0 and sum(len(rec.load(file)) for file in Path("x86_64.trials").glob("*.jsonl")) == trials


@pytest.mark.slow(1.2)
def test_templates_of_a_type_in_a_folder_of_ones_own() -> None:
    more = ["--search", "templates", "--dtype", "float16", "--name", "half", "--folder", "sets", "--records", "kept"]
    code, out, err = call(*ARGV, *more)
    assert code == 0, err
    assert "mlp: 3 templates to search, records: kept/mlp-templates.jsonl" in out and "sketches" not in out
    made = re.search(r"^sets/half.jsonl: (\d+) records, (\d+) of them of templates; sets/half.md says", out, re.M)
    assert made is not None and made[1] == made[2] and len(rec.load("sets/half.jsonl")) == int(made[1]) >= 3
    assert "float16: up to 2 trials a kernel of templates" in Path("sets/half.md").read_text()
    assert not pretuned.files()


@pytest.mark.slow(1.2)
def test_convolutions_by_winograd_are_in_a_set_on_request(tmp_path: Path) -> None:
    onnx.save(small_network(), str(tmp_path / "net.onnx"))
    argv = ["pretuned", str(tmp_path / "net.onnx"), *ARGV[2:], "--search", "sketches", "--name", "net"]
    for flags, words in (([], False), (["--winograd"], True)):
        code, _, err = call(*argv, *flags)
        assert code == 0, err
        of = {record.workload_key for record in rec.load(pretuned.FOLDER / "net.jsonl")}
        assert any("winograd" in key for key in of) == words
        described = (pretuned.FOLDER / "net.md").read_text()
        assert ("of sketches, convolutions by Winograd's transforms too\n" in described) == words


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["pretuned", "lenet"], "there is no network 'lenet': give a .onnx file or one of resnet-18,"),
        (["pretuned", "mlp", "--target", "llvm model=pentium5"], "no CPU 'pentium5' is known"),
        (["pretuned", "mlp", "--trials", "0"], "--trials: must be a whole number of at least 1, got '0'"),
    ],
)
def test_bad_input_is_exit_code_2(argv: list[str], sentence: str) -> None:
    code, out, err = call(*argv)
    assert (code, out) == (2, "") and sentence in err
