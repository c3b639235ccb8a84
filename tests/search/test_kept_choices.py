"""Untuned choices on disk: one is made once for a workload, a target and the code; damage costs a choice, no build."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.search.kept_choices import kept_choice
from loopwright.search.sketch.draft import Draft
from loopwright.search.sketch.rule import SketchRule, register_sketch_rule
from loopwright.search.task import SearchTask
from loopwright.storage.binary_cache import CacheWarning


def rows(target: str = "llvm cores=1", extent: int = 24) -> SearchTask:
    a = te.placeholder((extent, 40), name="a")
    k = te.reduce_axis((0, 40))
    return lw.SearchTask([a, te.compute((extent,), lambda i: te.sum(a[i, k], axis=k), name="total")], target=target)


def kept(cache: Path) -> list[Path]:
    return sorted((cache / "kernels").rglob("*.bin"))


def never(*_: object) -> str:
    raise AssertionError("chosen anew")


def test_a_build_takes_the_choice_that_an_earlier_one_kept(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = rows().known_schedule()
    assert first == rows().default_schedule and len(kept(own_cache)) == 1
    monkeypatch.setattr(SearchTask, "default_schedule", property(never))
    task = rows()
    assert task.known_schedule() == first
    data = np.random.default_rng(0).random((24, 40), dtype=np.float32)
    np.testing.assert_allclose(task.build()(data), data.sum(axis=1), rtol=1e-5)
    with pytest.raises(AssertionError, match="chosen anew"):
        rows(extent=25).known_schedule()
    with pytest.raises(AssertionError, match="chosen anew"):
        rows("llvm cores=2").known_schedule()


@pytest.mark.parametrize("damage", [b"", b"something else", b"loopwright-cache-1\n" + b"0" * 90])
def test_a_damaged_choice_is_made_again(own_cache: Path, damage: bytes) -> None:
    first = rows().known_schedule()
    (file,) = kept(own_cache)
    file.write_bytes(damage)
    with pytest.warns(CacheWarning, match="damaged"):
        assert rows().known_schedule() == first
    assert kept(own_cache) == [file] and file.read_bytes() != damage
    assert rows().known_schedule() == first


def test_choices_by_other_rules_are_not_kept(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Nothing(SketchRule):
        def apply(self, draft: Draft, target: lw.Target) -> list[Draft]:
            return [draft]

    monkeypatch.setattr("loopwright.search.sketch.foreign_rules._REGISTERED", {})
    register_sketch_rule(Nothing)
    assert rows().known_schedule() == rows().default_schedule
    assert lw.SearchTask(rows().module, rules=[Nothing]).known_schedule()
    assert not kept(own_cache)


def test_choices_are_kept_by_many_at_once(own_cache: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = [*threads.map(lambda n: kept_choice("workload", lambda: f"schedule {n}"), range(64))]
    assert len(kept(own_cache)) == 1
    assert kept_choice("workload", never) in found
