"""LLVM text of how threads of a team wait: awake by the processor's pause, asleep by a futex or by pthreads."""

from __future__ import annotations

from ..arrays import CACHE_LINE_BYTES

FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "loongarch64": 98, "powerpc64le": 221, "s390x": 238}
"""The number of Linux's system call, by architecture (syscalls(2)); others with 64 bits, and all with 32, sleep by a
monitor of pthreads."""
MONITOR, CONDITION_AT, _MONITOR_BYTES = "lw_monitor", 128, 256
"""A mutex of pthreads, and a condition so many bytes behind it: more than any system needs of them (macOS 64 and 48,
glibc 48 and 48)."""
_PAUSES = {"x86_64": "@llvm.x86.sse2.pause()", "aarch64": "@llvm.aarch64.hint(i32 1)"}
_FUTEX_WAIT, _FUTEX_WAKE = 128, 129
"""FUTEX_WAIT and FUTEX_WAKE among the threads of a process (futex(2))."""
_WOKEN = 2
"""Sleepers that a thread wakes, who each wake as many: sixteen threads are awake after four times the time of one."""


def waiting_text(arch: str, futex: int | None) -> str:
    """Return `pause()`, `sleep(word, value)`, while the word has that value, and `wake(word)`.

    Threads sleep by the system call `futex`; where there is none, by a monitor that who loads the text makes.
    """
    monitor = f"@{MONITOR} = global [{_MONITOR_BYTES} x i8] zeroinitializer, align {CACHE_LINE_BYTES}"
    return "\n".join((monitor, _pause(arch), _MONITOR if futex is None else _sleeping(futex)))


def _pause(arch: str) -> str:
    """Return the function that waits for some cycles as the processor likes it."""
    call = _PAUSES.get(arch)
    declared = f"declare void {call.replace('i32 1', 'i32')}" if call else ""
    wait = f"  call void {call}" if call else "  fence seq_cst"
    return f"{declared}\ndefine internal void @pause() alwaysinline {{\n{wait}\n  ret void\n}}"


def _sleeping(futex: int) -> str:
    call = f"call i64 (i64, ...) @syscall(i64 {futex}, ptr %word"
    return f"""
declare i64 @syscall(i64, ...)

define internal void @sleep(ptr %word, i32 %value) noinline {{
  %r = {call}, i32 {_FUTEX_WAIT}, i32 %value, ptr null, ptr null, i32 0)
  ret void
}}

define internal void @wake(ptr %word) noinline {{
  %r = {call}, i32 {_FUTEX_WAKE}, i32 {_WOKEN}, ptr null, ptr null, i32 0)
  ret void
}}
"""


_MONITOR = f"""
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)

define internal void @sleep(ptr %word, i32 %value) noinline {{
  %l = call i32 @pthread_mutex_lock(ptr @{MONITOR})
  %now = load atomic i32, ptr %word seq_cst, align 4
  %same = icmp eq i32 %now, %value
  br i1 %same, label %asleep, label %done
asleep:
  %condition = getelementptr i8, ptr @{MONITOR}, i64 {CONDITION_AT}
  %w = call i32 @pthread_cond_wait(ptr %condition, ptr @{MONITOR})
  br label %done
done:
  %u = call i32 @pthread_mutex_unlock(ptr @{MONITOR})
  ret void
}}

define internal void @wake(ptr %word) noinline {{
  %l = call i32 @pthread_mutex_lock(ptr @{MONITOR})
  %condition = getelementptr i8, ptr @{MONITOR}, i64 {CONDITION_AT}
  %b = call i32 @pthread_cond_broadcast(ptr %condition)
  %u = call i32 @pthread_mutex_unlock(ptr @{MONITOR})
  ret void
}}
"""
"""Sleeping and waking as a futex does, but for all words at once: who is woken for nothing lies down again."""
