"""LLVM text of a team: who calls runs tables of kernels, and hands their parallel loops to helpers.

A slot is a team's state. It is claimed for the time of a call by the thread that calls, its owner; kernels find it by
the thread they run on. What threads call that find no slot free runs as if there were no team.

A loop has a number, the epoch. The owner writes what there is to do, raises the epoch, and does it. Then it closes the
epoch, and waits for the helpers that are inside. A helper enters an epoch, then looks whether that is closed: one of
the two always sees the other (both exchange values with sequential consistency).
"""

from __future__ import annotations

from ..arrays import CACHE_LINE_BYTES
from .symbols import MOST_THREADS, PARALLEL_SYMBOL, SIZE_SYMBOL, THREAD_SYMBOL
from .team_cores import CORES_BY_LINUX, CORES_UNKNOWN
from .team_waiting import waiting_text
from .without_team import BY_OPENMP, KERNELS, OPENMP_TEXT, RUN_KERNELS

RUN, HAND_OUT, OWNERS = "lw_run_table", "lw_hand_out", "lw_owners"
IN_TEAM, OTHERS = "lw_in_team", "lw_others"
"""A function that hands a loop to the helpers of the thread it runs on, 0 where that has none here; and the place of
the address of another team's, which is asked then."""

_SLOTS = 8
"""Calls at a time that have a team each; a choice: with more of them cores are short."""
_JOB, _SLEEPERS, _CLOSED, _WAITING, _ARRIVED, _HELPERS = (CACHE_LINE_BYTES * place for place in range(6))
"""Bytes behind a slot: each part of the state that one thread writes has a cache line of its own."""
_CONTEXT, _USED, _END, _SPINS, _STARTED, _EPOCH, _CORE = (_JOB + offset for offset in (8, 16, 20, 24, 28, 32, 36))
"""Bytes behind the function of the loop: on one line, so that who waits for the epoch gets them with it."""
_ME, _SLOT = 8, 16
"""Bytes behind the epoch that a helper is inside of, at which it finds its number and the slot, if it is our thread."""
_SLOT_BYTES = _HELPERS + CACHE_LINE_BYTES * MOST_THREADS
OWNERS_BYTES = 8 * _SLOTS + _SLOTS * _SLOT_BYTES
_NAP_US = 50
"""Microseconds that a caller sleeps at a time while OpenMP's threads have not come to its region, which it cannot leave
without them; by its own waiting it would keep them from the core they share with it."""


def team_text(arch: str, openmp: bool, futex: int | None) -> str:
    """Return the text of a team whose helpers are OpenMP's threads, else threads of its own.

    They sleep by Linux's system call of that number; where there is none, by a monitor that who loads the text makes.
    """
    head = f"""
@{OWNERS} = global [{OWNERS_BYTES} x i8] zeroinitializer, align {CACHE_LINE_BYTES}
declare ptr @pthread_self()
"""
    cores = CORES_UNKNOWN if futex is None else CORES_BY_LINUX
    parts = [head, waiting_text(arch, futex), cores, KERNELS, _FIND, _PUBLISH, _FINISH, _HELP]
    parts += [OPENMP_TEXT, _AWAIT, _IN_REGION] if openmp else [_OWN_THREADS]
    return "\n".join([*parts, _hand_out(openmp), _RUN])


def _at(name: str, offset: int, base: str = "%slot") -> str:
    return f"  %{name} = getelementptr i8, ptr {base}, i64 {offset}"


def _turn(asleep: str) -> str:
    """A turn of a loop `spin` that waits awake: after `%spins` of them it goes on asleep."""
    return f"""  call void @pause()
  %turns = add i32 %turn, 1
  %long = icmp ugt i32 %turns, %spins
  br i1 %long, label %{asleep}, label %wait
wait:
  br label %spin"""


