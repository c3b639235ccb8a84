"""Workloads and schedules as people tile them, drawn from a seed: tiles with rests, caches and panels, moves, marks."""

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from gathered_workloads import gathered
from xdsl.dialects.builtin import ModuleOp

from loopwright import te, topi
from loopwright.dialects.loop import BlockOp, blocks_in
from loopwright.dialects.target import parse_target
from loopwright.passes.analysis.access import consumers, producers
from loopwright.passes.analysis.nest import buffer_name, functions
from loopwright.passes.pipeline_text import lower_to_loops
from loopwright.passes.primitive import Primitive, ScheduleError
from loopwright.passes.schedule.cache_read import CacheRead
from loopwright.schedule import primitive_class
from loopwright.te.reduce import Reduce

CPU = "llvm cores=2 vector_bytes=64"
LONGEST_UNROLLED = 6

Drawn = tuple[list[te.Tensor], str]
"""The tensors of a workload, and the block to tile (empty: any)."""


def _input(name: str, *shape: int, dtype: str = "float32") -> te.Tensor:
    return te.placeholder(shape, dtype, name)


def matmul(r: Random) -> Drawn:
    m, n, k = r.randint(1, 11), r.randint(1, 19), r.randint(1, 7)
    dtype = r.choice(["float32", "int8", "float64", "float16", "int32"])
    out = "int32" if dtype == "int8" else dtype
    ta, tb = r.random() < 0.5, r.random() < 0.5
    a, b = _input("A", *((k, m) if ta else (m, k)), dtype=dtype), _input("B", *((n, k) if tb else (k, n)), dtype=dtype)
    rk = te.reduce_axis((0, k), "k")

    def product(i: te.Expr, j: te.Expr) -> Reduce:
        left, right = a[(rk, i) if ta else (i, rk)], b[(j, rk) if tb else (rk, j)]
        return te.sum(left.astype(out) * right.astype(out), axis=rk)

    c = te.compute((m, n), product, name="C")
    if r.random() < 0.4:
        return [a, b, c], "C"
    bias = _input("bias", n, dtype=out)
    return [a, b, bias, te.compute((m, n), lambda i, j: te.maximum(c[i, j] + bias[j], c[i, j] * 2), name="D")], "C"


def convolution(r: Random) -> Drawn:
    stride, dilation, padding, kernel = r.randint(1, 2), r.randint(1, 2), r.randint(0, 2), r.randint(1, 3)
    size = r.randint(max(1, (kernel - 1) * dilation + 1 - 2 * padding), 7)
    ci, co = r.randint(1, 3), r.randint(1, 5)
    if r.random() < 0.5:
        x, w, bias = _input("x", 1, ci, size, size), _input("w", co, ci, kernel, kernel), _input("bias", 1, co, 1, 1)
        conv = topi.nn.conv2d_nchw(x, w, stride, padding, dilation)
    else:
        x, w, bias = _input("x", 1, size, size, ci), _input("w", kernel, kernel, ci, co), _input("bias", co)
        conv = topi.nn.conv2d_nhwc(x, w, stride, padding, dilation)
    return [x, w, bias, topi.nn.relu(conv + bias)], conv.op.name


def depthwise(r: Random) -> Drawn:
    size, c = r.randint(3, 6), r.randint(1, 9)
    x, w, bias = _input("x", 1, size, size, c), _input("w", 3, 3, c, 1), _input("bias", c)
    conv = topi.nn.depthwise_conv2d_nhwc(x, w, r.randint(1, 2), 1)
    return [x, w, bias, topi.nn.relu(conv + bias)], conv.op.name


def pooling(r: Random) -> Drawn:
    x = _input("x", 1, r.randint(1, 3), r.randint(3, 7), r.randint(3, 7))
    pool = r.choice([topi.nn.max_pool, topi.nn.avg_pool])
    return [x, pool(x, 3, r.randint(1, 2), r.randint(0, 1))], ""


def rows(r: Random) -> Drawn:
    x = _input("x", r.randint(1, 6), r.randint(1, 19))
    row_wise = r.choice([topi.nn.softmax, topi.nn.log_softmax, lambda x: topi.argmax(x, axis=r.randint(0, 1))])
    return [x, row_wise(x)], ""


