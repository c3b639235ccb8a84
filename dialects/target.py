"""The target attribute: what kind of device the code is for, and the limits that legality and search need."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Data, Dialect
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from .attributes import AxesAttr, IndicesAttr
from .classic_words import instead_of, options_know_classic_words
from .cpu_models import CPU_MODELS, GENERIC
from .shown_text import one_line
from .target_kinds import TargetKind, installed_kind, installed_kinds

Kind = Literal["llvm", "cuda", "opencl"]
KINDS: tuple[str, ...] = get_args(Kind)
_GPU_KINDS = ("cuda", "opencl")

WARP = 32
"""Threads that run in step, on every GPU of NVIDIA's (CUDA C++ Programming Guide)."""

WIDEST_ACCESS_BYTES = 16
"""Bytes that a thread of a GPU moves at once, at most (CUDA C++ Programming Guide, device memory accesses)."""

MOST_THREADS_Z = 64
"""Threads of a block along threadIdx.z, on every GPU of NVIDIA's (CUDA C++ Programming Guide) and many others."""

WIDEST_BYTES = 8
"""An element of the widest type: a vector holds one."""

LINE_BYTES = 64
"""A cache line of a CPU."""

VECTORS_PER_CYCLE = 2
"""Vectors that a CPU multiplies and adds in a cycle, and that it loads, where its model does not say otherwise."""


_DIGITS = 19
"""Of a size: more than this is none, and takes long to read."""
_WORD = re.compile(r"[^\s=\"\\]+")
_FEATURES = re.compile(r"([+-][a-z0-9.-]+(,[+-][a-z0-9.-]+)*)?")
_TEXTS = ("kind", "model", "arch", "features")
_MOST = {
    **dict.fromkeys(("cores", "vector_registers", "max_threads_per_block", "max_vthreads"), 1 << 20),
    "vector_bytes": 1 << 10,
    "warp_size": 1 << 10,
    "compute_capability": 999,
}
"""The largest value of an option: beyond any device's (Arm's SVE has vectors of 256 bytes, AMD wavefronts of 64)."""
_MOST_BYTES = 1 << 50
_POWERS_OF_TWO = ("vector_bytes", "warp_size")
_AT_LEAST_ONE = ("cores", "vector_bytes", "warp_size")


@options_know_classic_words
@dataclass(frozen=True)
class Target:
    """A device as the compiler sees it; sizes in bytes, 0 where a limit does not exist or is not known.

    Fields, not text: `lw.resolve_target("cuda model=h200")` makes a target of a text. ValueError in one sentence where
    a field has a value that it cannot have.
    """

    kind: str = "llvm"
    model: str = "generic"
    cores: int = 1
    vector_bytes: int = 32
    vector_registers: int = 16
    l1_bytes: int = 32768
    l2_bytes: int = 524288
    l3_bytes: int = 0
    """Of a CPU, the cache that its cores share; the others are each core's own."""
    l3_cores: int = 0
    """Of a CPU, the cores that share one, where it has several; 0 for all of them."""
    max_threads_per_block: int = 0
    max_shared_bytes: int = 0
    warp_size: int = 1
    max_vthreads: int = 0
    compute_capability: int = 0
    arch: str = ""
    """Of a CPU, by LLVM's name; empty for that of the model, or of this machine."""
    features: str = ""
    """Of a CPU, more or fewer than its model's: `+dotprod,-lse`."""

    def __post_init__(self) -> None:
        if (wrong := self._wrong()) is not None:
            raise ValueError(f"target: {wrong}")

    def _wrong(self) -> str | None:
        """Say which field has a value that it cannot have, and what it takes; None where all are right."""
        if self.kind not in KINDS and not (isinstance(self.kind, str) and installed_kind(self.kind)):
            return f"kind must be {_either((*KINDS, *installed_kinds()))}, got {_shown(self.kind)}{_instead(self.kind)}"
        if not isinstance(self.model, str) or not _WORD.fullmatch(self.model):
            return f"model must be one word, got {_shown(self.model)}"
        for field in fields(self):
            if field.name in _TEXTS:
                continue
            value, least = getattr(self, field.name), int(field.name in _AT_LEAST_ONE)
            if type(value) is not int or value < least:
                takes = "a positive" if least else "a non-negative"
                return f"option '{field.name}' takes {takes} integer, got {_shown(value)}"
            most = _MOST.get(field.name, _MOST_BYTES)
            if value > most:
                return f"option '{field.name}' takes at most {most}, got {value}"
            if field.name in _POWERS_OF_TWO and value & (value - 1):
                return f"option '{field.name}' takes a power of two, got {value}"
        if self.vector_bytes < WIDEST_BYTES:
            return f"option 'vector_bytes' takes at least {WIDEST_BYTES}, one float64, got {self.vector_bytes}"
        if self.is_gpu and 0 < self.max_threads_per_block < WARP:
            return f"option 'max_threads_per_block' takes at least {WARP} of a GPU, got {self.max_threads_per_block}"
        if self.compute_capability and self.kind != "cuda":
            return f"compute_capability is for cuda, not for {self.kind}"
        return self._wrong_cpu()

    def _wrong_cpu(self) -> str | None:
        if self.kind != "llvm" and (self.arch or self.features):
            own = ", where it is sm_75 or the like" if self.kind == "cuda" else ""
            return f"arch and features are for llvm, not for {self.kind}{own}"
        if self.arch not in ("", *GENERIC):
            return f"arch must be {_either(tuple(GENERIC))}, got {_shown(self.arch)}"
        if not isinstance(self.features, str) or not _FEATURES.fullmatch(self.features):
            return f"features are names with + or -, as '+dotprod,-lse', got {_shown(self.features)}"
        return None

    def __str__(self) -> str:
        usual = {field.name: field.default for field in fields(self)[1:]}
        shown = [
            n for n in usual if getattr(self, n) != usual[n] or getattr(self, n) != self._said_by_model(n, usual[n])
        ]
        return " ".join([self.kind, *(f"{name}={getattr(self, name)}" for name in shown)])

    def _said_by_model(self, name: str, usual: object) -> object:
        """Value of a field that a text does not say, for a reader who knows the model."""
        known = CPU_MODELS.get(self.model) if self.kind == "llvm" and name.startswith("vector_") else None
        return getattr(known, name, usual)

    @property
    def is_gpu(self) -> bool:
        """True where kernels are launches of blocks of threads."""
        return self.kind in _GPU_KINDS if self.is_ours else self._installed.is_gpu

    @property
    def l3_bytes_a_core(self) -> int:
        """Of a CPU, what one of the cores that work has of the cache that they share."""
        return self.l3_bytes // min(self.cores, self.l3_cores or self.cores)

    @property
    def fma_per_cycle(self) -> float:
        """Of a CPU, the multiply-adds of whole vectors that begin in a cycle."""
        return self._per_cycle("fma_bytes")

    @property
    def loads_per_cycle(self) -> float:
        """Of a CPU, the whole vectors that are loaded from the first-level cache in a cycle."""
        return self._per_cycle("load_bytes")

    def _per_cycle(self, name: str) -> float:
        each = getattr(CPU_MODELS.get(self.model), name, 0)
        return each / self.vector_bytes if each else VECTORS_PER_CYCLE

    @property
    def is_ours(self) -> bool:
        """True for the kinds that come with loopwright, False for one that another package adds."""
        return self.kind in KINDS

    @property
    def _installed(self) -> TargetKind:
        found = installed_kind(self.kind)
        assert found is not None, "checked when the target was made"
        return found

    def with_cores(self, cores: int) -> Target:
        """Return the same target restricted to `cores` threads."""
        return replace(self, cores=cores)


