"""Programs that run a kernel of CUDA C or PTX by CUDA's driver."""

from __future__ import annotations

from string import Template

from ..cuda.language import STATIC_SHARED_BYTES
from ..cuda.tensor_maps import MAP_BYTES, PROMOTION, Encoding, encoding
from .device_program import DeviceProgram, braces
from .files import MADE_BY, beside
from .python_program import python_program

_IMAGE_OF_PTX = '''

def image():
    """Return the code beside this file, which the driver compiles for its device."""
    return Path(__file__).resolve().with_name(FILE).read_bytes()
'''
_IMAGE_OF_CUDA = '''

def image():
    """Compile the code beside this file."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "kernel.cubin")
        source = Path(__file__).resolve().with_name(FILE)
        subprocess.run(["nvcc", "-cubin", f"-arch={ARCHITECTURE}", "-std=c++17", "-o", made, source], check=True)
        return made.read_bytes()
'''
_LAUNCH = '''

@functools.cache
def loaded():
    """Return the driver, its context of device 0, the kernels, all buffers, which hold the constants, and maps."""
    driver = ctypes.CDLL("libcuda.so.1")
    context, module, device = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    check(driver, driver.cuInit(0))
    check(driver, driver.cuDeviceGet(ctypes.byref(device), 0))
    check(driver, driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    check(driver, driver.cuCtxPushCurrent_v2(context))
    try:
        check(driver, driver.cuModuleLoadData(ctypes.byref(module), image() + b"\\0"))
        functions = [ctypes.c_void_p() for _ in LAUNCHES]
        for function, (name, _, _, shared_bytes, _) in zip(functions, LAUNCHES):
            check(driver, driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
            if shared_bytes > STATIC_SHARED_BYTES:  # 8: CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                check(driver, driver.cuFuncSetAttribute(function, 8, shared_bytes))
        buffers = [ctypes.c_uint64() for _ in SIZES]
        for buffer, size in zip(buffers, SIZES):
            check(driver, driver.cuMemAlloc_v2(ctypes.byref(buffer), ctypes.c_size_t(size)))
        for number, start in CONSTANTS:
            constants = Path(__file__).resolve().with_name(CONSTANTS_FILE)
            upload(driver, buffers[number], np.fromfile(constants, np.uint8, SIZES[number], offset=start))
        maps = [[tensor_map(driver, buffers[number], *how) for number, *how in each] for each in MAPS]
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
    return driver, context, functions, buffers, maps


def check(driver, status):
    """RuntimeError with the driver's words where it fails."""
    if status:
        text = ctypes.c_char_p()
        driver.cuGetErrorString(status, ctypes.byref(text))
        raise RuntimeError(f"CUDA: {(text.value or b'').decode() or status}")


def tensor_map(driver, buffer, element, shape, strides, box, steps, swizzle, lower, upper):
    """Return memory that holds a tensor map of a buffer, and the map's address; with corners, of a window's walk."""
    memory = ctypes.create_string_buffer(MAP_BYTES + 64)
    at = -(-ctypes.addressof(memory) // 64) * 64
    wide, narrow, signed = ctypes.c_uint64 * len(shape), ctypes.c_uint32 * len(shape), ctypes.c_int * len(lower)
    array = ctypes.c_void_p(at), element, len(shape), ctypes.c_void_p(buffer.value), wide(*shape), wide(*strides)
    how = narrow(*steps), 0, swizzle, PROMOTION, 0
    if lower:
        check(driver, driver.cuTensorMapEncodeIm2col(*array, signed(*lower), signed(*upper), *box, *how))
    else:
        check(driver, driver.cuTensorMapEncodeTiled(*array, narrow(*box), *how))
    return memory, at


def upload(driver, buffer, array):
    """Copy an array to a buffer."""
    check(driver, driver.cuMemcpyHtoD_v2(buffer, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes)))


def launch(arrays):
    """Copy inputs to the device, launch the kernels in order, and copy outputs back."""
    driver, context, functions, buffers, maps = loaded()
    check(driver, driver.cuCtxPushCurrent_v2(context))
    try:
        for (_, _, _, is_output), place, array in zip(ARGUMENTS, PLACES, arrays):
            if not is_output:
                upload(driver, buffers[place], array)
        for function, (_, grid, block, shared_bytes, taken), first in zip(functions, LAUNCHES, maps):
            places = [*(at for _, at in first), *(ctypes.addressof(buffers[number]) for number in taken)]
            given = (ctypes.c_void_p * len(places))(*places)
            check(driver, driver.cuLaunchKernel(function, *grid, *block, shared_bytes, None, given, None))
        for (_, _, _, is_output), place, array in zip(ARGUMENTS, PLACES, arrays):
            if is_output:
                size = ctypes.c_size_t(array.nbytes)
                check(driver, driver.cuMemcpyDtoH_v2(ctypes.c_void_p(array.ctypes.data), buffers[place], size))
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
'''
_C = Template("""\
/* Runs kernel $name of $file, $made_by, by CUDA's driver, on files of raw bytes:
$compile
 * With -DLW_NO_MAIN it is a function for other programs. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

$tables
static CUcontext context;
static CUmodule module;
static CUfunction functions[LAUNCHES];
static CUdeviceptr buffers[BUFFERS];
static CUtensorMap maps[MAPS + 1];

#define CHECK(call) do { CUresult status_ = (call); if (status_) return failed(#call, status_); } while (0)

static int failed(const char *call, CUresult status) {
  const char *text = 0;
  cuGetErrorString(status, &text);
  fprintf(stderr, "%s: %s\\n", call, text ? text : "failed");
  return 1;
}

static int load(void) {
  CUdevice device;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoad(&module, LW_FOLDER "/$image"));
  for (int n = 0; n < LAUNCHES; n++) {
    CHECK(cuModuleGetFunction(&functions[n], module, LAUNCH[n].name));
    if (LAUNCH[n].shared_bytes > $static)
      CHECK(cuFuncSetAttribute(functions[n], CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               (int)LAUNCH[n].shared_bytes));
  }
  for (int n = 0; n < BUFFERS; n++) CHECK(cuMemAlloc(&buffers[n], SIZES[n]));
  for (int n = 0; n < MAPS; n++) {
    const CUtensorMapDataType element = (CUtensorMapDataType)MAP[n].element;
    const CUtensorMapSwizzle swizzle = (CUtensorMapSwizzle)MAP[n].swizzle;
    void *array = (void *)buffers[MAP[n].buffer];
    if (MAP[n].walked)
      CHECK(cuTensorMapEncodeIm2col(&maps[n], element, MAP[n].rank, array, MAP[n].shape, MAP[n].strides, MAP[n].lower,
                                    MAP[n].upper, MAP[n].box[0], MAP[n].box[1], MAP[n].steps,
                                    CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, (CUtensorMapL2promotion)$promotion,
                                    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    else
      CHECK(cuTensorMapEncodeTiled(&maps[n], element, MAP[n].rank, array, MAP[n].shape, MAP[n].strides, MAP[n].box,
                                   MAP[n].steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                   (CUtensorMapL2promotion)$promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  }
  return 0;
}

static int attach(void) {
  CHECK(cuCtxSetCurrent(context));
  return 0;
}

static int upload(int buffer, const void *array) {
  CHECK(cuMemcpyHtoD(buffers[buffer], array, SIZES[buffer]));
  return 0;
}

static int download(void *array, int buffer) {
  CHECK(cuMemcpyDtoH(array, buffers[buffer], SIZES[buffer]));
  return 0;
}

static int launch(void) {
  for (int n = 0, map = 0; n < LAUNCHES; n++) {
    const size_t *grid = LAUNCH[n].grid, *block = LAUNCH[n].block;
    void *given[MAPS + sizeof LAUNCH[n].buffers / sizeof(int)];
    const int first = MAPS_OF_LAUNCH[n];
    for (int i = 0; i < first; i++) given[i] = &maps[map++];
    for (int i = 0; i < LAUNCH[n].count; i++) given[first + i] = &buffers[LAUNCH[n].buffers[i]];
    CHECK(cuLaunchKernel(functions[n], (unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2], (unsigned)block[0],
                         (unsigned)block[1], (unsigned)block[2], (unsigned)LAUNCH[n].shared_bytes, 0, given, 0));
  }
  return 0;
}
""")


