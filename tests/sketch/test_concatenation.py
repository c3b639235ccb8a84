"""Concatenations: whole vectors of each part, under a condition that lanes do not tell apart."""

import re

import numpy as np
import pytest
from gpu_programs import check_interpreted

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.c_family.artifact import Artifact
from loopwright.backends.cuda import device as cuda_device

H200 = "cuda model=h200"


def joined(extents: tuple[int, ...], axis: int, *shape: int, dtype: str = "float32") -> list[te.Tensor]:
    """Tensors of these extents along an axis, one behind the other."""
    shapes = [(*shape[:axis], n, *shape[axis + 1 :]) for n in extents]
    parts = [te.placeholder(s, name=f"part{k}", dtype=dtype) for k, s in enumerate(shapes)]
    return [*parts, topi.concatenate(parts, axis)]


@pytest.mark.parametrize(
    ("tensors", "vector"),
    [
        (joined((512, 512), 1, 1, 0, 64, 64), "float4"),
        (joined((116, 116), 1, 1, 0, 28, 28), "float4"),
        (joined((64, 32, 96), 1, 2, 0, 20, 20), "float4"),
        (joined((256, 256), 1, 1, 0, 64, 64, dtype="float16"), "half_x4"),
    ],
)
def test_gpus_copy_whole_vectors_of_each_part(tensors: list[te.Tensor], vector: str) -> None:
    """Each element was chosen by itself: 512x64x64 twice took 14.7 us on an H200, where PyTorch takes 6.2."""
    task = lw.SearchTask(tensors, target=H200)
    (sketch,) = task.sketches
    artifact = Artifact.from_bytes(cuda_device.build(str(task.module), sketch.schedule(sketch.default)), "cuda")
    assert len(artifact.kernel.launches) == 1
    for k in range(len(tensors) - 1):
        assert artifact.kernel.source.count(f"reinterpret_cast<const {vector}*>(&part{k}[") == 1
    assert artifact.kernel.source.count(f"reinterpret_cast<{vector}*>(&T_concat[") == 1


CASES = {
    "channels": lambda: joined((6, 10, 3), 1, 2, 0, 4, 8),
    "seam_in_a_vector": lambda: joined((5, 3), 1, 6, 0),
    "rows": lambda: joined((3, 7), 0, 0, 36),
    "odd": lambda: joined((3, 2), 1, 1, 0, 7, 7),
    "rows_of_few_vectors": lambda: joined((31, 1, 77), 1, 5, 0),
    "rows_of_many_vectors": lambda: joined((1301, 778), 1, 3, 0),
    "halves": lambda: joined((6, 10), 1, 1, 0, 8, 8, dtype="float16"),
    "with_an_operator": lambda: [
        *(parts := joined((4, 8), 1, 1, 0, 6, 6))[:-1],
        topi.nn.relu(topi.add(parts[-1], 1.0)),
    ],
}


@pytest.mark.parametrize("target", [H200, "opencl model=mali-t860"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.few(6)
def test_concatenations_are_right_when_interpreted(name: str, target: str) -> None:
    task = lw.SearchTask(CASES[name](), target=target)
    rng = np.random.default_rng(0)
    check_interpreted(task.module, task.reference, [s.schedule(r) for s in task.sketches for r in s.sample(rng, 4)])


@pytest.mark.parametrize("name", CASES)
def test_concatenations_are_right_on_a_cpu(name: str) -> None:
    task = lw.SearchTask(CASES[name](), target="llvm cores=1")
    rng = np.random.default_rng(0)
    for schedule in {task.default_schedule, *(s.schedule(r) for s in task.sketches for r in s.sample(rng, 4))}:
        task.build(schedule, check=True)


def test_a_cpu_masks_no_lane_of_rows_of_whole_vectors() -> None:
    """Masked loads of no lane, where nothing is mapped, took 27 times as long as NumPy."""
    source = lw.SearchTask(joined((64, 64), 1, 1, 0, 16, 16), target="llvm model=haswell cores=1").build().source
    assert "masked." not in source


@pytest.mark.parametrize(
    ("name", "piece"),
    [
        ("channels", 3),  # nothing but single ones divides 6 and 16: as many pieces as there may be
        ("halves", 2),
        ("with_an_operator", 4),
        ("quarters", 5),
        ("odd", None),
    ],
)
def test_pieces_between_seams_are_copied_for_themselves_on_one_core(name: str, piece: int | None) -> None:
    """A condition of each vector takes longer than what it copies, unless threads share the loop."""
    made = {**CASES, "quarters": lambda: joined((5, 10, 5), 1, 2, 0, 7, 9)}[name]
    task = lw.SearchTask(made(), target="llvm cores=1 vector_bytes=64 vector_registers=32")
    schedule = task.default_schedule
    found_pieces = re.findall(r'loop="(?:ax|i)1" factors=0,(\d+)},lw-unroll{block="\w+" loop="(?:ax|i)10"}', schedule)
    assert found_pieces == ([] if piece is None else [str(piece)])
    found = task.build(schedule)(*task.reference.inputs)
    np.testing.assert_array_equal(np.asarray(found), task.reference.expected[0])


@pytest.mark.parametrize(
    ("name", "factors"),
    [("rows_of_few_vectors", "0,16"), ("rows_of_many_vectors", "0,5,4,16")],
)
def test_rows_with_seams_are_written_out_as_a_whole_or_in_pieces(name: str, factors: str) -> None:
    """So masks are known where a seam is, and there are none elsewhere."""
    task = lw.SearchTask(CASES[name](), target="llvm cores=1 vector_bytes=64 vector_registers=32")
    assert f'loop="ax1" factors={factors}}}' in task.default_schedule
    assert 'lw-unroll{block="T_concat" loop="ax10"}' in task.default_schedule
