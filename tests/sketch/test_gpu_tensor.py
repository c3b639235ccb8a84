"""Products on matrix units by the search's rule: what it finds; random candidates of random forms are right."""

import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from gpu_programs import check_interpreted, compile_cuda, scheduled_kernel
from lowered_runs import exact_inputs
from program_trials import products_interpreted

import loopwright as lw
from loopwright import te, topi
from loopwright.backends.cuda.compile import print_cuda
from loopwright.dialects.interpret.kernel import run_kernel
from loopwright.dialects.interpret.te import run_te
from loopwright.dialects.kernel import BulkCopyOp
from loopwright.search.sketch.generate import generate_sketches
from loopwright.search.sketch.sketch import Sketch
from loopwright.te.reduce import Reduce

TARGET = lw.resolve_target("cuda model=h200")


def matmul(m: int, n: int, k: int, dtype: str = "float16", sums: str = "float32") -> list[te.Tensor]:
    a, b = te.placeholder((m, k), dtype, name="a"), te.placeholder((n, k), dtype, name="b")
    return [a, b, topi.nn.matmul(a, b, transpose_b=True, out_dtype=sums)]


def sketches(tensors: list[te.Tensor], target: lw.Target = TARGET) -> list[Sketch]:
    return generate_sketches(te.create_module(tensors, target), target)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_candidates_of_random_products_are_right(seed: int) -> None:
    """Interpreted, with each element exactly that of the te program: sums of whole numbers."""
    outcome = products_interpreted(seed, 5)
    assert not outcome.faults, outcome.faults[0].what
    assert outcome.tried + outcome.counts["too long to run"] == 5


TYPES = [("float16", "float32"), ("bfloat16", "float32"), ("int8", "int32"), ("uint8", "int32")]


@pytest.mark.parametrize(("dtype", "sums"), TYPES)
def test_each_type_has_its_instructions(dtype: str, sums: str) -> None:
    names = sorted(s.name for s in sketches(matmul(64, 64, 64, dtype, sums)))
    assert [name.split("k")[0] for name in names] == ["tensor_mma_m16n16", "tensor_wgmma_m64"]


def rounded(m: int, n: int, k: int, one_sided: bool = False) -> list[te.Tensor]:
    """A product of single precision, of factors that are rounded to TF32, or one of them."""
    a, b, steps = te.placeholder((m, k), name="a"), te.placeholder((n, k), name="b"), te.reduce_axis((0, k), name="k")

    def right(x: te.Expr) -> te.Expr:
        return x if one_sided else te.round_to(x)

    terms = te.compute((m, n), lambda i, j: te.sum(te.round_to(a[i, steps]) * right(b[j, steps]), axis=steps), name="c")
    return [a, b, terms]