def run_from_python(program: DeviceProgram, architecture: str) -> str:
    """Return the text of `k_run.py` for `k.cu` or `k.ptx`."""
    is_ptx = program.path.suffix == ".ptx"
    maps = tuple(tuple((number, *how) for number, how in each) for each in _maps(program))
    tables = program.tables() | {"STATIC_SHARED_BYTES": STATIC_SHARED_BYTES}
    tables |= {"MAPS": maps, "MAP_BYTES": MAP_BYTES, "PROMOTION": PROMOTION}
    tables |= {} if is_ptx else {"ARCHITECTURE": architecture}
    launch = (_IMAGE_OF_PTX if is_ptx else _IMAGE_OF_CUDA) + _LAUNCH
    needs = " and NVIDIA's driver" if is_ptx else ", NVIDIA's driver and nvcc"
    imports = [] if is_ptx else ["subprocess", "tempfile"]
    return python_program(program.path, program.kernel.name, program.arguments, tables, launch, imports, needs)


def run_from_c(program: DeviceProgram, architecture: str) -> str:
    """Return the text of `k_host.c` for `k.cu` or `k.ptx`."""
    path = program.path
    image = path if path.suffix == ".ptx" else path.with_suffix(".cubin")
    lines = [f" * cc -o {beside(path, '_host').name} {beside(path, '_host.c').name} -lcuda"]
    if image is not path:
        lines.insert(0, f" * nvcc -cubin -arch={architecture} -std=c++17 -o {image.name} {path.name}")
    head = _C.substitute(
        name=program.kernel.name,
        file=path.name,
        made_by=MADE_BY,
        compile="\n".join(lines),
        static=STATIC_SHARED_BYTES,
        promotion=PROMOTION,
        tables=f"{program.c_tables()}\n{_c_maps(program)}",
        image=image.name,
    )
    return head + program.c_function()


