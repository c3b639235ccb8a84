"""Harm that candidates may do to their process or others: bodies for `raw_llvm_backend`, and words of the record."""

from raw_llvm_backend import DOUBLE


def loop(body: str, times: int, then: str = "") -> str:
    """Machine code that does `body` so many times; `%n` is the turn."""
    return f"""br label %again
again:
 %n = phi i32 [ 0, %entry ], [ %turned, %again ]
 {body}
 %turned = add i32 %n, 1
 %goes = icmp ult i32 %turned, {times}
 br i1 %goes, label %again, label %out
out:
 {then}"""


TWICE = DOUBLE.replace("%entry", "%begin")
BEGIN = "br label %begin\nbegin:"
HANG = "%idle = call i32 @pause()"
PROCESS_FAULTS = {
    "returns twice": (f"%p = call i32 @fork()\n {BEGIN} {TWICE}", "started a process"),
    "returns twice, far away": (
        f"%p = call i32 @fork()\n %s = call i32 @setsid()\n {BEGIN} {TWICE}",
        "started a process",
    ),
    "leaves a daemon": (
        f"""%p = call i32 @fork()
 %child = icmp eq i32 %p, 0
 br i1 %child, label %daemon, label %begin
daemon:
 %s = call i32 @setsid()
 %was = call ptr @signal(i32 15, ptr inttoptr (i64 1 to ptr))
 {HANG}
 unreachable
begin: {TWICE}""",
        "started a process",
    ),
    "exits": ("call void @exit(i32 3)", "exited with status 3"),
    "lowers its limits": (
        f"""%limit = alloca [2 x i64]
 store [2 x i64] [i64 20, i64 20], ptr %limit
 %l = call i32 @setrlimit(i32 7, ptr %limit)
 {BEGIN} {TWICE}""",
        "lowered the limit RLIMIT_NOFILE of its process to 20",
    ),
    "goes elsewhere": (
        f"""%path = alloca [2 x i8]
 store [2 x i8] c"/\\00", ptr %path
 %l = call i32 @chdir(ptr %path)
 {BEGIN} {TWICE}""",
        "changed the working directory",
    ),
    "sets an alarm": (f"%l = call i32 @alarm(i32 60)\n {BEGIN} {TWICE}", "left a timer running"),
    "closes its output": (f"%l = call i32 @close(i32 1)\n {BEGIN} {TWICE}", "closed or replaced a standard stream"),
    "closes everything": (loop("%l = call i32 @close(i32 %n)", 256), "exited with status"),
    "babbles": (loop("%l = call i64 @write(i32 %n, ptr %x, i64 256)", 256), "answered with what is no message"),
    "kills its group": ("%k = call i32 @kill(i32 0, i32 9)", "killed by SIGKILL"),
    "kills its parent": (
        f"%g = call i32 @getppid()\n %k = call i32 @kill(i32 %g, i32 9)\n {HANG}",
        "killed by SIGKILL",
    ),
    "allocates 100 TB": (
        "%m = call ptr @malloc(i64 100000000000000)\n store i8 1, ptr %m",
        "killed by SIGSEGV",
    ),
    "stops": ("%k = call i32 @raise(i32 19)", "longer than 0.8 s"),
    "ignores what it is told": (
        f"%was = call ptr @signal(i32 15, ptr inttoptr (i64 1 to ptr))\n {HANG}",
        "longer than 0.8 s",
    ),
}
"""Signals and limits by their numbers on Linux. Those that hang have words for a limit of 0.8 s."""
