"""Headers of compiled networks that were made up: refused in a sentence, or harmless; and archives that are traps."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from package_trials import BATCH, try_batch
from packages import Header, Parts, memory_violation, parts_of, small_network, with_header, write_parts
from trust.packages import run as run_section

import loopwright as lw
from loopwright.graph.runtime.package import PackageError
from loopwright.graph.runtime.reading import load_package

pytestmark = pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "small.lw"
    lw.compile(small_network(), "llvm cores=1", processes=1).save(path)
    return path


@pytest.fixture(scope="module")
def parts(saved: Path) -> Parts:
    return parts_of(saved)


def refusal(path: Path, trusted: bool = True) -> str:
    """The sentence with which a file is refused."""
    with pytest.raises(PackageError) as refused:
        load_package(path, trusted=trusted)
    text = str(refused.value)
    assert text.startswith(str(path)) and "\n" not in text and len(text) < len(str(path)) + 400
    return text.removeprefix(str(path))


def steps(header: Header) -> Any:
    return header["plan"]["steps"]


def arena(number: int) -> dict[str, Any]:
    return {"kind": "arena", "number": number}


def over_constant(header: Header) -> None:
    steps(header)[0]["places"][-1] = {"kind": "constant", "number": 0}


def workspace_over_input(header: Header) -> None:
    """A workspace where an input of the network lies that this step does not read."""
    steps(header)[-1]["workspaces"][0] = header["plan"]["inputs"][1]["place"]


def workspace_over_operand(header: Header) -> None:
    steps(header)[-1]["workspaces"][0] = steps(header)[-1]["places"][0]


def output_over_needed(header: Header) -> None:
    """A step writes over what is an output of the network."""
    steps(header)[-2]["places"][1] = steps(header)[-1]["places"][0] = header["plan"]["outputs"][1]["place"]


def swapped(header: Header) -> None:
    """The last step first: it reads what nobody has written."""
    steps(header).insert(0, steps(header).pop())


def other_kernel(header: Header) -> None:
    """A kernel for larger tensors that takes as many."""
    steps(header)[-1]["kernel"] = steps(header)[1]["kernel"]


def kernel_of_more(header: Header) -> None:
    steps(header)[-1]["kernel"] = steps(header)[2]["kernel"]


def output_on_input(header: Header) -> None:
    steps(header)[-1]["places"][-1] = steps(header)[-1]["places"][0]


def set_input(header: Header, **values: Any) -> None:
    header["plan"]["inputs"][0].update(values)


def part_beyond(header: Header) -> None:
    """A part that ends behind the tensor that it is of."""
    place = steps(header)[0]["places"][0]
    place.update(kind="part", number=place["number"] + 256)


CRAFTED: list[tuple[Callable[[Header], object], str]] = [
    (over_constant, "step 0 would write to 'constant' 0, which is not in the arena"),
    (lambda h: set_input(h, place={"kind": "constant", "number": 0}), "input 'data' would write to 'constant' 0"),
    (workspace_over_input, "step 5 would write over an input of the network"),
    (workspace_over_operand, "which it also reads or writes otherwise"),
    (output_over_needed, "output 'features' reads 288 x float32 at arena "),
    (swapped, "step 0 reads 5 x float32 at arena "),
    (other_kernel, "step 5 reads 288 x float32 at arena "),
    (kernel_of_more, "step 5 passes 2 tensors and 1 workspaces to a kernel that takes 3 and 1"),
    (output_on_input, "which it also reads or writes otherwise"),
    (lambda h: set_input(h, dtype="object"), "'data' has elements of an unknown type 'object'"),
    (lambda h: set_input(h, dtype="V8"), "'data' has elements of an unknown type 'V8'"),
    (lambda h: set_input(h, dtype="int32"), "step 0 reads 144 x float32 at arena "),
    (lambda h: set_input(h, shape=[1 << 40]), "'data' lies at arena "),
    (lambda h: set_input(h, shape=[1 << 40] * 6), "'data' has the shape ("),
    (lambda h: set_input(h, shape=[-1, -144]), "'data' has the shape (-1, -144)"),
    (lambda h: set_input(h, shape=[1] * 70), "'data' has the shape (1, 1,"),
    (lambda h: set_input(h, name="other"), "two of its inputs, or two of its outputs, are called 'other'"),
    (lambda h: h["plan"]["outputs"][0].update(name="a\nb", dtype="object"), "'a\\nb' has elements of an unknown type"),
    (lambda h: h["plan"].update(arena_bytes=1 << 50), "its arena has 1125899906842624 bytes, "),
    (lambda h: h["plan"].update(arena_bytes=0), "lies at arena "),
    (lambda h: h["plan"].update(arena_bytes=1 << 80), "plan: arena_bytes is 1208925819614629174706176, too large"),
    (lambda h: h["plan"].update(arena_bytes=True), "plan: arena_bytes is True, not of type int"),
    (lambda h: h["plan"].update(arena_bytes=1e3), "plan: arena_bytes is 1000.0, not of type int"),
    (lambda h: h["plan"].update(tensor_bytes=-1), "a number of bytes or operations is -1"),
    (lambda h: h["plan"].update(target="llvm\x1b[31m"), "there is no target 'llvm\\x1b[31m'"),
    (lambda h: h["plan"].update(target="llvm model"), "there is no target 'llvm model'"),
    (lambda h: h["plan"].update(target="opencl"), "kernels/0: this is no GPU kernel artifact of this version"),
    (lambda h: h["plan"].update(versions={"a": 1}), "plan: versions: 'a' is 1, not of type str"),
    (lambda h: steps(h)[0]["places"].pop(), "step 0 passes "),
    (lambda h: steps(h)[0]["workspaces"].clear(), "step 0 passes "),
    (lambda h: steps(h)[0]["places"].__setitem__(0, arena(-256)), "step 0 lies at arena -256, where "),
    (lambda h: steps(h)[0]["places"].__setitem__(-1, arena(1)), "step 0 lies at arena 1, where "),
    (lambda h: steps(h)[0]["places"].__setitem__(0, {"kind": "heap", "number": 0}), "step 0 reads 'heap' 0"),
    (lambda h: steps(h)[0]["places"][0].update(kind="part", number=1 << 20), "step 0 lies at arena 1048576, where "),
    (part_beyond, "step 0 reads 144 x float32 at part "),
    (lambda h: h["plan"]["outputs"][0]["place"].update(kind="part"), "output 'prob' is a part of a tensor"),
    (lambda h: steps(h)[0].update(kernel=-1), "step 0 calls kernel -1, there are "),
    (lambda h: h["plan"].update(branches=[[0, 1, 3]]), "branches 0 and 1 would write to the same bytes at once"),
    (lambda h: h["plan"].update(branches=[[2, 1]]), "steps (2, 1) are no branches of "),
    (lambda h: h["plan"].update(branches=[[0, 1], [0, 2]]), "steps (0, 2) are no branches of "),
    (lambda h: h["plan"].update(branches=[[0, 99]]), "steps (0, 99) are no branches of "),
    (lambda h: steps(h).clear(), "output 'prob' reads 5 x float32 at arena "),
    (lambda h: h["plan"]["outputs"][2]["place"].update(number=99), "output 'fixed' reads 'constant' 99, which there"),
    (lambda h: h["plan"]["outputs"][2].update(shape=[7]), "output 'fixed' reads 7 x float32 at constant "),
    (lambda h: h["constants"][0].__setitem__(0, "object"), "constants/0 has elements of an unknown type 'object'"),
    (lambda h: h["constants"][0].__setitem__(1, [1 << 60]), "constants/0 has the shape "),
    (lambda h: h["constants"][0].__setitem__(1, [3]), "bytes, 3 x float32 takes 12"),
    (lambda h: h["plan"]["constants"][0].update(axes=["i"]), "constant 0 has 1 axes for the shape "),
    (lambda h: h["plan"]["constants"][0].update(dtype="int32"), "constant 0 is described as "),
]


@pytest.mark.parametrize(("change", "sentence"), CRAFTED, ids=[sentence for _, sentence in CRAFTED])
def test_a_crafted_header_is_refused(parts: Parts, tmp_path: Path, change: Any, sentence: str) -> None:
    text = refusal(write_parts(tmp_path / "net.lw", with_header(parts, change)))
    assert text.startswith(" is damaged: ") and sentence in text


@pytest.mark.parametrize(("kind", "batches"), [("headers", 16), ("kernels", 8), ("bytes", 12), ("caches", 8)])
@pytest.mark.few(1)
def test_random_damage_is_refused_or_harmless(kind: str, batches: int) -> None:
    """Refused in a sentence, or it keeps to its arrays all the same; both happen. `make trust` tries thousands."""
    done = [try_batch(kind, seed) for seed in range(batches)]
    assert not [fault for each in done for fault in each.faults]
    assert 0.4 * batches * BATCH < sum(each.refused for each in done) <= sum(each.tried for each in done)
    assert sum(each.tried for each in done) == batches * BATCH
    assert kind == "caches" or sum(each.refused for each in done) < batches * BATCH


@pytest.mark.slow(1.2)
def test_the_long_run_counts_all_of_it() -> None:
    rows = list(run_section(0.01, 0, 1))
    assert [row.tried for row in rows] == [25, 25, 50, 25] and all(row.holds for row in rows)


def test_the_oracle_sees_what_it_is_for(saved: Path) -> None:
    package = load_package(saved)
    assert memory_violation(package) is None
    plan = package.plan
    first, last = plan.steps[0], plan.steps[-1]
    for step, number, what in (
        (
            replace(first, places=(*first.places[:-1], replace(first.places[0], kind="constant"))),
            0,
            "writes to a const",
        ),
        (replace(last, places=(last.places[0], last.places[0])), -1, "writes where it reads"),
        (replace(last, places=(first.places[-1], last.places[1])), -1, "reads what nobody wrote"),
    ):
        changed = list(plan.steps)
        changed[number] = step
        found = memory_violation(replace(package, plan=replace(plan, steps=tuple(changed))))
        assert found is not None and what in found


def zipped(parts: Parts, method: int = zipfile.ZIP_STORED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as file:
        for name, data in parts.items():
            file.writestr(name, data)
    return made.getvalue()


def test_archives_that_grow_are_refused_unread(parts: Parts, tmp_path: Path) -> None:
    path = tmp_path / "net.lw"
    bomb = zipped({**parts, "constants/0": bytes(50 << 20)}, zipfile.ZIP_DEFLATED)
    path.write_bytes(bomb)
    assert refusal(path) == " is damaged: 'network.json' is compressed or encrypted" and len(bomb) < 1 << 20
    path.write_bytes(_many_names_for_one_part(zipped(parts)))
    assert "is damaged: its parts are larger than its " in refusal(path)
    path.write_bytes(_with_size(zipped(parts), "constants/0", 1 << 31))
    assert "is damaged: its parts are larger than its " in refusal(path)


def _many_names_for_one_part(data: bytes) -> bytes:
    """An archive whose directory lists its largest member a thousand times, under names of its own."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        start = file.start_dir
        largest = max(file.infolist(), key=lambda info: info.file_size)
    at = data.index(b"PK\1\2", start)
    entries, count = bytearray(data[start : data.index(b"PK\5\6", start)]), 1000
    while data[at + 46 : at + 46 + len(largest.filename)] != largest.filename.encode():
        at = data.index(b"PK\1\2", at + 4)
    entry = data[at : at + 46 + len(largest.filename)]
    for number in range(count):
        name = f"x{number:04}".encode()
        entries += entry[:28] + struct.pack("<H", len(name)) + bytes(4) + entry[34:46] + name
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        total = len(file.infolist()) + count
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, total, total, len(entries), start, 0)
    return data[:start] + bytes(entries) + end