_FIND = f"""
define internal ptr @find(i64 %wanted, i64 %new) {{
entry:
  br label %look
look:
  %number = phi i64 [ 0, %entry ], [ %following, %other ]
  %at = getelementptr i64, ptr @{OWNERS}, i64 %number
  %held = load atomic i64, ptr %at monotonic, align 8
  %same = icmp eq i64 %held, %wanted
  br i1 %same, label %take, label %other
take:
  %pair = cmpxchg ptr %at, i64 %wanted, i64 %new seq_cst seq_cst, align 8
  %taken = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %taken, label %found, label %other
other:
  %following = add i64 %number, 1
  %more = icmp slt i64 %following, {_SLOTS}
  br i1 %more, label %look, label %none
none:
  ret ptr null
found:
  %bytes = mul i64 %number, {_SLOT_BYTES}
  %slots = getelementptr i8, ptr @{OWNERS}, i64 {8 * _SLOTS}
  %slot = getelementptr i8, ptr %slots, i64 %bytes
  ret ptr %slot
}}
"""
"""The slot whose owner is the one that is wanted, after which it is a new one's; null where there is none."""

_PUBLISH = f"""
define internal i32 @publish(ptr %slot) {{
{_at("epochat", _EPOCH)}
{_at("sleepersat", _SLEEPERS)}
  %old = load atomic i32, ptr %epochat monotonic, align 4
  %next = add i32 %old, 1
  %zero = icmp eq i32 %next, 0
  %new = select i1 %zero, i32 1, i32 %next
  %was = atomicrmw xchg ptr %epochat, i32 %new seq_cst, align 4
  %sleepers = load atomic i32, ptr %sleepersat seq_cst, align 4
  %some = icmp ne i32 %sleepers, 0
  br i1 %some, label %call, label %done
call:
  call void @wake(ptr %epochat)
  br label %done
done:
  ret i32 %new
}}
"""
"""A new epoch, told to those that sleep. It is never 0, which says of a helper that it is in none."""

_FINISH = f"""
define internal void @finish(ptr %slot, i32 %epoch, i32 %used) {{
entry:
{_at("closedat", _CLOSED)}
{_at("waitingat", _WAITING)}
{_at("spinsat", _SPINS)}
  %spins = load i32, ptr %spinsat, align 4
  %was = atomicrmw xchg ptr %closedat, i32 %epoch seq_cst, align 4
  br label %next
next:
  %helper = phi i32 [ 1, %entry ], [ %following, %left ]
  %more = icmp slt i32 %helper, %used
  br i1 %more, label %look, label %done
look:
  %wide = zext i32 %helper to i64
  %bytes = mul i64 %wide, {CACHE_LINE_BYTES}
{_at("helpers", _HELPERS)}
  %at = getelementptr i8, ptr %helpers, i64 %bytes
  br label %spin
spin:
  %turn = phi i32 [ 0, %look ], [ %turns, %wait ]
  %inside = load atomic i32, ptr %at seq_cst, align 4
  %there = icmp eq i32 %inside, %epoch
  br i1 %there, label %pausing, label %left
pausing:
{_turn("lie")}
lie:
  %w = atomicrmw xchg ptr %waitingat, i32 1 seq_cst, align 4
  br label %lying
lying:
  %now = load atomic i32, ptr %at seq_cst, align 4
  %still = icmp eq i32 %now, %epoch
  br i1 %still, label %asleep, label %up
asleep:
  call void @sleep(ptr %at, i32 %epoch)
  br label %lying
up:
  %u = atomicrmw xchg ptr %waitingat, i32 0 seq_cst, align 4
  br label %left
left:
  %following = add i32 %helper, 1
  br label %next
done:
  ret void
}}
"""
"""Close an epoch, and wait for those inside: awake, then asleep, of which `waiting` tells them."""

