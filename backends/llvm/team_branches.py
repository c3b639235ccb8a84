"""LLVM text that runs tables of kernels beside each other, by the threads of a team: a table each."""

from __future__ import annotations

from ..arrays import CACHE_LINE_BYTES
from .without_team import RUN_KERNELS

RUN_BRANCHES = "lw_run_branches"
BRANCHES, TEAM_SIZE, TEAM_PART, TEAM_AT, BRANCH_TABLES = (CACHE_LINE_BYTES + offset for offset in (0, 4, 8, 16, 24))
"""Bytes of the context of branches, behind a cache line with the number of the next one, which all threads write: their
number, the threads of the team, and those that take part, 32 bits each, the address of what kernels call for their
parallel loops (`TEAM_SYMBOL`), then those of the tables."""
BRANCHES_TEXT = f"""
define internal void @take_branches(ptr %context, i32 %me) {{
entry:
  %countat = getelementptr i8, ptr %context, i64 {BRANCHES}
  %partat = getelementptr i8, ptr %context, i64 {TEAM_PART}
  %tables = getelementptr i8, ptr %context, i64 {BRANCH_TABLES}
  %count = load i32, ptr %countat, align 4
  %part = load i32, ptr %partat, align 4
  %partof = icmp ult i32 %me, %part
  br i1 %partof, label %next, label %done
next:
  %number = atomicrmw add ptr %context, i32 1 monotonic, align 4
  %some = icmp ult i32 %number, %count
  br i1 %some, label %run, label %done
run:
  %at = getelementptr ptr, ptr %tables, i32 %number
  %table = load ptr, ptr %at, align 8
  call void @{RUN_KERNELS}(ptr %table, i64 1)
  br label %next
done:
  ret void
}}

define void @{RUN_BRANCHES}(ptr %arguments) {{
  %context = load ptr, ptr %arguments, align 8
  %sizeat = getelementptr i8, ptr %context, i64 {TEAM_SIZE}
  %partat = getelementptr i8, ptr %context, i64 {TEAM_PART}
  %teamat = getelementptr i8, ptr %context, i64 {TEAM_AT}
  %size = load i32, ptr %sizeat, align 4
  %part = load i32, ptr %partat, align 4
  %symbol = load ptr, ptr %teamat, align 8
  %team = load ptr, ptr %symbol, align 8
  store atomic i32 0, ptr %context monotonic, align 4
  %alone = icmp eq ptr %team, null
  br i1 %alone, label %serial, label %beside
serial:
  call void @take_branches(ptr %context, i32 0)
  ret void
beside:
  call void %team(ptr @take_branches, ptr %context, i32 %size, i32 %part)
  ret void
}}
"""
"""A kernel of a table that runs several tables beside each other, whose kernels have no parallel loops: each thread
takes the next one, until none is left. Where there is no team, as in some forked children, one thread takes all."""
