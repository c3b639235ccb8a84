"""Hypothesis strategies: small workloads of many kinds, and steps with random arguments from all primitives."""

import dataclasses
from random import Random
from typing import Any, TypeVar

from gathered_workloads import gathered
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from loopwright import te, topi
from loopwright.dialects.loop import BlockOp, blocks_in
from loopwright.dialects.target import parse_target
from loopwright.passes.analysis.access import consumers, is_argument, producers
from loopwright.passes.analysis.nest import buffer_name, functions
from loopwright.passes.discovery import class_name, primitive_stems
from loopwright.passes.primitive import Primitive
from loopwright.schedule import primitive_class
from loopwright.te.reduce import Reduce

CPU = "llvm cores=2 vector_bytes=64"
GPU = "cuda max_threads_per_block=64 max_shared_bytes=49152 warp_size=32 max_vthreads=8"

T = TypeVar("T")

# -- workloads --------------------------------------------------------------------------------------------------------


def extents(low: int = 1, high: int = 7) -> st.SearchStrategy[int]:
    return st.integers(low, high)


def _input(name: str, *shape: int, dtype: str = "float32") -> te.Tensor:
    return te.placeholder(shape, dtype, name)


@st.composite
def matmul(draw: st.DrawFn) -> list[te.Tensor]:
    m, n, k = draw(extents()), draw(extents()), draw(extents(1, 11))
    dtype = draw(st.sampled_from(["float32", "int8"]))
    transpose_a, transpose_b = draw(st.booleans()), draw(st.booleans())
    a = _input("A", *((k, m) if transpose_a else (m, k)), dtype=dtype)
    b = _input("B", *((n, k) if transpose_b else (k, n)), dtype=dtype)
    out = "int32" if dtype == "int8" else "float32"
    r = te.reduce_axis((0, k), "k")

    def product(i: te.Expr, j: te.Expr) -> Reduce:
        left = a[(r, i) if transpose_a else (i, r)].astype(out)
        right = b[(j, r) if transpose_b else (r, j)].astype(out)
        return te.sum(left * right, axis=r)

    c = te.compute((m, n), product, name="C")
    if draw(st.booleans()):
        return [a, b, te.compute((m, n), lambda i, j: te.maximum(c[i, j], c[i, j] * 2), name="D")]
    return [a, b, c]


@st.composite
def batch_matmul(draw: st.DrawFn) -> list[te.Tensor]:
    b, m, n, k = draw(extents(1, 3)), draw(extents(1, 5)), draw(extents(1, 5)), draw(extents())
    a, w = _input("A", b, m, k), _input("B", b, k, n)
    return [a, w, topi.nn.relu(topi.batch_matmul(a, w))]


@st.composite
def conv2d(draw: st.DrawFn) -> list[te.Tensor]:
    stride, dilation, padding = draw(extents(1, 2)), draw(extents(1, 2)), draw(extents(0, 2))
    kernel = draw(extents(1, 3))
    size = draw(st.integers(max(1, (kernel - 1) * dilation + 1 - 2 * padding), 7))
    ci, co = draw(extents(1, 3)), draw(extents(1, 5))
    if draw(st.booleans()):
        data, w = _input("data", 1, ci, size, size), _input("kernel", co, ci, kernel, kernel)
        conv = topi.nn.conv2d_nchw(data, w, stride, padding, dilation)
    else:
        data, w = _input("data", 1, size, size, ci), _input("kernel", kernel, kernel, ci, co)
        conv = topi.nn.conv2d_nhwc(data, w, stride, padding, dilation)
    return [data, w, topi.nn.relu(conv) if draw(st.booleans()) else conv]


@st.composite
def depthwise(draw: st.DrawFn) -> list[te.Tensor]:
    stride, size, c = draw(extents(1, 2)), draw(extents(3, 6)), draw(extents(1, 5))
    data, w = _input("data", 1, size, size, c), _input("kernel", 3, 3, c, 1)
    bias = _input("bias", c)
    conv = topi.nn.depthwise_conv2d_nhwc(data, w, stride, 1)
    return [data, w, bias, te.compute(conv.shape, lambda n, y, x, f: conv[n, y, x, f] + bias[f], name="biased")]


@st.composite
def pooling(draw: st.DrawFn) -> list[te.Tensor]:
    data = _input("data", 1, draw(extents(1, 3)), draw(extents(3, 7)), draw(extents(3, 7)))
    return [data, topi.nn.max_pool(data, 3, draw(extents(1, 2)), draw(extents(0, 1)))]


@st.composite
def softmax(draw: st.DrawFn) -> list[te.Tensor]:
    data = _input("data", draw(extents(1, 5)), draw(extents(1, 7)))
    return [data, topi.nn.softmax(data)]