_HELP = f"""
define internal void @help(ptr %slot, i32 %me) {{
entry:
{_at("epochat", _EPOCH)}
{_at("sleepersat", _SLEEPERS)}
{_at("closedat", _CLOSED)}
{_at("waitingat", _WAITING)}
{_at("jobat", _JOB)}
{_at("contextat", _CONTEXT)}
{_at("usedat", _USED)}
{_at("endat", _END)}
{_at("spinsat", _SPINS)}
{_at("coreat", _CORE)}
{_at("helpers", _HELPERS)}
  %wide = zext i32 %me to i64
  %bytes = mul i64 %wide, {CACHE_LINE_BYTES}
  %at = getelementptr i8, ptr %helpers, i64 %bytes
  br label %seen
seen:
  %epoch = load atomic i32, ptr %epochat seq_cst, align 4
  %end = load atomic i32, ptr %endat monotonic, align 4
  %ended = icmp ne i32 %end, 0
  br i1 %ended, label %done, label %asked
asked:
  %hint = load atomic i32, ptr %usedat acquire, align 4
  %wanted = icmp slt i32 %me, %hint
  br i1 %wanted, label %beside, label %spin
beside:
  %theirs = load atomic i32, ptr %coreat monotonic, align 4
  %mine = call i32 @core()
  %shared = icmp eq i32 %theirs, %mine
  br i1 %shared, label %part, label %enter
part:
  call void @move()
  br label %enter
enter:
  %i = atomicrmw xchg ptr %at, i32 %epoch seq_cst, align 4
  %closed = load atomic i32, ptr %closedat seq_cst, align 4
  %over = icmp eq i32 %closed, %epoch
  br i1 %over, label %leave, label %current
current:
  %latest = load atomic i32, ptr %epochat seq_cst, align 4
  %same = icmp eq i32 %latest, %epoch
  br i1 %same, label %check, label %leave
check:
  %used = load atomic i32, ptr %usedat monotonic, align 4
  %partof = icmp slt i32 %me, %used
  br i1 %partof, label %work, label %leave
work:
  %run = load ptr, ptr %jobat, align 8
  %context = load ptr, ptr %contextat, align 8
  call void %run(ptr %context, i32 %me)
  br label %leave
leave:
  %o = atomicrmw xchg ptr %at, i32 0 seq_cst, align 4
  %waiting = load atomic i32, ptr %waitingat seq_cst, align 4
  %someone = icmp ne i32 %waiting, 0
  br i1 %someone, label %tell, label %spin
tell:
  call void @wake(ptr %at)
  br label %spin
spin:
  %turn = phi i32 [ 0, %asked ], [ 0, %leave ], [ 0, %tell ], [ %turns, %wait ]
  %now = load atomic i32, ptr %epochat seq_cst, align 4
  %new = icmp ne i32 %now, %epoch
  br i1 %new, label %seen, label %pausing
pausing:
  %spins = load atomic i32, ptr %spinsat monotonic, align 4
{_turn("lie")}
lie:
  %s = atomicrmw add ptr %sleepersat, i32 1 seq_cst, align 4
  call void @sleep(ptr %epochat, i32 %epoch)
  %t = atomicrmw sub ptr %sleepersat, i32 1 seq_cst, align 4
  %since = load atomic i32, ptr %epochat seq_cst, align 4
  %other = icmp ne i32 %since, %epoch
  br i1 %other, label %up, label %lie
up:
  %asleep = icmp ugt i32 %t, 1
  br i1 %asleep, label %others, label %seen
others:
  call void @wake(ptr %epochat)
  br label %seen
done:
  ret void
}}
"""
"""A helper's life: it enters an epoch that is open and wants so many, does what there is to do, and waits for the next
one. Where it reads what is done of an epoch, the owner cannot write the next one's: it waits for it. A number of
threads that is the next epoch's is seen after the close of this one: it is released by the owner, acquired here."""

_AWAIT = f"""
declare i32 @{SIZE_SYMBOL}()
declare i32 @usleep(i32)

define internal void @await(ptr %slot) {{
entry:
{_at("arrivedat", _ARRIVED)}
{_at("spinsat", _SPINS)}
  %spins = load i32, ptr %spinsat, align 4
  %team = call i32 @{SIZE_SYMBOL}()
  %helpers = sub i32 %team, 1
  br label %spin
spin:
  %turn = phi i32 [ 0, %entry ], [ %turns, %wait ], [ %turns, %nap ]
  %arrived = load atomic i32, ptr %arrivedat seq_cst, align 4
  %all = icmp sge i32 %arrived, %helpers
  br i1 %all, label %done, label %pausing
pausing:
{_turn("nap")}
nap:
  %r = call i32 @usleep(i32 {_NAP_US})
  br label %spin
done:
  ret void
}}
"""
"""Wait until all of OpenMP's threads are in the region."""

