"""LLVM text for calls without a team: tables of kernels one after the other, parallel loops by OpenMP or alone."""

from __future__ import annotations

from .symbols import PARALLEL_SYMBOL, THREAD_SYMBOL

RUN_KERNELS = "lw_run_kernels"
KERNELS = f"""
define void @{RUN_KERNELS}(ptr %table, i64 %number) {{
entry:
  br label %again
again:
  %count = phi i64 [ 0, %entry ], [ %counted, %ran ]
  %more = icmp slt i64 %count, %number
  br i1 %more, label %next, label %end
next:
  %at = phi ptr [ %table, %again ], [ %after, %call ]
  %kernel = load ptr, ptr %at
  %ended = icmp eq ptr %kernel, null
  br i1 %ended, label %ran, label %call
call:
  %place = getelementptr ptr, ptr %at, i64 1
  %arguments = load ptr, ptr %place
  call void %kernel(ptr %arguments)
  %after = getelementptr ptr, ptr %at, i64 2
  br label %next
ran:
  %counted = add i64 %count, 1
  br label %again
end:
  ret void
}}
"""
"""A function that runs a table, any number of times: pairs of a kernel and the pointers it takes, then a null."""

BY_OPENMP = "lw.by_openmp"
OPENMP_TEXT = f"""
declare void @{PARALLEL_SYMBOL}(ptr, ptr, i32, i32)
declare i32 @{THREAD_SYMBOL}()

define internal void @lw.member(ptr %region) {{
  %run = load ptr, ptr %region, align 8
  %at = getelementptr ptr, ptr %region, i64 1
  %context = load ptr, ptr %at, align 8
  %me = call i32 @{THREAD_SYMBOL}()
  call void %run(ptr %context, i32 %me)
  ret void
}}

define internal void @{BY_OPENMP}(ptr %run, ptr %context, i32 %threads, i32 %used) {{
  %region = alloca [2 x ptr], align 8
  %at = getelementptr ptr, ptr %region, i64 1
  store ptr %run, ptr %region, align 8
  store ptr %context, ptr %at, align 8
  call void @{PARALLEL_SYMBOL}(ptr @lw.member, ptr %region, i32 %threads, i32 0)
  ret void
}}
"""
"""A region by OpenMP alone. It has all threads, also where few take part: GNU's runtime ends those that a smaller
region leaves over, and starts others for the next one (four threads, then two, then four are six in all)."""
