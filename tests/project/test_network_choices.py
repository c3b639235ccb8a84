"""The check of networks' schedules: it says what kernels are, how they are computed, and what is in the wrong way."""

import sys
from pathlib import Path

import network_choices
import pytest
from network_choices import TARGETS, Choice, choices, differences, misplaced, rows, way_of

import loopwright as lw


def test_kernels_of_a_network_are_counted_by_kind_and_way() -> None:
    net = lw.Network()
    image, weight, up = (
        net.input(n, shape) for n, shape in (("x", (1, 8, 8, 8)), ("w", (8, 8, 1, 1)), ("u", (8, 4, 4, 4)))
    )
    made = net.conv2d(image, weight)
    net.output(net.conv2d_transpose(made, up, stride=2, padding=1))
    found = list(choices("small", net, "llvm cores=1 vector_bytes=32"))
    assert rows(found) == [
        "| small | llvm | product | tiles | 1 |",
        "| small | llvm | transposed convolution | col2im | 1 |",
    ]
    assert misplaced(found) == []


def test_a_way_for_another_kind_is_named() -> None:
    schedule = 'lw-lower-te-to-loop,lw-collapse{block="T_dense"},lw-col2im{block="T_dense"}'
    product = Choice(network="n", target="cuda model=h200", task="t", kind="product", way="", schedule=schedule)
    product["way"] = way_of(schedule)
    assert way_of("lw-lower-te-to-loop,lw-split") == "tiles" and product["way"] == "col2im, collapse"
    assert misplaced([product]) == ["wrong: n on cuda model=h200: a product (t) by col2im"]
    before = ["| n | cuda | product | tiles | 1 |", "| m | cuda | product | tiles | 1 |"]
    assert differences(rows([product]), before) == [
        "gone: | n | cuda | product | tiles | 1 |",
        "new:  | n | cuda | product | col2im, collapse | 1 |",
    ]


@pytest.mark.parametrize(
    "options", [["lstm"], ["--targets", "llvm cores=2"], []], ids=["some networks", "other targets", "no torch"]
)
def test_a_table_of_less_is_not_written(
    options: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(network_choices, "TABLE", tmp_path / "table.md")
    monkeypatch.setattr(network_choices, "_has_torch", lambda: False)
    monkeypatch.setattr(sys, "argv", ["network_choices.py", "--write", *options])
    with pytest.raises(SystemExit, match="2"):
        network_choices.main()
    assert "--write takes" in capsys.readouterr().err and not network_choices.TABLE.exists()


def test_kernels_for_other_targets_are_not_held_to_the_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(network_choices, "TABLE", tmp_path / "table.md")
    network_choices.TABLE.write_text(network_choices._page([choice(TARGETS[0], "lw-collapse")]))
    monkeypatch.setattr(network_choices, "_network", lambda name: None)
    monkeypatch.setattr(network_choices, "choices", lambda name, net, target: [choice(target, "lw-split")])
    for targets, code in ((["cuda model=a100"], 0), ([TARGETS[0]], 1)):
        monkeypatch.setattr(sys, "argv", ["network_choices.py", "n", "--targets", *targets])
        with pytest.raises(SystemExit, match=str(code)):
            network_choices.main()
    assert capsys.readouterr().out.splitlines() == [
        "as in the table",
        "gone: | n | cuda | product | collapse | 1 |",
        "new:  | n | cuda | product | tiles | 1 |",
    ]


def choice(target: str, schedule: str) -> Choice:
    way = way_of(schedule)
    return Choice(network="n", target=target, task="t", kind="product", way=way, schedule=schedule)