def chain(r: Random) -> Drawn:
    m, n = r.randint(1, 19), r.randint(1, 19)
    x, y = _input("x", m, n), _input("y", n)
    a = te.compute((m, n), lambda i, j: x[i, j] + y[j], name="a")
    b = te.compute((n, m), lambda j, i: a[i, j] * 2.0, name="b")
    c = te.compute((m, n), lambda i, j: te.maximum(b[j, i], a[i, j]), name="c")
    d = te.compute((m, n), lambda i, j: te.select(te.all(i + j >= 2), c[i, j], y[j]), name="d")
    whole = te.compute((m, n), lambda i, j: (c[i, j] * 3).astype("int32").astype("float32"), name="whole")
    e = te.compute((m, n), lambda i, j: te.select(c[i, j] > y[j], d[i, j] + i.astype("float32"), whole[i, j]), name="e")
    return r.choice([[x, y, d, b], [x, y, e]]), ""


def windows(r: Random) -> Drawn:
    n, q = r.randint(5, 33), r.randint(2, 5)
    x, y = _input("x", n), _input("y", q)
    k, s = te.reduce_axis((0, 3), "k"), te.reduce_axis((0, 2), "s")
    a = te.compute((n - 2,), lambda i: te.sum(x[i + k], axis=k), name="a")
    b = te.compute(((n - 2) // 2,), lambda i: te.sum(a[i * 2 + s], axis=s), name="b")
    c = te.compute((n - 2,), lambda i: a[n - 3 - i] + x[i * 3 // 4] * y[i % q] + y[i // 2 % q], name="c")
    return [x, y, b, c], ""


def looked_up(r: Random) -> Drawn:
    return gathered(r), ""


WORKLOADS = [matmul, matmul, convolution, convolution, depthwise, pooling, rows, chain, windows, looked_up]


def tiled(r: Random) -> tuple[ModuleOp, ModuleOp, list[Primitive[Any]]]:
    """A workload, the same on loops and scheduled, and the steps that did it."""
    tensors, block = r.choice(WORKLOADS)(r)
    workload = te.create_module(tensors, parse_target(CPU))
    tiling = _Tiling(r, workload)
    for _ in range(r.randint(1, 2)):
        known = [b.block_name for b in tiling.blocks()]
        tiling.tile(block if block in known and r.random() < 0.8 else r.choice(known))
    return workload, tiling.module, tiling.steps


class _Tiling:
    """Steps in the order people take them, each where it is legal."""

    def __init__(self, r: Random, workload: ModuleOp) -> None:
        self.r = r
        self.module = workload.clone()
        lower_to_loops(self.module)
        self.steps: list[Primitive[Any]] = []

    def blocks(self) -> list[BlockOp]:
        return [block for func in functions(self.module) for block in blocks_in(func)]

    def block(self, name: str) -> BlockOp | None:
        return next((b for b in self.blocks() if b.block_name == name), None)

    def loops(self, name: str) -> list[str]:
        block = self.block(name)
        return [loop.loop_name for loop in block.enclosing_loops] if block is not None else []

    def do(self, stem: str, *arguments: object, chance: float = 1.0) -> bool:
        if self.r.random() >= chance:
            return False
        step = primitive_class(stem)(*arguments)
        try:
            step.run(self.module)
        except ScheduleError:
            return False
        self.steps.append(step)
        return True

    def tile(self, name: str) -> None:
        r = self.r
        for block in self.blocks():
            if block.block_name != name:
                self.do("compute_inline", block.block_name, chance=0.15)
        name = self.before_the_tiles(name)
        for loop in self.loops(name):
            factors = [r.choice([1, 2, 3, 4, 5, 8]) for _ in range(r.choice([1, 1, 2]))]
            self.do("split", name, loop, (0, *factors), chance=0.7)
        self.reorder(name)
        self.do("fuse", name, tuple(self.loops(name)[: r.randint(2, 3)]), chance=0.3)
        for _ in range(r.randint(0, 2)):
            self.cache(name)
        self.move(name)
        if loops := self.loops(name):
            self.do("decompose_reduction", name, r.choice(loops), chance=0.2)
        for block in self.blocks():
            for output in block.outputs:
                arguments = r.choice([0, 1]), r.choice([4, 8]), r.randint(0, 3), buffer_name(output)
                self.do("storage_align", block.block_name, *arguments, chance=0.1)
        self.mark(r.randint(1, 8))

    def before_the_tiles(self, name: str) -> str:
        """Fuse, factor and stage; returns the block that computes from then on."""
        r = self.r
        loops = self.loops(name)
        if len(loops) > 1:
            first = r.randint(0, len(loops) - 2)
            self.do("fuse", name, tuple(loops[first : first + r.randint(2, 3)]), chance=0.4)
        for loop in self.loops(name) if r.random() < 0.15 else ():
            if self.do("rfactor", name, loop):
                break
        block = self.block(name)
        if block is None or r.random() < 0.7:
            return name
        self.do("cache_write", name, buffer_name(r.choice(list(block.outputs))), r.choice(["local", "global"]))
        reducing = (b.block_name for b in self.blocks() if b.is_reduction and b.block_name.startswith(name))
        return next(reducing, name)

    def reorder(self, name: str) -> None:
        """Any order of the loops, or the first tiles of all, the second, ...; of all loops, or of the inner ones."""
        loops = self.loops(name)
        self.r.shuffle(loops)
        if self.r.random() < 0.5:
            loops.sort(key=lambda loop: loop[-1] if loop[-1].isdigit() else "0")
        if len(loops) > 1 and self.r.random() < 0.5:
            loops = loops[-self.r.randint(2, len(loops)) :]
        self.do("reorder", name, tuple(loops), chance=0.7)

    def cache(self, name: str) -> None:
        block = self.block(name)
        if block is None or not block.loads:
            return
        load = self.r.choice(block.loads)
        names = sorted({axis for e in load.indices.data for axis in e.axes()})
        layout = self.layout(names) if self.r.random() < 0.5 else ()
        before = {b.block_name for b in self.blocks()}
        step = CacheRead(name, buffer_name(load.buffer), self.r.choice(["local", "global"]), layout)
        try:
            step.run(self.module)
        except ScheduleError:
            return
        self.steps.append(step)
        (copy,) = (b.block_name for b in self.blocks() if b.block_name not in before)
        if loops := self.loops(name):
            self.do("compute_at", copy, self.r.choice(loops), chance=0.8)

    def layout(self, names: list[str]) -> tuple[str, ...]:
        self.r.shuffle(names)
        if len(names) > 1 and self.r.random() < 0.4:
            names[:2] = [f"{names[0]}*{names[1]}"]
        if names and self.r.random() < 0.7:
            first, tile = names.pop(0), self.r.choice([2, 3, 4, 8])
            names = [f"{first}/{tile}", *names, f"{first}%{tile}"]
        return tuple(names)

    def move(self, name: str) -> None:
        def others(related: Callable[[BlockOp], Iterable[BlockOp]]) -> list[str]:
            block = self.block(name)
            return [b.block_name for b in related(block)] if block is not None else []

        for producer in others(producers):
            if loops := self.loops(name):
                self.do("compute_at", producer, self.r.choice(loops), chance=0.5)
        for consumer in others(consumers):
            if loops := self.loops(name):
                self.do("reverse_compute_at", consumer, self.r.choice(loops), chance=0.6)

    def mark(self, count: int) -> None:
        for _ in range(count):
            block = self.r.choice(self.blocks())
            loops = block.enclosing_loops
            how = self.r.choice(["vectorize", "vectorize", "unroll", "parallel", "pragma"])
            loop = self.r.choice((loops[-2:] if how == "vectorize" else loops) or [None])
            if loop is None or (how == "unroll" and loop.size > LONGEST_UNROLLED):
                continue
            steps = [self.r.choice([4, 16, 64])] if how == "pragma" else []
            self.do(how, block.block_name, loop.loop_name, *steps)