@st.composite
def weighted_sum(draw: st.DrawFn) -> list[te.Tensor]:
    """A sum weighted by a softmax of scores that may be masked."""
    m, n, k = draw(extents(1, 4)), draw(extents(1, 7)), draw(extents(1, 3))
    scores, values = _input("scores", m, n), _input("values", n, k)
    masked = topi.multiply(scores, 0.5) if draw(st.booleans()) else scores
    return [scores, values, topi.matmul(topi.nn.softmax(masked), values)]


@st.composite
def argmax(draw: st.DrawFn) -> list[te.Tensor]:
    data = _input("data", draw(extents(1, 5)), draw(extents(1, 11)))
    return [data, topi.argmax(data, axis=1)]


@st.composite
def chain(draw: st.DrawFn) -> list[te.Tensor]:
    """Several elementwise stages, one of them read twice, one of them transposed, perhaps an output in between."""
    m, n = draw(extents()), draw(extents())
    x, y = _input("x", m, n), _input("y", n)
    a = te.compute((m, n), lambda i, j: x[i, j] + y[j], name="a")
    b = te.compute((n, m), lambda j, i: a[i, j] * 2.0, name="b")
    c = te.compute((m, n), lambda i, j: te.maximum(b[j, i], a[i, j]), name="c")
    d = te.compute((m, n), lambda i, j: te.select(te.all(i + j >= 2), c[i, j], y[j]), name="d")
    return [x, y, d, b] if draw(st.booleans()) else [x, y, d]