@pytest.mark.parametrize(("shape", "units"), [((64, 64, 64), ["mma", "wgmma"]), ((50, 40, 36), ["mma"])])
@pytest.mark.few(1)
def test_products_of_factors_rounded_to_tf32_are_right(shape: tuple[int, int, int], units: list[str]) -> None:
    """Padded ones included: zeros stay what they are. The copy engine brings those of warp groups, which it rounds."""
    tensors = rounded(*shape)
    found = sketches(tensors)
    assert [s.name.split("_")[1] for s in found] == units and all("tf32" in s.name for s in found)
    assert all(s.name.endswith("tf32_bulk") for s in found if "wgmma" in s.name)
    module = te.create_module(tensors, TARGET)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(argument.shape).astype(np.float32) for argument in tensors[:2]]
    for sketch in found:
        for row in (sketch.default, *sketch.population.sample(np.random.default_rng(0), 1)):
            kernel = scheduled_kernel(str(module), sketch.schedule(row))
            for got, wanted in zip(run_kernel(kernel, inputs), run_te(module, inputs), strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_single_precision_that_is_not_rounded_is_left_to_lanes() -> None:
    for tensors in (rounded(64, 64, 64, one_sided=True), matmul(64, 64, 64, "float32")):
        assert not any(s.name.startswith("tensor") for s in sketches(tensors))


def test_other_capabilities_have_no_warp_groups() -> None:
    names = [s.name for s in sketches(matmul(4096, 4096, 4096), lw.resolve_target("cuda model=a100"))]
    assert names and not any("wgmma" in name for name in names)


def test_sums_in_half_precision_are_left_to_lanes() -> None:
    """The instruction's would be another, more precise result: who wants it says so by the type of the sums."""
    assert not any(s.name.startswith("tensor") for s in sketches(matmul(64, 64, 64, sums="float16")))


def test_devices_without_the_instruction_are_left_to_lanes() -> None:
    old = lw.resolve_target("cuda model=v100")
    assert not any(s.name.startswith("tensor") for s in sketches(matmul(64, 64, 64), old))


def test_extents_are_padded_to_those_of_the_instruction() -> None:
    """Of 7 x 7 pixels the fewest more that make multiples of 16, here 8 x 8; masks are in the copies."""
    data = te.placeholder((1, 7, 7, 32), "float16", name="data")
    kernel = te.placeholder((3, 3, 32, 32), "float16", name="kernel")
    conv = topi.nn.conv2d_nhwc(data, kernel, 1, 1, out_dtype="float32")
    (sketch,) = (s for s in sketches([data, kernel, topi.cast(conv, "float16")]) if s.name.startswith("tensor_mma"))
    pads = [step for step in sketch.template.split(",lw-") if step.startswith("pad{")]
    assert pads == [f'pad{{block="compute" loop="{axis}" factor=8}}' for axis in ("yy", "xx")]


def test_pixels_of_several_images_are_walked_over_in_tiles_of_any_size() -> None:
    """By warp groups alone, where tiles are enough for all multiprocessors."""
    (sketch,) = sketches(conv(28, 64, 64, 3, 16))
    assert sketch.name == "tensor_wgmma_m64k16_f16_bulk"
    assert 'lw-pad{block="compute" loop="nn_yy_xx" factor=<compute_tile_rows>}' in sketch.template
    names = {s.name for s in sketches(conv(28, 64, 64, 3))}
    assert names >= {"tensor_wgmma_m64k16_f16_bulk", "tensor_mma_m16n16k16_f16"}


@pytest.mark.parametrize(
    ("channels", "filters", "wanted"),
    [
        (64, 64, {"_bulk"}),
        (24, 64, {"_bulk_c32"}),
        (48, 64, {"_bulk", "_bulk_c64"}),
        (40, 32, {"_bulk_n32_c48", "_bulk_n32_c64"}),
        (64, 16, {"_bulk_n16"}),
        (64, 24, {"_bulk_n32"}),
        (96, 160, {"_bulk"}),
        (64, 48, {"_bulk"}),
    ],
)
def test_channels_and_filters_are_padded_little(channels: int, filters: int, wanted: set[str]) -> None:
    """To the steps of an instruction and those of wider boxes, and to as few columns as an instruction has."""
    names = {s.name for s in sketches(conv(28, channels, filters, 3, 16)) if "wgmma" in s.name}
    assert names == {f"tensor_wgmma_m64k16_f16{ways}" for ways in wanted}


@pytest.mark.parametrize(("k", "padded"), [(2064, 2112), (208, 224), (144, 144), (2048, 2048)])
def test_steps_of_k_are_padded_where_fills_are_wider_then(k: int, padded: int) -> None:
    """129 steps of 16 have no divisor for fills of several; nobody adds steps where they would be more than 8%."""
    for sketch in (s for s in sketches(matmul(128, 128, k)) if "split" not in s.name):
        pads = [step for step in sketch.template.split(",lw-") if step.startswith("pad{")]
        assert pads == ([f'pad{{block="T_matmul" loop="k" factor={padded}}}'] if padded > k else [])


def weights_of_bytes(window: int, constant: bool = True) -> list[te.Tensor]:
    """A convolution with weights (height, width, in, out), whose neighbours lie along what comes out."""
    data = te.placeholder((1, 8, 8, 32), "int8", name="data")
    kernel = te.placeholder((window, window, 32, 64), "int8", name="kernel", constant=constant)
    return [data, kernel, topi.nn.conv2d_nhwc(data, kernel, 1, window // 2, out_dtype="int32")]


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.few(1)
def test_constant_weights_of_bytes_are_packed_along_k(window: int) -> None:
    """They are copied 16 bytes at once, as those are that no instruction turns; others one by one."""
    tensors = weights_of_bytes(window)
    module = te.create_module(tensors, TARGET)
    steps = "ff,ry,rx,rc" if window > 1 else "ff,rc"
    layout = ",".join(f'"{name}"' for name in steps.split(","))
    data, kernel = exact_inputs(module)
    (wanted,) = run_te(module, [data, kernel])
    packed = np.ascontiguousarray(
        kernel.transpose(3, 0, 1, 2).reshape(tuple(n for n in (64, window, window, 32) if n > 1))
    )
    for sketch in sketches(tensors):
        assert f'lw-transform-layout{{block="compute" buffer="kernel" layout={layout}}}' in sketch.template
        lowered = scheduled_kernel(str(module), sketch.schedule(sketch.default))
        (got,) = run_kernel(lowered, [data, packed])
        np.testing.assert_array_equal(got, wanted)
    assert not any(
        'buffer="kernel" layout' in s.template.partition("cache-read")[0]
        for s in sketches(weights_of_bytes(window, False))
    )


def test_bytes_padded_with_a_number_are_moved_16_at_once() -> None:
    """As the data of quantised networks are, with a zero point: what is copied ahead is filled up with zeros alone."""
    data = te.placeholder((1, 8, 8, 32), "int8", name="data")
    kernel = te.placeholder((3, 3, 32, 64), "int8", name="kernel", constant=True)
    tensors = [data, kernel, topi.nn.conv2d_nhwc(data, kernel, 1, 1, out_dtype="int32", pad_value=-128)]
    module = te.create_module(tensors, TARGET)
    inputs = exact_inputs(module)
    (wanted,) = run_te(module, inputs)
    packed = [inputs[0], np.ascontiguousarray(inputs[1].transpose(3, 0, 1, 2))]
    for sketch in sketches(tensors):
        lowered = scheduled_kernel(str(module), sketch.schedule(sketch.default))
        (got,) = run_kernel(lowered, packed)
        np.testing.assert_array_equal(got, wanted)
        stores = re.findall(r"^ *(\S*)pad_temp_shared\[.* = ", print_cuda(lowered).source, re.MULTILINE)
        assert set(stores) == {"*reinterpret_cast<char_x16*>(&"}


def test_constant_factors_of_tf32_are_packed_along_k() -> None:
    """So that the copy engine, which rounds them, brings boxes."""
    a, b = te.placeholder((64, 128), name="a"), te.placeholder((128, 64), name="b", constant=True)
    k = te.reduce_axis((0, 128), "k")
    product = te.compute((64, 64), lambda i, j: te.sum(te.round_to(a[i, k]) * te.round_to(b[k, j]), axis=k), name="c")
    found = {s.name: s for s in sketches([a, b, product])}
    assert sorted(found) == ["tensor_mma_m16n16k8_tf32", "tensor_wgmma_m64k8_tf32_bulk"]
    assert all('lw-transform-layout{block="c" buffer="b" layout="j","k"}' in s.template for s in found.values())


def test_a_few_rows_are_left_to_lanes_too() -> None:
    """Of 16 rows that the instruction computes 5 are asked for: a search decides."""
    names = [s.name for s in sketches(matmul(5, 64, 64))]
    assert any(n.startswith("tensor") for n in names) and not all(n.startswith("tensor") for n in names)


def test_few_tiles_are_divided_along_k() -> None:
    names = [s.name for s in sketches(matmul(16, 256, 4096))]
    assert {n.rpartition("_")[2] for n in names} == {"f16", "split", "clustered"} and len(names) == 3


def of_groups(tensors: list[te.Tensor]) -> list[Sketch]:
    """The sketches of warp groups."""
    return [s for s in sketches(tensors) if "wgmma" in s.name]


def conv(size: int, channels: int, filters: int, window: int, batch: int = 1) -> list[te.Tensor]:
    data = te.placeholder((batch, size, size, channels), "float16", name="data")
    kernel = te.placeholder((window, window, channels, filters), "float16", name="kernel")
    found = topi.nn.conv2d_nhwc(data, kernel, 1, window // 2, out_dtype="float32")
    return [data, kernel, topi.cast(found, "float16")]


def batched(count: int, m: int, n: int, k: int) -> list[te.Tensor]:
    a, b = te.placeholder((count, m, k), "float16", name="a"), te.placeholder((count, n, k), "float16", name="b")
    return [a, b, topi.nn.batch_matmul(a, b, False, True, out_dtype="float32")]


def turned(m: int, n: int, k: int) -> list[te.Tensor]:
    """Rows of both factors are neighbours in memory."""
    a, b = te.placeholder((k, m), "float16", name="a"), te.placeholder((k, n), "float16", name="b")
    return [a, b, topi.nn.matmul(a, b, transpose_a=True, out_dtype="float32")]


SMALL: dict[str, tuple[Callable[[], list[te.Tensor]], str]] = {
    "half": (lambda: matmul(128, 96, 128), "_bulk"),
    "bfloat16": (lambda: matmul(64, 64, 128, "bfloat16"), "_bulk"),
    "int8": (lambda: matmul(64, 64, 128, "int8", "int32"), "_bulk"),
    "uint8": (lambda: matmul(64, 32, 256, "uint8", "int32"), "_bulk"),
    "turned": (lambda: turned(64, 128, 64), "_bulk"),
    "ragged": (lambda: matmul(100, 120, 136), "_bulk"),
    "rows that the copy engine takes not": (lambda: matmul(64, 64, 100), ""),
    "divided": (lambda: matmul(64, 64, 512), "_bulk_split"),
    "batched": (lambda: batched(2, 64, 64, 64), "_bulk"),
    "convolution": (lambda: conv(8, 16, 64, 3), ""),
}


@pytest.mark.parametrize("form", SMALL)
@pytest.mark.few(1)
def test_each_form_of_warp_groups_is_right(form: str) -> None:
    """Interpreted, for whole numbers, whose sums are exact."""
    make, ending = SMALL[form]
    tensors = make()
    (sketch,) = [s for s in of_groups(tensors) if s.name.endswith(f"{'8' if 'int8' in form else '16'}{ending}")]
    module = te.create_module(tensors, TARGET)
    inputs = exact_inputs(module)
    for row in (sketch.default, *sketch.population.sample(np.random.default_rng(0), 2)):
        kernel = scheduled_kernel(str(module), sketch.schedule(row))
        assert ("_bulk" in ending) == any(isinstance(op, BulkCopyOp) for op in kernel.walk())
        for got, wanted in zip(run_kernel(kernel, inputs), run_te(module, inputs), strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_the_copy_engine_reads_padded_parts_of_attention_from_memory() -> None:
    """Of 48 rows and 56 columns, in tiles of 64: what lies behind the ends are zeros, as behind those of arguments."""
    shapes = {"q": (1, 48, 64), "k": (1, 56, 64), "v": (1, 56, 64)}
    q, k, v = (te.placeholder(shape, "float16", name) for name, shape in shapes.items())
    scores = topi.cast(topi.nn.batch_matmul(q, k, False, True, out_dtype="float32"), "float16")
    tensors = [q, k, v, topi.nn.batch_matmul(topi.nn.softmax(scores), v, out_dtype="float32")]
    (sketch,) = [s for s in of_groups(tensors) if s.name.count("wgmma") == s.name.count("bulk") == 2]
    module = te.create_module(tensors, TARGET)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape).astype(np.float16) for shape in shapes.values()]
    kernel = scheduled_kernel(str(module), sketch.schedule(sketch.default))
    assert sum(isinstance(op, BulkCopyOp) for op in kernel.walk()) >= 4
    for got, wanted in zip(run_kernel(kernel, inputs), run_te(module, inputs), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-2, atol=4e-3)


@pytest.mark.parametrize(("columns", "once"), [(4096, {"b"}), (1024, set())])
def test_large_factors_that_are_read_once_leave_the_cache_first(columns: int, once: set[str]) -> None:
    """Weights of 32 MB that each go to one block; not those of 8 MB, and not rows that all blocks read."""
    tensors = matmul(128, columns, 4096, "float16", "float32")
    (sketch,) = [s for s in of_groups(tensors) if s.name.endswith("_split")]
    kernel = scheduled_kernel(str(te.create_module(tensors, TARGET)), sketch.schedule(sketch.default))
    copies = [op for op in kernel.walk() if isinstance(op, BulkCopyOp)]
    assert {str(op.source.name_hint) for op in copies if op.once is not None} == once
    assert {str(op.source.name_hint) for op in copies} == {"a", "b"}


def joined(parts: int, m: int, n: int, k: int) -> list[te.Tensor]:
    """Products of one tensor, ahead of its rows, with weights that lie one behind the other."""
    x, w = te.placeholder((m, k), name="x"), te.placeholder((parts, n, k), name="w", constant=True)
    steps = te.reduce_axis((0, k), name="k")

    def element(p: te.Expr, i: te.Expr, j: te.Expr) -> Reduce:
        return te.sum(te.round_to(x[i, steps]) * te.round_to(w[p, j, steps]), axis=steps)

    return [x, w, te.compute((parts, m, n), element, name="c")]


@pytest.mark.parametrize("columns", [32, 64])
def test_weights_of_joined_products_are_copied_in_boxes(columns: int) -> None:
    """Of 32 columns a part: a tile of 64 has those of two."""
    tensors = joined(2, 64, 32, 64)
    (sketch,) = [s for s in of_groups(tensors) if s.name.endswith("_bulk")]
    assert 'lw-transform-layout{block="c" buffer="w" layout="p*j","k"}' in sketch.template
    module = te.create_module(tensors, TARGET)
    inputs = exact_inputs(module)
    rows = sketch.population.sample(np.random.default_rng(0), 512)
    (row, *_) = rows[sketch.columns(rows)["c_columns"] == columns]
    kernel = scheduled_kernel(str(module), sketch.schedule(row))
    assert any(isinstance(op, BulkCopyOp) for op in kernel.walk())
    for got, wanted in zip(run_kernel(kernel, inputs), run_te(module, inputs), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_padded_weights_of_joined_products_are_copied_by_threads() -> None:
    """Of 80 columns, padded to 96, the copy engine would take 16 of the next part for zeros; warps multiply them."""
    tensors = joined(3, 64, 80, 64)
    (sketch,) = sketches(tensors)
    assert "mma_m16" in sketch.name and "bulk" not in sketch.name
    module = te.create_module(tensors, TARGET)
    inputs = exact_inputs(module)
    kernel = scheduled_kernel(str(module), sketch.schedule(sketch.default))
    assert not any(isinstance(op, BulkCopyOp) for op in kernel.walk())
    for got, wanted in zip(run_kernel(kernel, inputs), run_te(module, inputs), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_threads_copy_whole_rounds_for_warp_groups() -> None:
    """Three groups do not copy 64 x 32 elements in whole rounds, and fills would start at no multiple of 8 rows."""
    a, b = te.placeholder((120, 119), "bfloat16", name="a"), te.placeholder((85, 120), "bfloat16", name="b")
    tensors = [a, b, topi.nn.matmul(a, b, transpose_a=True, transpose_b=True, out_dtype="float32")]
    (sketch,) = (s for s in of_groups(tensors) if "aligned" not in s.name)
    rows = sketch.population.sample(np.random.default_rng(0), 256)
    assert not (sketch.columns(rows)["T_matmul_warps"] == 3).any()
    scheduled_kernel(str(te.create_module(tensors, TARGET)), sketch.schedule(rows[0]))


@pytest.mark.parametrize(("k", "padded"), [(1344, 1344), (2480, 2560)])
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_parts_are_whole_steps(k: int, padded: int) -> None:
    """The copy engine fills up with zeros behind the end of an array, and behind that of a part is the next one.

    An axis with few parts of whole steps is padded before it is divided: its last part ends in zeros then.
    """
    tensors = matmul(72, 256, k, "bfloat16")
    (sketch,) = [s for s in of_groups(tensors) if s.name.endswith("split")]
    assert "bulk" in sketch.name
    rows = sketch.population.sample(np.random.default_rng(0), 128)
    parts = np.unique(sketch.columns(rows)["T_matmul_parts"])
    assert len(parts) > 1 and not (padded % (16 * parts)).any()
    assert (f'loop="k" factor={padded}' in sketch.template) is (padded > k)
    for each in parts:
        row = rows[np.argmax(sketch.columns(rows)["T_matmul_parts"] == each)]
        scheduled_kernel(str(te.create_module(tensors, TARGET)), sketch.schedule(row))


RAGGED = [(64, 64, 601, "float16"), (48, 130, 527, "bfloat16"), (64, 64, 61, "int8")]


@pytest.mark.parametrize("shape", RAGGED)
@pytest.mark.few(1)
@pytest.mark.slow(1.2)
def test_factors_are_copied_to_whole_vectors(shape: tuple[int, int, int, str]) -> None:
    """Neither the copy engine nor threads would move rows of 1202 bytes 16 at once."""
    m, n, k, dtype = shape
    tensors = matmul(m, n, k, dtype, "int32" if dtype == "int8" else "float32")
    found = sketches(tensors)
    aligned = [s for s in found if "aligned" in s.name]
    assert all("bulk" in s.name for s in aligned if "wgmma" in s.name)
    assert len(aligned) == sum("tensor" in s.name for s in found) / 2
    module = te.create_module(tensors, TARGET)
    inputs = exact_inputs(module)
    expected = run_te(module, inputs)
    for sketch in aligned:
        kernel = scheduled_kernel(str(module), sketch.schedule(sketch.default))
        for got, wanted in zip(run_kernel(kernel, inputs), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_rows_of_whole_vectors_are_not_copied_before() -> None:
    assert not any("aligned" in s.name for s in sketches(matmul(72, 256, 600)))


@pytest.mark.parametrize(("columns", "padded"), [(5824, 5888), (5760, 5760)])
def test_odd_numbers_of_panels_of_turned_columns_get_one_more(columns: int, padded: int) -> None:
    """91 panels of 64 columns are no multiple of wider instructions, and do not come in pairs for two blocks."""
    a, b = te.placeholder((128, 256), "float16", name="a"), te.placeholder((256, columns), "float16", name="b")
    (sketch,) = of_groups([a, b, topi.nn.matmul(a, b, out_dtype="float32")])[:1]
    assert (f'loop="j" factor={padded}' in sketch.template) is (padded > columns)


LARGE: dict[str, Callable[[], list[te.Tensor]]] = {
    "1024": lambda: matmul(1024, 1024, 1024),
    "4096": lambda: matmul(4096, 4096, 4096),
    "8192 bytes": lambda: matmul(8192, 8192, 8192, "int8", "int32"),
    "ragged": lambda: matmul(1000, 1512, 2056),
    "16 rows": lambda: matmul(16, 4096, 4096),
    "128 rows": lambda: matmul(128, 4096, 4096),
    "batched": lambda: batched(12, 128, 128, 64),
    "turned": lambda: turned(1024, 1024, 1024),
    "convolution": lambda: conv(56, 64, 64, 3),
    "batch of convolutions": lambda: conv(14, 256, 256, 3, 16),
}


@pytest.mark.slow(1.2)
@pytest.mark.parametrize("shape", LARGE)
@pytest.mark.few(1)
def test_nearly_all_candidates_fit_the_device(shape: str) -> None:
    """Threads, shared memory and registers are known before anything is built; those drawn compile without a spill."""
    tensors = LARGE[shape]()
    module = te.create_module(tensors, TARGET)
    for sketch in sketches(tensors):
        rows = sketch.sample(np.random.default_rng(0), 1)
        assert len(rows)
        for row in (*rows, sketch.default):
            compile_cuda(scheduled_kernel(str(module), sketch.schedule(row)), (90,))


def example(name: str) -> ModuleType:
    """A file of `examples/`."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def numbered(source: str) -> str:
    """A source in which indices, whose names come from those of loops, are numbered as they occur."""
    numbers: dict[str, int] = {}
    return re.sub(r"\bi\d+(_\d+)?\b", lambda match: f"i{numbers.setdefault(match[0], len(numbers))}", source)


def test_the_schedule_by_hand_is_a_candidate_and_the_untuned_choice() -> None:
    """Line by line the kernel of the example, which has 0.90 to 0.96 of the speed of cuBLAS on an H200."""
    hand = example("gpu_matmul_wgmma").scheduled(4096)
    task = lw.SearchTask(hand.workload, target=TARGET)
    (sketch,) = [s for s in task.sketches if s.name.endswith("_bulk")]
    values = {
        "columns": 256, "j_tiles": 1, "j_warps": 1, "i_tiles": 1, "i_warps": 2,
        "k_steps": 4, "stages": 4, "group": 8, "resident": 1,
    }  # fmt: skip
    row = np.array([h.choices.index(values[h.name.removeprefix("T_matmul_")]) for h in sketch.holes])
    assert sketch.legal(row[None]).all()
    wanted, found = (
        print_cuda(scheduled_kernel(str(hand.workload), schedule)).source
        for schedule in (hand.pipeline, sketch.schedule(row))
    )
    assert numbered(found.replace("__launch_bounds__(256, 1)", "__launch_bounds__(256)")) == numbered(wanted)
    assert task.default_schedule == sketch.schedule(row)


@pytest.mark.parametrize("kinds", [("int8", "int32"), ("float16", "float32")])
@pytest.mark.parametrize("images", [1, 2])
@pytest.mark.few(2)
def test_pointwise_filters_are_aligned_beside_images_that_are_no_boxes(kinds: tuple[str, str], images: int) -> None:
    """The copy engine brings both factors or none: pixels of several images lie apart, bytes are not turned."""
    data, kernel = (te.placeholder(s, kinds[0], "x") for s in ((images, 64, 9, 8), (64, 64, 1, 1)))
    out = topi.nn.conv2d_nchw(data, kernel, out_dtype=kinds[1])
    task = lw.SearchTask(te.create_module([data, kernel, out]), target=TARGET)
    aligned = [s for s in task.sketches if "_aligned" in s.name]
    assert any("wgmma" in s.name for s in aligned)
    check_interpreted(task.module, task.reference, [s.schedule(s.default) for s in aligned if "wgmma" in s.name][:1])
