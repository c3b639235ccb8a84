"""Sizes of caches as the system says them, shared or a core's own, and where it does not say."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from loopwright.backends import host_cache
from loopwright.backends.llvm.host import host_target


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    host_cache.cache_bytes.cache_clear()
    host_cache.cache_bytes_a_core.cache_clear()
    host_cache.cores_of_cache.cache_clear()


def pretend(monkeypatch: pytest.MonkeyPatch, folder: Path, caches: dict[str, tuple[str, str, str, str]]) -> None:
    """Have the system say level, type, size and CPUs of some caches; CPU 0 has hardware threads 0 and 4."""
    for name, values in caches.items():
        (folder / name).mkdir()
        for file, value in zip(("level", "type", "size", "shared_cpu_list"), values, strict=True):
            (folder / name / file).write_text(value + "\n")
    (folder / "threads").write_text("0,4\n")
    (folder / "online").write_text("0-31\n")
    monkeypatch.setattr(host_cache, "_CACHES", folder)
    monkeypatch.setattr(host_cache, "_THREADS", folder / "threads")
    monkeypatch.setattr(host_cache, "_ONLINE", folder / "online")
    host_cache.cache_bytes.cache_clear()
    host_cache.cache_bytes_a_core.cache_clear()
    host_cache.cores_of_cache.cache_clear()


def test_a_core_has_its_share_of_what_several_share(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    caches = {
        "index0": ("1", "Data", "48K", "0,4"),
        "index1": ("1", "Instruction", "64K", "0,4"),
        "index2": ("2", "Unified", "4096K", "0-3,4-7"),
        "index3": ("3", "Unified", "1G", "0-31"),
    }
    pretend(monkeypatch, tmp_path, caches)
    assert host_cache.cache_bytes_a_core(1) == host_cache.cache_bytes(1) == 48 << 10
    assert (host_cache.cache_bytes_a_core(2), host_cache.cache_bytes(2)) == (1 << 20, 4 << 20)
    assert host_cache.cache_bytes(3) == host_cache.host_cache_bytes() == 1 << 30
    target = host_target()
    assert (target.l1_bytes, target.l2_bytes, target.l3_bytes, target.l3_cores) == (48 << 10, 1 << 20, 1 << 30, 0)


def test_of_several_shared_caches_a_core_has_a_share_of_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, tmp_path, {"index3": ("3", "Unified", "32M", "0-7")})
    target = host_target(16)
    assert (target.l3_bytes, target.l3_cores) == (32 << 20, 8)
    assert "l3_cores=8" in str(target)
    assert [target.with_cores(n).l3_bytes_a_core >> 20 for n in (1, 4, 8, 16)] == [32, 8, 4, 4]


def test_without_what_the_kernel_says_a_target_has_sizes_still(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, tmp_path, {})
    target = host_target()
    assert target.l1_bytes >= 4096 and target.l2_bytes >= target.l1_bytes and target.l3_bytes == 0
    assert host_cache.host_cache_bytes() > 1 << 20


def test_sizes_that_are_none_are_not_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch, tmp_path, {"index0": ("3", "Unified", "unknown", "0")})
    assert host_cache.cache_bytes(3) == 0
