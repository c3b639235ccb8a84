"""Compiling a network beside a large heap: the collector looks at new objects, and gets the old ones back."""

import gc

import pytest

import loopwright as lw
from loopwright.graph import compiler
from loopwright.passes.collector import old_objects_spared


def network() -> lw.Network:
    net = lw.Network("small")
    net.output(net.relu(net.input("x", (4, 8))))
    return net


def test_old_objects_are_spared_while_a_network_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    spared: list[int] = []
    known = compiler.group_tasks

    def watched(*given: object) -> object:
        spared.append(gc.get_freeze_count())
        return known(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(compiler, "group_tasks", watched)
    gc.unfreeze()
    lw.compile(network(), "llvm cores=1", processes=1)
    assert spared[0] > 0
    assert gc.get_freeze_count() == 0


def test_objects_that_somebody_else_set_apart_stay_apart() -> None:
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        lw.compile(network(), "llvm cores=1", processes=1)
        assert 0 < gc.get_freeze_count() <= before
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("on", [False, True])
def test_an_error_gives_old_objects_back_and_what_is_off_stays_off(on: bool) -> None:
    was_on = gc.isenabled()
    (gc.enable if on else gc.disable)()
    try:
        with pytest.raises(KeyError), old_objects_spared(), old_objects_spared():
            assert gc.get_freeze_count() > 0
            raise KeyError
        assert gc.get_freeze_count() == 0 and gc.isenabled() is on
    finally:
        (gc.enable if was_on else gc.disable)()
