"""A process that may not use AMX: what Linux is asked for before tiles can be used is refused, as on a CPU without.

Libraries that find AMX by CPUID ask the kernel for its registers then (ARCH_REQ_XCOMP_PERM of arch_prctl(2)), and take
AVX512-VNNI where they do not get them: onnxruntime, oneDNN. A filter of system calls (seccomp(2)) refuses that call for
the rest of the process.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import replace

from loopwright.dialects.target import Target

_NUMBER_AT, _FIRST_ARGUMENT_AT = 0, 16
"""Bytes into seccomp_data (linux/seccomp.h)."""
_ARCH_PRCTL, _REQUEST = 158, 0x1023
"""The call's number on x86-64, and ARCH_REQ_XCOMP_PERM."""
_LOAD, _UNLESS_EQUAL, _RETURN = 0x20, 0x15, 0x06
"""BPF: load a word; skip so many instructions unless it is equal; end with a verdict."""
_REFUSED, _ALLOWED = 0x50000 | 1, 0x7FFF0000
"""SECCOMP_RET_ERRNO with EPERM, and SECCOMP_RET_ALLOW."""
_MODEL = "icelake-server"
"""The model of a CPU that ours are compiled for: of those with AVX512-VNNI the last without AMX."""
_SET_SECCOMP, _FILTER, _NO_NEW_PRIVILEGES = 22, 2, 38
"""Of prctl(2)."""


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("k", ctypes.c_uint))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(_Instruction)))


def without_tiles(target: Target) -> Target:
    """Refuse tile registers to this process and its children, before a library has asked; return a target without."""
    _refuse_tiles()
    return replace(target, model=_MODEL)


def _refuse_tiles() -> None:
    steps = (
        (_LOAD, 0, 0, _NUMBER_AT),
        (_UNLESS_EQUAL, 0, 3, _ARCH_PRCTL),
        (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
        (_UNLESS_EQUAL, 0, 1, _REQUEST),
        (_RETURN, 0, 0, _REFUSED),
        (_RETURN, 0, 0, _ALLOWED),
    )
    made = (_Instruction * len(steps))(*(_Instruction(*step) for step in steps))
    library = ctypes.CDLL(None, use_errno=True)
    program = _Program(len(steps), made)
    if library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or library.prctl(
        _SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), f"no filter of system calls: {os.strerror(ctypes.get_errno())}")