@st.composite
def window(draw: st.DrawFn) -> list[te.Tensor]:
    """A sum over a window that slides over a sum over a window, with a tail that is read backwards."""
    n = draw(extents(5, 13))
    x = _input("x", n)
    r, s = te.reduce_axis((0, 3), "r"), te.reduce_axis((0, 2), "s")
    a = te.compute((n - 2,), lambda i: te.sum(x[i + r], axis=r), name="a")
    b = te.compute(((n - 2) // 2,), lambda i: te.sum(a[i * 2 + s], axis=s), name="b")
    c = te.compute((n - 2,), lambda i: a[n - 3 - i] + x[i], name="c")
    return [x, b, c]


@st.composite
def moved(draw: st.DrawFn) -> list[te.Tensor]:
    """Reads at quotients and remainders, from two tensors side by side, and a mean over groups of channels."""
    a, b, c = draw(extents(1, 4)), draw(extents(1, 5)), draw(extents(1, 3))
    x, y = _input("x", a, b), _input("y", a, c)
    joined = topi.concatenate([topi.exp(x), y], axis=1)
    flat = topi.reshape(topi.transpose(joined), (a * (b + c),))
    return [x, y, topi.nn.relu(flat), topi.mean(joined, axis=0)]


@st.composite
def grouped(draw: st.DrawFn) -> list[te.Tensor]:
    groups, size = draw(extents(1, 3)), draw(extents(2, 5))
    data, w = _input("data", 1, groups * 2, size, size), _input("kernel", groups * 2, 2, 2, 2)
    return [data, w, topi.nn.conv2d_nchw(data, w, 1, (1, 0), groups=groups)]


@st.composite
def norm(draw: st.DrawFn) -> list[te.Tensor]:
    m, n = draw(extents(1, 5)), draw(extents(1, 7))
    data, gamma, beta = _input("data", m, n), _input("gamma", n), _input("beta", n)
    return [data, gamma, beta, topi.nn.layer_norm(data, gamma, beta)]


WORKLOADS = st.one_of(
    matmul(),
    batch_matmul(),
    conv2d(),
    depthwise(),
    pooling(),
    softmax(),
    weighted_sum(),
    argmax(),
    chain(),
    window(),
    moved(),
    grouped(),
    norm(),
    st.randoms(use_true_random=False).map(gathered),
)


@st.composite
def workloads(draw: st.DrawFn) -> ModuleOp:
    """A module on tensors, for a CPU or a GPU."""
    tensors = draw(WORKLOADS)
    return te.create_module(tensors, parse_target(draw(st.sampled_from([CPU, GPU]))))


# -- steps ------------------------------------------------------------------------------------------------------------


def primitives() -> dict[str, type[Primitive[Any]]]:
    return {class_name(stem): primitive_class(stem) for stem in primitive_stems()}


def draw_step(r: Random, module: ModuleOp, classes: dict[str, type[Primitive[Any]]]) -> Primitive[Any] | None:
    """A step on what `module` holds; its arguments make sense one by one, so it is often legal, and often not."""
    step_class = classes[r.choice(sorted(classes) + 3 * sorted(classes.keys() - _MARKS))]
    if step_class.__name__ in _RARE:
        space = step_class.schedule_space(Context(), module)
        return r.choice(space) if space else None
    blocks = [block for func in functions(module) for block in blocks_in(func)]
    if step_class.__name__ in _REDUCING:
        blocks = [block for block in blocks if block.has_init] or blocks
    if step_class.__name__ in _LENGTHENING:
        blocks = [block for block in blocks if not any(map(is_argument, block.outputs))] or blocks
    arguments = _Arguments(r, module, r.choice(blocks), step_class)
    values = {}
    for field in dataclasses.fields(step_class):
        make = getattr(arguments, field.name, None)
        has_default = field.default is not dataclasses.MISSING
        if make is None and not has_default:
            space = step_class.schedule_space(Context(), module)
            return r.choice(space) if space else None
        if make is not None and not (has_default and r.randrange(3) == 0):
            values[field.name] = make()
    return step_class(**values)


_MARKS = {"Bind", "Parallel", "Pragma", "SetScope", "StorageAlign", "Unroll", "Vectorize"}
"""Drawn less often: they keep loops from being split and moved."""

_RARE = {
    *("DoubleBuffer", "OnlineSoftmax", "Pipeline", "ClampToEdge", "Im2col", "Col2im", "Join", "Prefetch"),
    *("PrefetchPanel", "Winograd"),
}
"""Legal after a few certain steps or in a few programs only, so taken from what they offer."""

_REDUCING = {"DecomposeReduction", "Rfactor"}

_LENGTHENING = {"Pad"}
"""Legal where a block writes no argument, but for reduce loops, which most blocks have none of."""


class _Arguments:
    """A method for each option that primitives have, by its name."""

    def __init__(self, r: Random, module: ModuleOp, target: BlockOp, step_class: type[Primitive[Any]]) -> None:
        self.r = r
        self.module = module
        self.target = target
        self.step = step_class.__name__

    def pick(self, *values: T) -> T:
        return self.r.choice(values)

    def block(self) -> str:
        return self.target.block_name

    def loop(self) -> str:
        places = [self.target]
        if self.step == "ComputeAt":
            places = consumers(self.target) or places
        elif self.step == "ReverseComputeAt":
            places = producers(self.target) or places
        loops = self.pick(*places).enclosing_loops
        if self.step == "Rfactor":
            bindings = zip(self.target.axes, self.target.bindings.data, strict=True)
            reducing = {name for a, e in bindings if a.reduce for name in e.axes()}
            loops = [loop for loop in loops if loop.loop_name in reducing] or loops
        return self.pick(*loops).loop_name if loops else "none"

    def loops(self) -> tuple[str, ...]:
        names = [loop.loop_name for loop in self.target.enclosing_loops]
        if len(names) < 2:
            return tuple(names)
        if self.step == "Fuse":
            first = self.r.randrange(len(names) - 1)
            return tuple(names[first : first + self.pick(2, 2, 3)])
        return tuple(self.r.sample(names, self.r.randint(2, len(names))))

    def factors(self) -> tuple[int, ...]:
        factors = [self.pick(1, 2, 3, 4, 5) for _ in range(self.pick(2, 2, 3))]
        factors[self.r.randrange(len(factors))] = 0
        return tuple(factors)

    def thread(self) -> str:
        return self.pick("blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y", "vthread")

    def buffer(self) -> str:
        if self.step == "CacheRead":
            read = [load.buffer for load in self.target.loads]
            return buffer_name(self.pick(*read)) if read else "none"
        return buffer_name(self.pick(*self.target.outputs))

    def scope(self) -> str:
        return self.pick("local", "shared", "global")

    def layout(self) -> tuple[str, ...]:
        """The names that some access of the block depends on, in any order, one of them perhaps tiled, two fused."""
        reading = self.step == "CacheRead" and self.target.loads
        indices = self.pick(*self.target.loads).indices.data if reading else self.target.write_indices[0]
        names = sorted({name for e in indices for name in e.axes()})
        if not names:
            return ()
        items = self.r.sample(names, len(names))
        if len(items) > 1 and self.pick(True, False):
            items[:2] = [f"{items[0]}*{items[1]}"]
        if self.pick(True, False):
            tiled, tile = items.pop(0), self.pick(2, 3, 4)
            items = [f"{tiled}/{tile}", *items, f"{tiled}%{tile}"]
        return tuple(items)

    def label(self) -> str:
        return self.pick("one", "two", "three")

    def consumer(self) -> str:
        return self.pick(*[b.block_name for b in consumers(self.target)] or [""])

    def producer(self) -> str:
        return self.pick(*[b.block_name for b in producers(self.target)] or [""])

    def axis(self) -> int:
        return self.r.randint(-2, 2)

    def factor(self) -> int:
        return self.pick(1, 2, 4, 8)

    def offset(self) -> int:
        return self.r.randint(0, 3)

    def stages(self) -> int:
        return self.pick(2, 3)

    def terms(self) -> int:
        return self.pick(0, 1, 2, 3, 8)

    def auto_unroll_max_step(self) -> int:
        return self.pick(0, 16)

    def unroll_explicit(self) -> int:
        return self.pick(0, 1)
