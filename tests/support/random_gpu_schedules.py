"""Schedules as for a GPU, drawn from a seed: tiles bound to blocks, threads and virtual threads, buffers staged."""

from collections.abc import Callable
from random import Random
from typing import Any

from gathered_workloads import gathered
from xdsl.dialects.builtin import ModuleOp

from loopwright import te, topi
from loopwright.dialects.loop import BlockOp, blocks_in, loops_in, scope_of
from loopwright.dialects.target import parse_target
from loopwright.passes.analysis.access import consumers, is_argument, producers
from loopwright.passes.analysis.copies import copies_of
from loopwright.passes.analysis.nest import buffer_name, functions
from loopwright.passes.pipeline_text import lower_to_loops
from loopwright.passes.primitive import Primitive, ScheduleError
from loopwright.schedule import primitive_class

TARGET = "opencl max_threads_per_block=64 max_shared_bytes=32768 max_vthreads=8"
_LEVELS = {"blockIdx": 0, "vthread": 1, "threadIdx": 2}


def _in(name: str, *shape: int) -> te.Tensor:
    return te.placeholder(shape, "float32", name)


def _matmul(r: Random) -> list[te.Tensor]:
    m, n, k = r.randint(1, 13), r.randint(1, 13), r.randint(1, 9)
    a, b, axis = _in("A", m, k), _in("B", k, n), te.reduce_axis((0, k), "k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    if r.random() < 0.5:
        return [a, b, c]
    return [a, b, te.compute((m, n), lambda i, j: te.maximum(c[i, j], 0.0) + a[i, 0], name="D")]


def _conv(r: Random) -> list[te.Tensor]:
    size, pad, stride = r.randint(3, 7), r.randint(0, 1), r.randint(1, 2)
    data, w = _in("data", 1, r.randint(1, 3), size, size), None
    w = _in("w", r.randint(1, 5), int(data.shape[1]), 3, 3)
    conv = topi.nn.conv2d_nchw(data, w, stride, pad)
    return [data, w, topi.nn.relu(conv) if r.random() < 0.5 else conv]


def _rows(r: Random) -> list[te.Tensor]:
    x = _in("x", r.randint(1, 5), r.randint(1, 40))
    function = r.choice([topi.nn.softmax, lambda t: topi.sum(t, axis=1), lambda t: topi.argmax(t, axis=1)])
    return [x, function(x)]


def _chain(r: Random) -> list[te.Tensor]:
    m, n = r.randint(1, 12), r.randint(1, 12)
    x, y = _in("x", m, n), _in("y", n)
    a = te.compute((m, n), lambda i, j: x[i, j] + y[j], name="a")
    b = te.compute((n, m), lambda j, i: a[i, n - 1 - j] * 2.0, name="b")
    c = te.compute((m, n), lambda i, j: te.maximum(b[j, i], a[i, j]), name="c")
    return [x, y, c, b] if r.random() < 0.5 else [x, y, c]


def _window(r: Random) -> list[te.Tensor]:
    n = r.randint(5, 40)
    x, axis = _in("x", n), te.reduce_axis((0, 3), "r")
    a = te.compute((n - 2,), lambda i: te.sum(x[i + axis], axis=axis), name="a")
    c = te.compute((n - 2,), lambda i: a[n - 3 - i] + x[i], name="c")
    return [x, c]


WORKLOADS: tuple[Callable[[Random], list[te.Tensor]], ...] = (_matmul, _matmul, _conv, _rows, _chain, _window, gathered)


def gpu_scheduled(r: Random, workload: ModuleOp | None = None) -> tuple[ModuleOp, ModuleOp, list[Primitive[Any]]]:
    """A workload, drawn unless given, its loops after some steps, and the steps."""
    if workload is None:
        workload = te.create_module(r.choice(WORKLOADS)(r), parse_target(TARGET))
    module = workload.clone()
    lower_to_loops(module)
    drawn = _Steps(r, module)
    for _ in range(r.randint(0, 6)):
        r.choice((drawn.split, drawn.split, drawn.fuse, drawn.cache, drawn.cache, drawn.inline, drawn.rfactor))()
    drawn.bind_all()
    for _ in range(r.randint(0, 6)):
        r.choice((drawn.move, drawn.move, drawn.split, drawn.cache, drawn.mark))()
    drawn.move()
    drawn.bind_all()
    drawn.scopes()
    drawn.pipeline()
    return workload, module, drawn.steps


class _Steps:
    """Steps that are tried one after the other; those that are refused change nothing."""

    def __init__(self, r: Random, module: ModuleOp) -> None:
        self.r = r
        self.module = module
        self.steps: list[Primitive[Any]] = []

    def blocks(self) -> list[BlockOp]:
        return [b for func in functions(self.module) for b in blocks_in(func)]

    def block(self) -> BlockOp:
        return self.r.choice(self.blocks())

    def do(self, stem: str, **options: object) -> bool:
        step = primitive_class(stem)(**options)
        try:
            step.run(self.module)
        except ScheduleError:
            return False
        self.steps.append(step)
        return True

    def split(self) -> None:
        block = self.block()
        loops = [x for x in block.enclosing_loops if x.loop_kind == "serial" and x.size > 1]
        if loops:
            inner = [self.r.choice((1, 2, 3, 4, 5, 8)) for _ in range(self.r.choice((1, 1, 2, 3)))]
            self.do("split", block=block.block_name, loop=self.r.choice(loops).loop_name, factors=(0, *inner))
            names = [x.loop_name for x in block.enclosing_loops]
            if self.r.random() < 0.6:
                self.r.shuffle(names)
                self.do("reorder", block=block.block_name, loops=tuple(names))

    def pipeline(self) -> None:
        """Let the copies of some loops run ahead."""
        for func in functions(self.module):
            for loop in [x for x in loops_in(func) if x.loop_kind == "serial" and x.size > 1 and copies_of(x)]:
                block = next(iter(blocks_in(loop))).block_name
                options = {"stages": self.r.randint(2, min(4, loop.size)), "registers": self.r.randint(0, 1)}
                self.do("pipeline", block=block, loop=loop.loop_name, **options)

    def fuse(self) -> None:
        block = self.block()
        names = [x.loop_name for x in block.enclosing_loops]
        if len(names) > 1:
            first = self.r.randrange(len(names) - 1)
            self.do("fuse", block=block.block_name, loops=tuple(names[first : first + 2]))

    def cache(self) -> None:
        block = self.block()
        scope = self.r.choice(("shared", "shared", "local"))
        if block.loads and self.r.random() < 0.7:
            buffer = buffer_name(self.r.choice(list(block.loads)).buffer)
            self.do("cache_read", block=block.block_name, buffer=buffer, scope=scope)
        else:
            self.do("cache_write", block=block.block_name, buffer=buffer_name(block.outputs[0]), scope=scope)

    def inline(self) -> None:
        self.do("compute_inline", block=self.block().block_name)

    def rfactor(self) -> None:
        found = [b for b in self.blocks() if b.has_init]
        if found:
            block = self.r.choice(found)
            bound = zip(block.axes, block.bindings.data, strict=True)
            names = sorted({n for a, e in bound if a.reduce for n in e.axes()})
            if names:
                self.do("rfactor", block=block.block_name, loop=self.r.choice(names))

    def move(self) -> None:
        block = self.block()
        stem, others = self.r.choice((("compute_at", consumers(block)), ("reverse_compute_at", producers(block))))
        loops = self.r.choice(others).enclosing_loops if others else []
        if loops:
            self.do(stem, block=block.block_name, loop=self.r.choice(loops).loop_name)

    def mark(self) -> None:
        block = self.block()
        loops = [x for x in block.enclosing_loops if x.loop_kind == "serial"]
        if loops:
            stem = self.r.choice(("vectorize", "unroll"))
            loop = loops[-1] if stem == "vectorize" else self.r.choice(loops)
            if loop.size <= 8:
                self.do(stem, block=block.block_name, loop=loop.loop_name)

    def bind_all(self) -> None:
        """Bind loops of each block from the outside in, blocks of threads before threads."""
        for block in self.blocks():
            level = 0
            for loop in block.enclosing_loops:
                kind = loop.loop_kind.split(".")[0]
                if kind in _LEVELS:
                    level = max(level, _LEVELS[kind])
                elif kind == "serial" and self.r.random() < 0.7:
                    kinds = [k for k, at in _LEVELS.items() if at >= level]
                    thread = self.r.choice(kinds)
                    dimension = "" if thread == "vthread" else f".{self.r.choice('xxyz')}"
                    if self.do("bind", block=block.block_name, loop=loop.loop_name, thread=thread + dimension):
                        level = _LEVELS[thread]

    def scopes(self) -> None:
        """Buffers of one nest are not global."""
        for block in self.blocks():
            for output in block.outputs:
                readers = consumers(block)
                nests = {b.enclosing_loops[0] if b.enclosing_loops else b for b in (block, *readers)}
                if not is_argument(output) and len(nests) == 1 and scope_of(output) == "global":
                    scope = self.r.choice(("shared", "local"))
                    self.do("set_scope", block=block.block_name, scope=scope, buffer=buffer_name(output))
                elif not is_argument(output) and len(nests) > 1 and scope_of(output) != "global":
                    self.do("set_scope", block=block.block_name, scope="global", buffer=buffer_name(output))
