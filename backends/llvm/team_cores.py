"""LLVM text by which a helper leaves the core of the thread that it helps, where it was woken on that."""

from __future__ import annotations

_MASK_BYTES = 128
"""Of `cpu_set_t`, for 1024 cores (CPU_SET(3)); a system with more refuses it, and helpers stay where they are."""

CORES_BY_LINUX = f"""
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)

define internal i32 @core() alwaysinline {{
  %core = call i32 @sched_getcpu()
  ret i32 %core
}}

define internal void @move() noinline {{
entry:
  %all = alloca [{_MASK_BYTES} x i8], align 8
  %others = alloca [{_MASK_BYTES} x i8], align 8
  %now = alloca [{_MASK_BYTES} x i8], align 8
  %core = call i32 @sched_getcpu()
  %a = call i32 @sched_getaffinity(i32 0, i64 {_MASK_BYTES}, ptr %all)
  %known = icmp eq i32 %a, 0
  %within = icmp ult i32 %core, {8 * _MASK_BYTES}
  %both = and i1 %known, %within
  br i1 %both, label %leave, label %done
leave:
  call void @llvm.memcpy.p0.p0.i64(ptr %others, ptr %all, i64 {_MASK_BYTES}, i1 false)
  %word = lshr i32 %core, 6
  %place = and i32 %core, 63
  %wide = zext i32 %place to i64
  %bit = shl i64 1, %wide
  %kept = xor i64 %bit, -1
  %at = getelementptr i64, ptr %others, i32 %word
  %old = load i64, ptr %at, align 8
  %new = and i64 %old, %kept
  store i64 %new, ptr %at, align 8
  %b = call i32 @sched_setaffinity(i32 0, i64 {_MASK_BYTES}, ptr %others)
  %moved = icmp eq i32 %b, 0
  br i1 %moved, label %look, label %done
look:
  %c = call i32 @sched_getaffinity(i32 0, i64 {_MASK_BYTES}, ptr %now)
  %d = call i32 @memcmp(ptr %now, ptr %others, i64 {_MASK_BYTES})
  %unchanged = icmp eq i32 %d, 0
  br i1 %unchanged, label %restore, label %done
restore:
  %e = call i32 @sched_setaffinity(i32 0, i64 {_MASK_BYTES}, ptr %all)
  br label %done
done:
  ret void
}}

declare i32 @memcmp(ptr, ptr, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
"""`core()`, the number of this thread's core, and `move()`, to another one that it may be on, where there is any.

Linux wakes a thread on an idle core, and where none is, on that of the one that wakes it or where it was last: caller
and helper come to share a core while another process has the next one, for as long as a call takes. By the thread's set
of cores it moves at once, and then has them all again, unless someone has given it others meanwhile: it may wait for
its new core for milliseconds. Two threads of our own on two cores of a Zen 4 at a load of 7 to 8, ms, median / mean of
calls a millisecond apart: a convolution of 256x14x14 by 3x3 2.43 / 2.49 without this and 2.10 / 2.24 with it, where one
thread takes 2.33 / 2.48; softmax of 512x1024 0.29 / 0.33, 0.21 / 0.26 and 0.22 / 0.27.
"""

CORES_UNKNOWN = """
define internal i32 @core() alwaysinline {
  ret i32 -1
}

define internal void @move() alwaysinline {
  ret void
}
"""
"""Of systems that place threads in ways of their own: none is on another's core."""