def _maps(program: DeviceProgram) -> list[list[tuple[int, Encoding]]]:
    """For each launch the tensor maps that it takes: buffers by number, and what they are made by."""
    return [[(each.buffer, encoding(each)) for each in launch.maps] for launch in program.kernel.launches]


def _c_maps(program: DeviceProgram) -> str:
    """Return the tables of tensor maps for C, a row each, and how many each launch takes."""
    maps = _maps(program)
    rows = [
        f"  {{{number}, {how.element}, {len(how.shape)}, {braces(how.shape)}, {braces(how.strides)}, "
        f"{braces(how.box)}, {braces(how.steps)}, {how.swizzle}, {int(bool(how.lower))}, "
        f"{braces(how.lower or (0,))}, {braces(how.upper or (0,))}}},"
        for each in maps
        for number, how in each
    ]
    return "\n".join(
        [
            f"enum {{ MAPS = {len(rows)} }};",
            "static const struct {",
            "  int buffer, element;",
            "  cuuint32_t rank;",
            "  cuuint64_t shape[5], strides[5];",
            "  cuuint32_t box[5], steps[5];",
            "  int swizzle, walked, lower[3], upper[3];",
            "} MAP[] = {",
            *(rows or ["  {0, 0, 0, {0}, {0}, {0}, {0}, 0, 0, {0}, {0}},"]),
            "};",
            f"static const int MAPS_OF_LAUNCH[] = {braces(tuple(map(len, maps)))};",
        ]
    )
