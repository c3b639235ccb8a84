"""Files of compiled networks: what is wrong with one that is damaged is said in a sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packages import Parts, parts_of, write_parts

import loopwright as lw
from loopwright.graph.runtime.on_llvm import ANY_MODEL
from loopwright.graph.runtime.package import PackageError

pytestmark = pytest.mark.filterwarnings("ignore::loopwright.graph.chosen_schedules.UntunedWarning")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a compiled network of four kernels, with constants."""
    net, random = lw.Network("small"), np.random.default_rng(0)
    x = net.input("data", (1, 4, 6, 6))
    y = net.relu(net.conv2d(x, random.standard_normal((8, 4, 3, 3), np.float32), padding=1))
    net.output(net.softmax(net.dense(net.flatten(net.global_avg_pool(y)), np.ones((5, 8), np.float32))))
    path = tmp_path_factory.mktemp("saved") / "small.lw"
    lw.compile(net, "llvm cores=1", processes=1).save(path)
    return path


def header(change: Callable[[dict[str, Any]], object]) -> Callable[[Parts], None]:
    """A change of the header, as one of the parts."""

    def apply(parts: Parts) -> None:
        found = json.loads(parts["network.json"])
        change(found)
        parts["network.json"] = json.dumps(found).encode()

    return apply


def put(name: str, data: bytes) -> Callable[[Parts], None]:
    return lambda parts: parts.update({name: data})


DAMAGE = [
    (lambda p: p.pop("network.json"), "is no compiled network: there is no network.json in it"),
    (put("network.json", b"{"), "is no compiled network: its network.json is no JSON: "),
    (put("network.json", b"[]"), "is no compiled network: its network.json holds no object"),
    (put("network.json", b"\xff"), "is no compiled network: its network.json is no JSON:"),
    (header(lambda h: h.update(format="other")), "format 'other' is not 'loopwright-network-5': compile it again"),
    (header(lambda h: h.pop("plan")), "is damaged: network.json has no field 'plan'"),
    (header(lambda h: h.pop("constants")), "is damaged: network.json has no field 'constants'"),
    (header(lambda h: h["kernels"].pop()), "is damaged: 3 kernels for a plan of 4"),
    (header(lambda h: h["plan"]["constants"].pop()), "is damaged: 2 constants for a plan of 1"),
    (header(lambda h: h["plan"]["kernels"][1].pop("flops")), "plan: kernel 1 has no field 'flops'"),
    (header(lambda h: h["plan"]["kernels"][0].update(x=1)), "plan: kernel 0 has an unknown field 'x'"),
    (header(lambda h: h["plan"]["steps"][2].update(kernel="a")), "step 2: kernel is 'a', not of type int"),
    (header(lambda h: h["plan"]["steps"][2].update(kernel=9)), "is damaged: step 2 calls kernel 9, there are 4"),
    (header(lambda h: h["plan"]["steps"][0]["places"][0].update(number=10**9)), "step 0 lies at arena 1000000000"),
    (header(lambda h: h["plan"]["inputs"][0].update(shape=[9999, 9, 9])), "is damaged: input 'data' lies at arena "),
    (header(lambda h: h["plan"]["inputs"][0].update(dtype="real")), "'data' has elements of an unknown type 'real'"),
    (header(lambda h: h["plan"].update(target="tpu x=1")), "is damaged: there is no target 'tpu x=1'"),
    (header(lambda h: h["constants"][0].__setitem__(1, ["a"])), "constant 0 1 0 is 'a', not of type int"),
    (header(lambda h: h["constants"].__setitem__(0, 3)), "network.json: constant 0 is 3, no list"),
    (put("constants/0", b"abc"), "is damaged: constants/0 has 3 bytes, "),
    (lambda p: p.pop("constants/0"), "is no compiled network: there is no constants/0 in it"),
    (lambda p: p.pop("kernels/2"), "is no compiled network: there is no kernels/2 in it"),
    (lambda p: p.update({"kernels/0": p["kernels/0"][:-100]}), "kernels/0 is not what was written"),
]


@pytest.mark.parametrize(("damage", "sentence"), DAMAGE, ids=[sentence for _, sentence in DAMAGE])
def test_what_is_wrong_with_a_damaged_file_is_said(saved: Path, tmp_path: Path, damage: Any, sentence: str) -> None:
    parts, path = parts_of(saved), tmp_path / "net.lw"
    damage(parts)
    with pytest.raises(PackageError) as refused:
        lw.load_network(write_parts(path, parts), trusted=True)
    text = str(refused.value)
    assert text.startswith(str(path)) and sentence in text and "\n" not in text


OF_THE_COMPILER = {
    *("dialects.caller", "dialects.classic_words", "dialects.errors"),  # sentences of warnings and errors
    *("dialects.counts", "dialects.cpu_models", "dialects.numpy_types"),
    *("dialects.markup", "dialects.shown_text"),  # results in notebooks
    *("dialects.cached_property", "dialects.pixel_walk"),
    *("dialects.index", "passes.open_number", "passes.analysis", "passes.analysis.layout", "passes.analysis.packing"),
}
"""Modules of the compiler that running a network loads: small ones, without xDSL; the last are about packings."""


def test_running_on_a_cpu_imports_no_compiler(saved: Path) -> None:
    program = f"""
import sys
import numpy as np
import loopwright as lw
lw.load_network({str(saved)!r}).executor()(np.zeros((1, 4, 6, 6), np.float32))
assert "xdsl" not in sys.modules
print(*(name for name in sys.modules if name.startswith(("loopwright.dialects.", "loopwright.passes."))))
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    loaded = {name.removeprefix("loopwright.") for name in done.stdout.split()}
    assert not loaded - OF_THE_COMPILER
    assert lw.Target().model == ANY_MODEL  # what `load` compares with, without the module that defines targets


def test_packed_constants_are_listed(saved: Path) -> None:
    package = lw.load_network(saved).package
    infos, arrays = package.plan.constants, package.constants
    assert len(infos) == len(arrays) == 2 and any(info.layout for info in infos)
    for info, array in zip(infos, arrays, strict=True):
        assert array.ndim == len(info.layout or info.shape) and array.size >= np.prod(info.shape)
    dense = next(info for info in infos if info.shape == (5, 8))
    assert str(dense).startswith("constant_1: float32[j=5, k=8] packed as [j") and dense.axes == ("j", "k")


def test_bytes_that_changed_in_a_file_are_found(saved: Path, tmp_path: Path) -> None:
    path, data = tmp_path / "net.lw", bytearray(saved.read_bytes())
    data[data.index(b"loopwright-llvm-") + 400] ^= 1
    path.write_bytes(data)
    with pytest.raises(PackageError, match="kernels/0 cannot be read: Bad CRC-32"):
        lw.load_network(path)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(PackageError, match="is no compiled network: File is not a zip file"):
        lw.load_network(path)
