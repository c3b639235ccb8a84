"""Records that come with the package: each is of a kernel that this version has, and is what that kernel takes."""

import loopwright as lw
from loopwright.dialects.target import parse_target
from loopwright.search.records import pretuned
from loopwright.search.records.match import why_not
from loopwright.search.records.rebuilt import task_of_key
from loopwright.search.task import SearchTask

PRESET = "cuda model=h200"
NETWORKS = ("mobilenet", "resnet-18", "resnet-50")
"""Those that the records that come with the package were made of, batch 1, channels last."""


def test_each_record_is_of_a_kernel_of_this_version() -> None:
    records = pretuned.index().records
    kernels: dict[str, SearchTask] = {}
    for target in sorted({record.target for record in records}):
        for name in NETWORKS:
            tasks, _ = lw.extract_tasks(lw.testing.network(name, batch=1, layout="NHWC"), parse_target(target))
            kernels |= {task.compute_dag.hash: task for task in tasks}
    for record in records:
        task = kernels.get(record.workload_hash) or task_of_key(record)
        assert task is not None, f"nothing has the workload of {record.workload_key}: leave the record out"
        assert why_not(record, task, task.versions()) is None, record.workload_key
        assert task.known_schedule() == record.schedule
    record, task = next((r, kernels[r.workload_hash]) for r in records if r.workload_hash in kernels)
    under_the_preset = SearchTask(task.compute_dag.module, target=PRESET)
    assert str(under_the_preset.target) != record.target
    assert under_the_preset.best_record([record]) == record and under_the_preset.known_schedule() == record.schedule


def test_there_is_one_record_of_a_workload_and_none_of_a_template() -> None:
    records = pretuned.index().records
    assert records and len({(record.workload_hash, record.target) for record in records}) == len(records)
    assert not any(record.template for record in records)