_DONE, _TIME_UTC = 24, 1
"""Bytes behind the slot of a region where the time is at which its first thread has run all kernels, and the clock of
it: as C11's `timespec_get` has it, which all systems with OpenMP have."""
_IN_REGION = f"""
declare i32 @timespec_get(ptr, i32)

define internal void @member(ptr %task) {{
entry:
  %slot = load ptr, ptr %task, align 8
  %me = call i32 @{THREAD_SYMBOL}()
  %first = icmp eq i32 %me, 0
  br i1 %first, label %lead, label %follow
lead:
{_at("tableat", 8, "%task")}
{_at("numberat", 16, "%task")}
  %table = load ptr, ptr %tableat, align 8
  %number = load i64, ptr %numberat, align 8
{_at("doneat", _DONE, "%task")}
  call void @{RUN_KERNELS}(ptr %table, i64 %number)
  %d = call i32 @timespec_get(ptr %doneat, i32 {_TIME_UTC})
{_at("endat", _END)}
{_at("closedat", _CLOSED)}
  store atomic i32 1, ptr %endat seq_cst, align 4
  %epoch = call i32 @publish(ptr %slot)
  store atomic i32 %epoch, ptr %closedat seq_cst, align 4
  call void @await(ptr %slot)
  ret void
follow:
{_at("arrivedat", _ARRIVED)}
  %before = atomicrmw add ptr %arrivedat, i32 1 seq_cst, align 4
  call void @help(ptr %slot, i32 %me)
  ret void
}}

define internal i64 @nanoseconds(ptr %time) {{
  %seconds = load i64, ptr %time, align 8
{_at("restat", 8, "%time")}
  %rest = load i64, ptr %restat, align 8
  %scaled = mul i64 %seconds, 1000000000
  %all = add i64 %scaled, %rest
  ret i64 %all
}}

define internal i64 @with_helpers(ptr %slot, ptr %table, i64 %number, i32 %threads) {{
  %task = alloca [{_DONE + 16} x i8], align 8
  %left = alloca [16 x i8], align 8
{_at("tableat", 8, "%task")}
{_at("numberat", 16, "%task")}
{_at("doneat", _DONE, "%task")}
{_at("endat", _END)}
{_at("arrivedat", _ARRIVED)}
  store ptr %slot, ptr %task, align 8
  store ptr %table, ptr %tableat, align 8
  store i64 %number, ptr %numberat, align 8
  store atomic i32 0, ptr %endat seq_cst, align 4
  store atomic i32 0, ptr %arrivedat seq_cst, align 4
  call void @{PARALLEL_SYMBOL}(ptr @member, ptr %task, i32 %threads, i32 0)
  %l = call i32 @timespec_get(ptr %left, i32 {_TIME_UTC})
  %from = call i64 @nanoseconds(ptr %doneat)
  %to = call i64 @nanoseconds(ptr %left)
  %waited = sub i64 %to, %from
  ret i64 %waited
}}
"""
"""All kernels in one region of OpenMP's: its first thread runs them, and ends what the others wait for. The nanoseconds
between the end of its work and that of the region."""

