"""Copies of what runs: kernels and networks are their own copies, and pickle refuses all of them in a sentence."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright import te, topi


def network() -> lw.CompiledNetwork:
    net = lw.Network("net")
    net.output(net.relu(net.input("x", (4, 4))))
    return lw.compile(net, "llvm cores=1", processes=1)


def kernel() -> lw.Kernel:
    x = te.placeholder((4, 4), name="x")
    return lw.build([x, topi.nn.relu(x)], "llvm cores=1")


def test_kernels_and_networks_are_their_own_copies(tmp_path: Path) -> None:
    compiled, ones = network(), -np.ones((4, 4), np.float32)
    compiled.save(tmp_path / "net.lw")
    for made in (kernel(), compiled, lw.load_network(tmp_path / "net.lw")):
        assert copy.copy(made) is copy.deepcopy(made) is copy.deepcopy({"of a model": [made]})["of a model"][0] is made
        np.testing.assert_array_equal(made(ones), 0)


def test_what_runs_is_not_pickled() -> None:
    compiled = network()
    for made, refused in ((kernel(), "pickled"), (compiled, "pickled"), (compiled.executor(), "pickled or copied")):
        why = f"runs code that this process has loaded, and cannot be {refused}: save and load what it was made from"
        with pytest.raises(TypeError, match=why):
            pickle.dumps(made)
    with pytest.raises(TypeError, match="cannot be pickled or copied: save and load what it was made from"):
        copy.deepcopy(compiled.executor())
