"""A share of the long run's repeated calls: nothing stays behind but what is made once."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def growth(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from trust import growth

    yield growth
    sys.modules.pop("trust.growth", None)


@pytest.mark.slow
def test_repeated_calls_leave_nothing_behind(growth: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "TUNINGS", 4)
    monkeypatch.setattr(growth, "BUILDS", 20)
    rows = list(growth.run(1.0, 0, 1))
    assert [row.tried for row in rows] == [4, 20]
    for row in rows:
        left = {name: row.bad[name] for name in ("descriptors left", "threads left", "children left")}
        assert not any(left.values()), row.examples
    assert not rows[1].bad["growing maps"], rows[1].examples  # four tunings are too few to tell


def test_what_grows_is_found(growth: Any) -> None:
    """Descriptors, threads and memory that stay are seen for what they are."""
    first = growth.Usage(descriptors=5, threads=2, children=0, maps=100, rss_bytes=100 << 20)
    steady = [(n, first) for n in range(10)]
    assert growth._row("steady", 10, steady, 1.0).holds
    for name, more in (("descriptors", 1), ("threads", 1), ("maps", 10), ("rss_bytes", 1 << 20)):
        grown = [(n, growth.replace(first, **{name: getattr(first, name) + n * more})) for n in range(10)]
        assert not growth._row("growing", 10, grown, 1.0).holds, name
    assert not growth._row("left", 10, [(n, growth.replace(first, children=1)) for n in range(10)], 1.0).holds
    jump = [(n, growth.replace(first, rss_bytes=(100 + 4 * (n > 7)) << 20)) for n in range(10)]
    assert growth._row("one jump", 10, jump, 1.0).holds


@pytest.mark.slow(1.2)
def test_this_process_is_seen_as_it_is(growth: Any) -> None:
    before = growth.Usage.now()
    with open("/dev/null"):
        assert growth.Usage.now().descriptors == before.descriptors + 1
    assert growth.Usage.now().descriptors == before.descriptors and before.rss_bytes > 1 << 20