def _shown(value: object) -> str:
    return f"'{one_line(value)}'" if isinstance(value, str) else repr(value)


def _either(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _instead(kind: object) -> str:
    """Return what to write where somebody gave a whole text as the kind, or a word of other packages."""
    if kind in ("cpu", "gpu"):
        return ": a CPU is 'llvm'" if kind == "cpu" else ": a GPU of NVIDIA's is 'cuda', another one 'opencl'"
    if not isinstance(kind, str) or kind.partition(" ")[0] not in KINDS:
        return ""
    return ": Target takes fields; give the text itself where a target is wanted, or lw.resolve_target of it"


def options_of(text: str) -> dict[str, str]:
    """Split a target's text into its options by name, `kind` among them; ValueError for what is no option of any.

    `arch=sm_75` is `compute_capability=75`, and the words after `model=` up to the next option are its name.
    """
    kind, *words = text.split() or [""]
    options, last = {"kind": kind}, ""
    for word in words:
        name, is_option, value = word.partition("=")
        if not is_option and last == "model":
            options["model"] += f"-{word}"
            continue
        name, value = _as_capability(name, value) if kind == "cuda" else (name, value)
        if name not in _OPTIONS:
            raise _unreadable(
                text, f"unknown option '{one_line(name)}'; options are {', '.join(_OPTIONS)}{instead_of(name)}"
            )
        if name in options:
            raise _unreadable(text, f"option '{name}' is given twice")
        options[name] = value
        last = name
    return options


_OPTIONS = [field.name for field in fields(Target)[1:]]
_SM = re.compile(r"(?:sm|compute)_?(\d+)[af]?")


def _as_capability(name: str, value: str) -> tuple[str, str]:
    """Return `compute_capability` and its number for `arch=sm_90`, also as `sm_90a`; other options as they are."""
    named = _SM.fullmatch(value.lower()) if name == "arch" else None
    return ("compute_capability", named[1]) if named else (name, value)


def _unreadable(text: str, why: str) -> ValueError:
    return ValueError(f"target '{one_line(text)}': {why}")


def parse_target(text: str) -> Target:
    """Parse `llvm cores=2 vector_bytes=64`, all that is not said at its default: the text of an attribute, a record.

    ValueError names what is wrong and what is allowed. `presets.preset_target` fills in what a model says.
    """
    values: dict[str, str | int] = {
        name: int(value) if name not in _TEXTS and value.isdecimal() and len(value) < _DIGITS else value
        for name, value in options_of(text).items()
    }
    try:
        return Target(**values)  # type: ignore[arg-type]
    except ValueError as error:
        raise _unreadable(text, str(error).removeprefix("target: ")) from None


@irdl_attr_definition
class TargetAttr(Data[Target]):
    """`#lw.target<"llvm cores=2 vector_bytes=64">`, on the module as `lw.target`."""

    name = "lw.target"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Target:
        with parser.in_angle_brackets():
            text = parser.parse_str_literal()
        try:
            return parse_target(text)
        except ValueError as error:
            parser.raise_error(str(error))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(str(self.data))


def target_of(module: ModuleOp) -> Target:
    """Return the target the module carries, or a generic CPU."""
    attribute = module.attributes.get("lw.target")
    return attribute.data if isinstance(attribute, TargetAttr) else Target()


Lw = Dialect("lw", [], [IndicesAttr, AxesAttr, TargetAttr])
