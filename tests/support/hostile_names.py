"""Names that try to be more than that: what ends a line, a string, a comment or a tag, and what is too much."""

HOSTILE = {
    "newline": "x\ndefine void @evil() { ret void }\n;",
    "carriage return": "x\rdefine",
    "quote": 'x"',
    "end of a string": '"; }',
    "end of an attribute": "x' onload='alert(1)",
    "backslash": "x\\",
    "line continuation": "x\\\n",
    "escaped quote": "\\22",
    "nul": "x\0y",
    "end of a comment": "*/ x /*",
    "end of a script": "</script><script>alert(1)</script>",
    "entity": "&lt;img src=x onerror=alert(1)&gt;",
    "command": "$(touch evil)",
    "backticks": "`touch evil`",
    "words of a shell": "; touch evil #",
    "escape sequence": "\x1b[2J\x1b]0;evil\x07",
    "bidi": "x\u202egro.live\u202c",
    "look-alike": "m\u0430in",
    "format": "{0.__class__} %s %n",
    "path": "../../../evil",
    "template": "{{7*7}}",
    "python": "__import__('os').mkdir('evil')",
    "empty": "",
    "space": "a b",
    "digit": "0x",
    "surrogate": "x\ud800",
    "long": "x" * 10_000,
}
"""By what they try."""

_WORDS = """
int float for if main register restrict template operator this union volatile half half2 float4 long kernel
__kernel global __global local constant get_global_id get_local_id get_group_id barrier shared_memory printf NULL
threadIdx blockIdx blockDim __syncthreads __shared__ INFINITY NAN M_PI max min fma floor select vload4 as_float
convert_int sampler_t image2d_t event_t size_t uint uchar linux unix define pragma include defined assert
mem_fence atomic_add work_group_barrier sub_group_barrier isnan erf exp lambda class import entry ret declare
lw_run lw_time kernel_k0 main_k0 f v1 a0 _ __ x.y x$y x.0 T
"""
WORDS = tuple(_WORDS.split())
"""Legal names that mean something in C, CUDA, OpenCL, LLVM or Python."""
