"""Blocks that move elements on a GPU: several of a thread, apart, where no vectors can be moved."""

import numpy as np
import pytest
from gpu_programs import check_interpreted

import loopwright as lw
from loopwright import te, topi
from loopwright.search.rules import gpu_injective

CUDA = "cuda model=h200"


def permuted(*shape: int) -> list[te.Tensor]:
    """The two axes before the last one exchanged."""
    data = te.placeholder(shape, name="data")
    axes = (*range(len(shape) - 3), len(shape) - 2, len(shape) - 3, len(shape) - 1)
    return [data, topi.transpose(data, axes)]


def each(tensors: list[te.Tensor], target: str = CUDA) -> tuple[int, ...]:
    """The choices of elements of a thread that lie apart; none without."""
    (sketch,) = lw.SearchTask(tensors, target=target).sketches
    return next((hole.choices for hole in sketch.holes if hole.name.endswith("_each")), ())


def test_threads_have_several_elements_where_there_are_enough_for_all_multiprocessors() -> None:
    assert each(permuted(69, 120, 64, 13)) == (1, 2, 4, 8)
    assert each(permuted(9, 120, 64, 13)) == (1, 2)
    assert each(permuted(2, 120, 64, 13)) == ()


def test_vectors_are_moved_instead_where_they_can_be() -> None:
    assert each(permuted(69, 120, 64, 16)) == ()
    assert each(permuted(69, 120, 64, 13), "opencl model=mali-g71") == ()


def test_no_candidate_has_vectors_of_elements_apart() -> None:
    data = te.placeholder((80, 120, 64, 32), name="data")
    every_other = te.compute((80, 120, 64, 16), lambda a, b, c, d: data[a, b, c, 2 * d], "every_other")
    (sketch,) = lw.SearchTask([data, every_other], target=CUDA).sketches
    columns = sketch.columns(sketch.sample(np.random.default_rng(0), 64))
    vector, apart = (next(c for name, c in columns.items() if name.endswith(end)) for end in ("_vector", "_each"))
    assert max(vector) > 1 and max(apart) > 1
    assert ((vector == 1) | (apart == 1)).all()


@pytest.mark.parametrize("shape", [(3, 5, 7, 13), (2, 9, 4, 3)])
def test_candidates_are_right(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the elements of the last block end within its threads."""
    monkeypatch.setattr(gpu_injective, "BLOCKS", 0)
    task = lw.SearchTask(permuted(*shape), target=CUDA)
    (sketch,) = task.sketches
    assert any(hole.name.endswith("_each") for hole in sketch.holes)
    rows = sketch.sample(np.random.default_rng(0), 4)
    check_interpreted(task.module, task.reference, map(sketch.schedule, (sketch.default, *rows)))
