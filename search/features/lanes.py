"""Memory accesses of the threads of a warp and the lanes of a vector: sectors, bank conflicts, contiguity."""

from __future__ import annotations

from ...dialects.multiprocessor import BANK_BYTES, BANKS
from ...dialects.target import WARP, WIDEST_ACCESS_BYTES
from ...passes.parametric.nest import Loop
from ...passes.parametric.sizes import Size, equal, less, maximum, minimum, negated, where
from .machine import SECTOR_BYTES
from .movement import Movement, once
from .view import StageView


def warp_loop(view: StageView) -> Loop | None:
    """The loop along which neighbouring threads go."""
    found = [x for x in view.loops if x.kind == "threadIdx.x"]
    return found[-1] if found else None


@once
def vector_step(view: StageView, movement: Movement) -> Size:
    """By how many elements an access moves from lane to lane; 0 where there are no lanes."""
    lanes = view.loops_of("lane")
    return movement.address_step(lanes[-1]) if lanes else 0


@once
def vector_width(view: StageView, movement: Movement) -> Size:
    """Elements of one load or store: the lanes where they lie side by side, else 1."""
    lanes = view.loops_of("lane")
    if not lanes:
        return 1
    return where(equal(vector_step(view, movement), 1), lanes[-1].extent, 1)


@once
def sectors(view: StageView, movement: Movement) -> Size:
    """32-byte sectors that one request of a warp touches; 1 where all threads read the same.

    From the distances of lanes 1, 2, 4, 8 and 16 from lane 0: each that leaves the sector doubles their number, which
    is exact for tiles of threads that are powers of two.
    """
    loop = warp_loop(view)
    own = vector_width(view, movement) * movement.element_bytes
    count: Size = 1 + (own - 1) // SECTOR_BYTES
    if loop is None:
        return count
    distance = 1
    while distance < WARP:
        step_bytes = movement.address_step(loop, distance) * movement.element_bytes
        count = count * (2 - less(step_bytes, SECTOR_BYTES))
        distance *= 2
    return minimum(count, 2 * WARP)


@once
def bank_conflicts(view: StageView, movement: Movement) -> Size:
    """Count the repeats of a warp's request to shared memory for threads that want different words of a bank.

    A request of vectors is served in as many parts as a vector has words, each for as many neighbouring threads as its
    vectors fill all banks (CUDA C++ Programming Guide, shared memory).
    """
    loop = warp_loop(view)
    if loop is None:
        return 1
    words = vector_width(view, movement) * movement.element_bytes / BANK_BYTES
    ways: Size = 1
    distance = 1
    while distance < WARP:
        step = movement.address_step(loop, distance) * movement.element_bytes / BANK_BYTES
        same_bank = equal(step % BANKS, 0) * less(0, step)
        within_part = negated(less(WARP, 2 * distance * words))
        ways = ways * (1 + same_bank * within_part)
        distance *= 2
    return ways


@once
def distinct_parts(view: StageView, movement: Movement) -> Size:
    """The least parts that a warp's request to shared memory is served in: words that differ, as many as banks a part.

    Threads that want the same word get it at once; at most it is the words of a vector, at least one for each of its
    instructions. As for `sectors`, the distances of lanes 1, 2, 4, 8 and 16 tell how many differ.
    """
    loop = warp_loop(view)
    words = vector_width(view, movement) * movement.element_bytes / BANK_BYTES
    if loop is None:
        return words
    different: Size = words / BANKS
    distance = 1
    while distance < WARP:
        different = different * (2 - equal(movement.address_step(loop, distance), 0))
        distance *= 2
    return minimum(words, maximum(1, words * BANK_BYTES / WIDEST_ACCESS_BYTES, different))
