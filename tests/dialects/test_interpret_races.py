"""Data races that the interpreter finds: those of all pairs of accesses, and no others."""

import re
from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from random import Random

import numpy as np
import pytest
from effort import usual
from gpu_programs import parse

from loopwright.dialects.interpret import launch as launches
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.loop import InterpretationError

THREADS, BLOCKS, ELEMENTS = 4, 3, 12
PROGRAMS = 30 * usual(27)


@dataclass(frozen=True)
class Step:
    """An access of element `(thread * step + block * apart + first) % ELEMENTS` by the threads below `below`.

    Or a barrier, of the blocks below `below`.
    """

    kind: str
    buffer: str = "g"
    step: int = 1
    apart: int = 0
    first: int = 0
    below: int = THREADS


def drawn(r: Random) -> list[Step]:
    found = []
    for _ in range(r.randint(2, 7)):
        kind = r.choice(("load", "load", "store", "store", "barrier"))
        step, apart = r.choice((0, 1, 1, 1, 2, 3)), r.choice((0, THREADS, THREADS))
        below = r.choice((1, THREADS - 1, THREADS, THREADS))
        found.append(Step(kind, r.choice("sg"), step, apart, r.choice((0, 0, 0, 1, 5)), below))
    return found


def access(n: int, x: Step) -> str:
    memory = f'memref<{ELEMENTS}xf32, "shared">' if x.buffer == "s" else f"memref<{ELEMENTS}xf32>"
    if x.kind == "load":
        return f"%l{n} = lw_kernel.load %{x.buffer}[%p{n}] : {memory} -> f32"
    return f"lw_kernel.store %v{n}, %{x.buffer}[%p{n}] : f32, {memory}"


def text_of(steps: list[Step]) -> str:
    """A kernel that runs the steps; what is stored tells the threads, and the steps, apart."""
    lines = []
    for n, x in enumerate(steps):
        lines += [
            f"%a{n} = arith.constant {x.step} : index",
            f"%d{n} = arith.constant {x.apart} : index",
            f"%f{n} = arith.constant {x.first} : index",
            f"%w{n} = arith.constant {x.below} : index",
            f"%x{n} = arith.muli %t, %a{n} : index",
            f"%y{n} = arith.muli %b, %d{n} : index",
            f"%z{n} = arith.addi %x{n}, %y{n} : index",
            f"%u{n} = arith.addi %z{n}, %f{n} : index",
            f"%p{n} = arith.remsi %u{n}, %elements : index",
            f"%c{n} = arith.constant {1000.0 * n} : f32",
            f"%v{n} = arith.addf %mine, %c{n} : f32",
            f"%is{n} = arith.cmpi slt, {'%b' if x.kind == 'barrier' else '%t'}, %w{n} : index",
            f"scf.if %is{n} {{",
            "lw_kernel.barrier" if x.kind == "barrier" else access(n, x),
            "}",
        ]
    body = "\n".join(lines)
    return f"""func.func @f(%g : memref<{ELEMENTS}xf32>) {{
      %elements = arith.constant {ELEMENTS} : index
      %threads = arith.constant {THREADS} : index
      lw_kernel.launch grid [{BLOCKS}, 1, 1] block [{THREADS}, 1, 1] {{
        %s = lw_kernel.alloc "s" : memref<{ELEMENTS}xf32, "shared">
        %t = lw_kernel.thread "threadIdx.x" : index
        %b = lw_kernel.thread "blockIdx.x" : index
        %n1 = arith.muli %b, %threads : index
        %n2 = arith.addi %n1, %t : index
        %n3 = arith.index_cast %n2 : index to i32
        %mine = arith.sitofp %n3 : i32 to f32
        {body}
      }}
      func.return
    }}"""


def races(steps: list[Step]) -> bool:
    """True where two accesses of one element, one of them a write, are by threads that nothing keeps apart."""
    touched: dict[tuple[object, ...], list[tuple[int, int, int, bool]]] = {}
    periods = [0] * BLOCKS
    for x in steps:
        if x.kind == "barrier":
            periods = [period + (block < x.below) for block, period in enumerate(periods)]
            continue
        for block in range(BLOCKS):
            for thread in range(x.below):
                element = (thread * x.step + block * x.apart + x.first) % ELEMENTS
                where = (x.buffer, element) if x.buffer == "g" else (x.buffer, block, element)
                touched.setdefault(where, []).append((block, thread, periods[block], x.kind == "store"))
    return any(
        (p[3] or q[3]) and p[:2] != q[:2] and (p[0] != q[0] or p[2] == q[2])
        for accesses in touched.values()
        for p, q in combinations(accesses, 2)
    )


@pytest.mark.parametrize("side_by_side", [1, 2 * THREADS, 1024])
@pytest.mark.few(1)
def test_they_are_those_of_all_pairs_of_accesses(side_by_side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One block at once, two, or all of them."""
    monkeypatch.setattr(launches, "MOST_THREADS", side_by_side)
    outcomes: Counter[bool] = Counter()
    for seed in range(PROGRAMS):
        steps = drawn(Random(seed))
        expected = races(steps)
        outcomes[expected] += 1
        module = parse(text_of(steps))
        try:
            run_kernel(module, [np.zeros(ELEMENTS, np.float32)])
            error = ""
        except InterpretationError as refusal:
            error = str(refusal)
        assert bool(error) == expected, f"seed {seed}: {steps}\n{error}"
        if error:
            assert error.startswith("data race: ")
            kinds = re.findall(r"lw_kernel\.(load|store)", error)
            assert len(kinds) == 2 and "store" in kinds
    assert min(outcomes.values()) > PROGRAMS / 10
