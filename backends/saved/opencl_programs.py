"""Programs that run a kernel of OpenCL C."""

from __future__ import annotations

from string import Template

from .device_program import DeviceProgram
from .files import MADE_BY, beside
from .python_program import python_program

_PYTHON = '''

@functools.cache
def loaded():
    """Return a queue, the kernels, and all buffers, which hold the constants; PYOPENCL_CTX chooses the device."""
    context = cl.create_some_context(interactive=False)
    queue, here = cl.CommandQueue(context), Path(__file__).resolve()
    program = cl.Program(context, here.with_name(FILE).read_text()).build(options=["-cl-std=CL1.2"])
    buffers = [cl.Buffer(context, cl.mem_flags.READ_WRITE, size) for size in SIZES]
    for number, start in CONSTANTS:
        data = np.fromfile(here.with_name(CONSTANTS_FILE), np.uint8, SIZES[number], offset=start)
        cl.enqueue_copy(queue, buffers[number], data)
    return queue, [cl.Kernel(program, name) for name, _, _, _, _ in LAUNCHES], buffers


def launch(arrays):
    """Copy inputs to the device, launch the kernels in order, and copy outputs back."""
    queue, kernels, buffers = loaded()
    for (_, _, _, is_output), place, array in zip(ARGUMENTS, PLACES, arrays):
        if not is_output:
            cl.enqueue_copy(queue, buffers[place], array)
    for kernel, (_, grid, block, _, taken) in zip(kernels, LAUNCHES):
        kernel.set_args(*(buffers[number] for number in taken))
        cl.enqueue_nd_range_kernel(queue, kernel, tuple(g * b for g, b in zip(grid, block)), block)
    for (_, _, _, is_output), place, array in zip(ARGUMENTS, PLACES, arrays):
        if is_output:
            cl.enqueue_copy(queue, array, buffers[place])
    queue.finish()
'''
_C = Template("""\
/* Runs kernel $name of $file, $made_by, by OpenCL, on files of raw bytes:
 * cc -o $host $host.c -lOpenCL
 * With -DLW_NO_MAIN it is a function for other programs. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

$tables
static cl_context context;
static cl_command_queue queue;
static cl_kernel kernels[LAUNCHES];
static cl_mem buffers[BUFFERS];

#define CHECK(call) do { cl_int status_ = (call); if (status_) return failed(#call, status_); } while (0)

static int failed(const char *call, cl_int status) {
  fprintf(stderr, "%s: error %d of OpenCL\\n", call, (int)status);
  return 1;
}

/* The first GPU, or else the first device of any kind. */
static cl_device_id device(void) {
  cl_platform_id platforms[16];
  cl_uint count = 0;
  if (clGetPlatformIDs(16, platforms, &count)) return 0;
  for (int any = 0; any < 2; any++)
    for (cl_uint n = 0; n < count && n < 16; n++) {
      cl_device_id found;
      if (!clGetDeviceIDs(platforms[n], any ? CL_DEVICE_TYPE_ALL : CL_DEVICE_TYPE_GPU, 1, &found, 0)) return found;
    }
  return 0;
}

static char *text_of(const char *file) {
  FILE *stream = fopen(file, "rb");
  char *text = 0;
  if (stream && !fseek(stream, 0, SEEK_END)) {
    long size = ftell(stream);
    rewind(stream);
    text = calloc((size_t)size + 1, 1);
    if (text && fread(text, 1, (size_t)size, stream) != (size_t)size) *text = 0;
  }
  if (stream) fclose(stream);
  if (!text) fprintf(stderr, "%s: not read\\n", file);
  return text;
}

static int build(cl_device_id on, cl_program program) {
  static char log[1 << 14];
  cl_int status = clBuildProgram(program, 1, &on, "-cl-std=CL1.2", 0, 0);
  if (status && !clGetProgramBuildInfo(program, on, CL_PROGRAM_BUILD_LOG, sizeof log, log, 0)) fputs(log, stderr);
  return status;
}

static int load(void) {
  cl_int status;
  cl_device_id on = device();
  char *text = text_of(LW_FOLDER "/$file");
  if (!on || !text) return failed("a device, and code for it", CL_DEVICE_NOT_FOUND);
  context = clCreateContext(0, 1, &on, 0, 0, &status);
  CHECK(status);
  queue = clCreateCommandQueue(context, on, 0, &status);
  CHECK(status);
  cl_program program = clCreateProgramWithSource(context, 1, (const char **)&text, 0, &status);
  CHECK(status);
  free(text);
  CHECK(build(on, program));
  for (int n = 0; n < LAUNCHES; n++) {
    kernels[n] = clCreateKernel(program, LAUNCH[n].name, &status);
    CHECK(status);
  }
  for (int n = 0; n < BUFFERS; n++) {
    buffers[n] = clCreateBuffer(context, CL_MEM_READ_WRITE, SIZES[n], 0, &status);
    CHECK(status);
  }
  return 0;
}

static int attach(void) { return 0; }

static int upload(int buffer, const void *array) {
  CHECK(clEnqueueWriteBuffer(queue, buffers[buffer], CL_TRUE, 0, SIZES[buffer], array, 0, 0, 0));
  return 0;
}

static int download(void *array, int buffer) {
  CHECK(clEnqueueReadBuffer(queue, buffers[buffer], CL_TRUE, 0, SIZES[buffer], array, 0, 0, 0));
  return 0;
}

static int launch(void) {
  for (int n = 0; n < LAUNCHES; n++) {
    size_t sizes[3];
    for (int i = 0; i < 3; i++) sizes[i] = LAUNCH[n].grid[i] * LAUNCH[n].block[i];
    for (int i = 0; i < LAUNCH[n].count; i++)
      CHECK(clSetKernelArg(kernels[n], (cl_uint)i, sizeof(cl_mem), &buffers[LAUNCH[n].buffers[i]]));
    CHECK(clEnqueueNDRangeKernel(queue, kernels[n], 3, 0, sizes, LAUNCH[n].block, 0, 0, 0));
  }
  return 0;
}
""")


def run_from_python(program: DeviceProgram) -> str:
    """Return the text of `k_run.py` for `k.cl`."""
    known = program.tables()
    name, needs = program.kernel.name, " and pyopencl"
    return python_program(program.path, name, program.arguments, known, _PYTHON, ["pyopencl"], needs)


def run_from_c(program: DeviceProgram) -> str:
    """Return the text of `k_host.c` for `k.cl`."""
    head = _C.substitute(
        name=program.kernel.name,
        file=program.path.name,
        host=beside(program.path, "_host").name,
        made_by=MADE_BY,
        tables=program.c_tables(),
    )
    return head + program.c_function()