def _with_size(data: bytes, name: str, size: int) -> bytes:
    """An archive whose directory gives a member another size."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        at = data.index(b"PK\1\2", file.start_dir)
    while data[at + 46 : at + 46 + len(name)] != name.encode():
        at = data.index(b"PK\1\2", at + 4)
    return data[: at + 20] + struct.pack("<2L", size, size) + data[at + 28 :]


def test_parts_are_those_of_the_plan_and_no_others(parts: Parts, tmp_path: Path) -> None:
    path = tmp_path / "net.lw"
    for name in ("kernels/00", "kernels/99", "../evil", "/etc/passwd", "constants/0/x", "Network.json"):
        write_parts(path, {**parts, name: b""})
        assert refusal(path) == f" is damaged: {name!r} is no part of a compiled network"
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "w") as file:
        for name, data in [*parts.items(), ("kernels/0", b"another")]:
            file.writestr(name, data)
    assert refusal(path) == " is damaged: 'kernels/0' is in it twice"


def test_headers_that_would_take_a_reader_down(parts: Parts, tmp_path: Path) -> None:
    path = tmp_path / "net.lw"
    for text in (b"[" * 200_000, b'{"a":' * 200_000, b"1" * 20_000, b'{"format": ' + b"9" * 5000 + b"}", b"\xff\xfe"):
        write_parts(path, {**parts, "network.json": text})
        assert " is no compiled network: its network.json is no JSON: " in refusal(path)
    write_parts(path, {**parts, "network.json": parts["network.json"] + b" " * (64 << 20)})
    assert "bytes, 67108864 are allowed" in refusal(path)


def test_files_cut_anywhere_are_refused(saved: Path, tmp_path: Path) -> None:
    data, path, rng = saved.read_bytes(), tmp_path / "net.lw", np.random.default_rng(0)
    for length in (0, 1, 21, *rng.integers(22, len(data), 40), len(data) - 1):
        path.write_bytes(data[:length])
        assert refusal(path, trusted=False).startswith((" is no compiled network: ", " is damaged: "))
