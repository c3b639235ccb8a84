"""A few of the faults that the long run goes through: the rows hold, and count what was tried."""

from pathlib import Path

import pytest
from trust import faults


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "_TRIALS_A_KILL", 8)


@pytest.mark.parametrize(
    ("disturb", "kind", "times"),
    [("_kill_main", "scheduler", 1), ("_kill_workers", "task", 2), ("_hostile", "scheduler", 2)],
)
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_a_disturbed_run_loses_nothing_and_leaves_nothing(disturb: str, kind: str, times: int) -> None:
    row = faults._row(disturb, kind, getattr(faults, disturb), times, 0)
    assert row.holds, row.examples
    assert row.tried >= times


@pytest.mark.slow(1.2)
def test_lost_records_and_what_is_left_would_be_seen(tmp_path: Path) -> None:
    tally = faults.Tally()
    campaign = faults.Campaign(tmp_path, "task", tally)
    run = campaign.start(4)
    assert run.wait() == 0
    campaign.check(run)
    campaign.check_folder()
    assert tally.bad and not any(tally.bad.values()), tally.examples
    lines = campaign.records.read_text().splitlines(keepends=True)
    campaign.records.write_text("".join([*lines[1:], lines[1], lines[2][:40]]))
    (campaign.temporary / "left").touch()
    campaign.check(run)
    campaign.check_folder()
    seen = {what for what, count in tally.bad.items() if count}
    assert seen == {"lost records", "repeated trials", "unreadable lines", "folders left"}