_OWN_THREADS = f"""
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)

define internal ptr @helper(ptr %mine) {{
{_at("meat", _ME, "%mine")}
{_at("slotat", _SLOT, "%mine")}
  %me = load i32, ptr %meat, align 4
  %slot = load ptr, ptr %slotat, align 8
  call void @help(ptr %slot, i32 %me)
  ret ptr null
}}

define internal i64 @with_helpers(ptr %slot, ptr %table, i64 %number, i32 %threads) {{
entry:
  %thread = alloca ptr, align 8
{_at("startedat", _STARTED)}
{_at("helpers", _HELPERS)}
  br label %next
next:
  %started = load i32, ptr %startedat, align 4
  %me = add i32 %started, 1
  %more = icmp slt i32 %me, %threads
  br i1 %more, label %start, label %run
start:
  %wide = zext i32 %me to i64
  %bytes = mul i64 %wide, {CACHE_LINE_BYTES}
  %mine = getelementptr i8, ptr %helpers, i64 %bytes
{_at("meat", _ME, "%mine")}
{_at("slotat", _SLOT, "%mine")}
  store i32 %me, ptr %meat, align 4
  store ptr %slot, ptr %slotat, align 8
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @helper, ptr %mine)
  %none = icmp ne i32 %failed, 0
  br i1 %none, label %run, label %detach
detach:
  %handle = load ptr, ptr %thread, align 8
  %d = call i32 @pthread_detach(ptr %handle)
  store i32 %me, ptr %startedat, align 4
  br label %next
run:
  call void @{RUN_KERNELS}(ptr %table, i64 %number)
  ret i64 0
}}
"""
"""Threads of our own, started when they are first needed; a call does without those that the system does not give."""


def _hand_out(openmp: bool) -> str:
    """The function that kernels call for a parallel loop: by the thread's helpers, else by those it has elsewhere, or
    by OpenMP or alone.
    """
    alone = (
        f"call void @{BY_OPENMP}(ptr %run, ptr %context, i32 %threads, i32 %used)"
        if openmp
        else "call void %run(ptr %context, i32 0)"
    )
    return f"""
@{OTHERS} = global ptr null

define i32 @{IN_TEAM}(ptr %run, ptr %context, i32 %threads, i32 %used) {{
entry:
  %thread = call ptr @pthread_self()
  %me = ptrtoint ptr %thread to i64
  %slot = call ptr @find(i64 %me, i64 %me)
  %none = icmp eq ptr %slot, null
  br i1 %none, label %stranger, label %team
stranger:
  ret i32 0
team:
{_at("jobat", _JOB)}
{_at("contextat", _CONTEXT)}
{_at("usedat", _USED)}
  store ptr %run, ptr %jobat, align 8
  store ptr %context, ptr %contextat, align 8
  store atomic i32 %used, ptr %usedat release, align 4
  %epoch = call i32 @publish(ptr %slot)
  call void %run(ptr %context, i32 0)
  call void @finish(ptr %slot, i32 %epoch, i32 %used)
  ret i32 1
}}

define void @{HAND_OUT}(ptr %run, ptr %context, i32 %threads, i32 %used) {{
entry:
  %here = call i32 @{IN_TEAM}(ptr %run, ptr %context, i32 %threads, i32 %used)
  %helped = icmp ne i32 %here, 0
  br i1 %helped, label %done, label %elsewhere
elsewhere:
  %others = load atomic ptr, ptr @{OTHERS} acquire, align 8
  %none = icmp eq ptr %others, null
  br i1 %none, label %alone, label %ask
ask:
  %there = call i32 %others(ptr %run, ptr %context, i32 %threads, i32 %used)
  %did = icmp ne i32 %there, 0
  br i1 %did, label %done, label %alone
alone:
  {alone}
  br label %done
done:
  ret void
}}
"""


_RUN = f"""
define i64 @{RUN}(ptr %table, i64 %number, i32 %threads, i32 %spins) {{
entry:
  %thread = call ptr @pthread_self()
  %me = ptrtoint ptr %thread to i64
  %slot = call ptr @find(i64 0, i64 %me)
  %none = icmp eq ptr %slot, null
  br i1 %none, label %alone, label %team
alone:
  call void @{RUN_KERNELS}(ptr %table, i64 %number)
  ret i64 0
team:
{_at("spinsat", _SPINS)}
{_at("coreat", _CORE)}
  store atomic i32 %spins, ptr %spinsat monotonic, align 4
  %here = call i32 @core()
  %enough = icmp ne i32 %spins, 0
  %core = select i1 %enough, i32 %here, i32 -1
  store atomic i32 %core, ptr %coreat monotonic, align 4
  %waited = call i64 @with_helpers(ptr %slot, ptr %table, i64 %number, i32 %threads)
  %freed = call ptr @find(i64 %me, i64 0)
  ret i64 %waited
}}
"""
