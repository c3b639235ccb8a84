"""Trials on record that a search goes on from, and what it says of trials."""

from dataclasses import replace

from loopwright.search.records.file import ErrorCode, Record, Role
from loopwright.search.tune.options import TuningOptions, TuningTask
from loopwright.search.tune.progress import TuningState, trials_of
from loopwright.search.tune.resuming import resumed_from
from loopwright.search.tune.sentences import all_failed, interrupted, none_is_new, trial_line

TASK = TuningTask("matmul", "key", "workload", "llvm", [], "default", [], [], [], workload_hash="hash")
HERE = "CPU of this machine"


def trial(schedule: str, time_s: float, role: Role = Role.TRIAL) -> Record:
    return Record("key", "hash", "llvm", "tiled", (1, 2), schedule, times_s=(time_s,), device=HERE, role=role)


FAILED = replace(trial("wrong", 1.0), times_s=(), error=ErrorCode.WRONG_RESULT, message="2 of 4 differ\nthe first: 1")


def test_trials_of_a_task_on_a_device_are_gone_on_with() -> None:
    first, second = trial("a", 2e-3), trial("b", 1e-3)
    elsewhere = replace(trial("c", 1e-3), device="another CPU")
    other_target = replace(trial("d", 1e-3), target="opencl")
    other_workload = replace(trial("e", 1e-3), workload_hash="other")
    of_template = replace(trial("f", 3e-3), template={"config": "tile=4"})
    loaded = [first, elsewhere, other_target, other_workload, of_template, second, trial("a", 2e-3, Role.FINAL)]
    found = resumed_from(loaded, TASK, HERE)
    assert found.trials == [first, second]
    assert found.left_out == ["measured on another device: another CPU", "of another target: opencl"]
    assert found.last_winner is None


def test_the_winner_of_a_run_off_is_known_with_the_trials_before_it() -> None:
    winner = trial("b", 1.1e-3, Role.WINNER)
    loaded = [trial("a", 2e-3), trial("b", 1e-3), trial("a", 2e-3, Role.FINAL), winner]
    found = resumed_from(loaded, TASK, HERE)
    assert (found.last_winner, found.known_to_winner, len(found.trials)) == (winner, 2, 2)
    slower = resumed_from([*loaded, trial("c", 3e-3)], TASK, HERE)
    assert (slower.last_winner, slower.known_to_winner, len(slower.trials)) == (winner, 2, 3)
    faster = resumed_from([*loaded, trial("c", 0.5e-3)], TASK, HERE)
    assert (faster.last_winner, faster.known_to_winner, len(faster.trials)) == (None, 2, 3)
    assert resumed_from([FAILED], TASK, HERE).last_winner is None


def test_a_trial_is_a_line() -> None:
    state = TuningState("matmul", 8, 0.0)
    for record in (trial("a", 2e-3), FAILED):
        state.count(record, False)
    assert trial_line(state, trial("a", 2e-3)) == "trial 2/8: 2 ms; best 2 ms; tiled [1, 2]"
    assert trial_line(state, FAILED) == "trial 2/8: WRONG_RESULT: 2 of 4 differ; best 2 ms; tiled [1, 2]"
    assert trial_line(state, replace(FAILED, template={"config": "tile=4"})).endswith("; tile=4")


def test_the_first_error_is_shown_whole() -> None:
    state = TuningState("matmul", 8, 0.0)
    assert all_failed(TASK, state, []) == "no trial of matmul was measured"
    state.count(FAILED, False)
    said = all_failed(TASK, state, [FAILED])
    assert said.startswith("all 1 trials of matmul failed: ")
    assert said.endswith("with schedule\n  wrong\nis\n2 of 4 differ\nthe first: 1")


def test_an_interruption_says_what_is_kept() -> None:
    assert interrupted(0, "r.jsonl") == "interrupted before the first trial"
    assert interrupted(1, "r.jsonl") == "interrupted after 1 trial; it is kept in r.jsonl"
    assert interrupted(8, None) == "interrupted after 8 trials"


def test_what_is_on_record_is_counted() -> None:
    assert trials_of(8, 0) == "8 trials"
    assert trials_of(8, 4) == "8 trials, 4 of them from the records"
    assert trials_of(1, 3) == "1 trial, 1 of them from the records"
    said = none_is_new(1, 3, TuningOptions(num_measure_trials=1))
    assert said.startswith("1 trial asked for in all, and the records hold 3: none is new; ")
