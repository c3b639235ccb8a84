"""A backend whose schedules are bodies of LLVM functions `(ptr %x, ptr %y)` on 64 floats, compiled to machine code."""

from loopwright.backends.llvm.device import device_name, load, warm_up
from loopwright.backends.llvm.executable import Artifact
from loopwright.backends.llvm.jit import compile_text
from loopwright.backends.signature import Argument

__all__ = ["build", "device_name", "load", "versions", "warm_up"]

N = 64
DOUBLE = """
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr float, ptr %x, i64 %i
  %to = getelementptr float, ptr %y, i64 %i
  %value = load float, ptr %from
  %twice = fadd float %value, %value
  store float %twice, ptr %to
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 64
  br i1 %more, label %loop, label %done
done:
"""
"""The right body: `y = 2 * x`."""
FRAME = """
declare i32 @fork()
declare i32 @setsid()
declare i32 @getppid()
declare i32 @kill(i32, i32)
declare i32 @raise(i32)
declare i32 @close(i32)
declare i32 @chdir(ptr)
declare i32 @pause()
declare i32 @alarm(i32)
declare i32 @setrlimit(i32, ptr)
declare i64 @write(i32, ptr, i64)
declare ptr @malloc(i64)
declare ptr @signal(i32, ptr)
declare void @exit(i32)
define void @kernel(ptr %x, ptr %y) noinline {{
entry:
{body}
  ret void
}}
define void @lw_run(ptr %p) {{
  %q = getelementptr ptr, ptr %p, i64 1
  %x = load ptr, ptr %p
  %y = load ptr, ptr %q
  call void @kernel(ptr %x, ptr %y)
  ret void
}}
define void @lw_time(ptr %p, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @lw_run(ptr %p)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


def one_line(body: str) -> str:
    """A body as a schedule that a record can hold."""
    return body.replace("\n", "|")


def build(workload: str, schedule: str) -> bytes:
    arguments = (Argument("x", "float32", (N,), False), Argument("y", "float32", (N,), True))
    code = compile_text(FRAME.format(body=schedule.replace("|", "\n"))).object_code
    return Artifact("kernel", arguments, 0, 1, code).to_bytes()


def versions() -> dict[str, str]:
    return {}
