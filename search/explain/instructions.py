"""The instructions of a kernel's hottest loop, read from its assembly: x86-64, AArch64, and PTX."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

FMA, FLOAT, MATRIX = "fused multiply-add", "other float arithmetic", "matrix"
LOAD, STORE, SPILL, OTHER = "load", "store", "spill", "other"
KINDS = (FMA, FLOAT, MATRIX, LOAD, STORE, SPILL, OTHER)


@dataclass(frozen=True)
class Instruction:
    """A line of assembly, its kind, whether it is on vectors, and its line of the source, 0 where that is not known."""

    text: str
    kind: str
    vector: bool
    source_line: int = 0


@dataclass(frozen=True)
class HotLoop:
    """The innermost loop with the most float arithmetic, or the whole text where there is no loop.

    `registers` are the different vector registers that it names: physical ones of a CPU, 0 for PTX, whose are virtual.
    """

    instructions: tuple[Instruction, ...]
    registers: int

    @property
    def counts(self) -> Mapping[str, int]:
        """Instructions by kind."""
        found = Counter(each.kind for each in self.instructions)
        return {kind: found[kind] for kind in KINDS if found[kind]}

    @property
    def fma_share(self) -> float:
        """The share of float arithmetic that is fused multiply-adds; 0 where there is no float arithmetic."""
        return _share([each.kind == FMA for each in self._arithmetic])

    @property
    def vector_share(self) -> float:
        """The share of float arithmetic that is on vectors; 0 where there is no float arithmetic."""
        return _share([each.vector for each in self._arithmetic])

    @property
    def _arithmetic(self) -> list[Instruction]:
        return [each for each in self.instructions if each.kind in (FMA, FLOAT)]


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0


@dataclass(frozen=True)
class _Syntax:
    """The ways an instruction set is written: mnemonics by kind, memory operands, vectors.

    `renaming` is of copies of virtual registers, which are no instructions once the assembler has given out real ones.
    """

    fma: re.Pattern[str]
    arithmetic: re.Pattern[str]
    matrix: re.Pattern[str]
    load: re.Pattern[str]
    store: re.Pattern[str]
    spill: re.Pattern[str]
    vector: re.Pattern[str]
    register: re.Pattern[str]
    jump: re.Pattern[str]
    renaming: re.Pattern[str]


_NEVER = re.compile(r"(?!)")
_X86 = _Syntax(
    fma=re.compile(r"^vfn?m(add|sub)"),
    arithmetic=re.compile(r"^v?(add|sub|mul|div|max|min|sqrt|haddp?|dp)(ps|pd|ss|sd|ph|sh)\b"),
    matrix=re.compile(r"^(tdp|vpdp|vdpbf)"),
    load=re.compile(r"\(.*\),"),
    store=re.compile(r"^v?(mov|extract|maskmov|pextr|cvtps2ph|pmovdw|pmovwb|scatter)\w* .*\)$"),
    spill=re.compile(r"^v?mov\w* (.*[\s,])?-?\d*\(%r[sb]p\)"),
    vector=re.compile(r"^v?\w*(ps|pd|ph)\b|^vfn?m\w+p[sdh]\b"),
    register=re.compile(r"%[xyz]mm(\d+)"),
    jump=re.compile(r"^j\w+ \.(\w+)$"),
    renaming=_NEVER,
)
_ARM = _Syntax(
    fma=re.compile(r"^(fmla|fmls|fmadd|fmsub|fnmadd|fnmsub)\b"),
    arithmetic=re.compile(r"^f(add|sub|mul|div|max|min|maxnm|minnm|sqrt)\b"),
    matrix=re.compile(r"^(\wmmla|bfmmla|[su]dot|fmopa)\b"),
    load=re.compile(r"^ld"),
    store=re.compile(r"^st"),
    spill=re.compile(r"^(ld|st)[ru]r? [^\[]*\[(sp|x29)(, #-?\d+)?\]$"),
    vector=re.compile(r"\bv\d+\.\d*[a-z]|\bz\d+\."),
    register=re.compile(r"\b[vqzds](\d+)\b"),
    jump=re.compile(r"^(?:b\.?\w*|cbn?z \w+,|tbn?z \w+, #\d+,) \.(\w+)$"),
    renaming=_NEVER,
)
_PTX = _Syntax(
    fma=re.compile(r"^fma\."),
    arithmetic=re.compile(r"^(add|sub|mul|div|max|min|sqrt|rcp|ex2)\.\S*(f16|bf16|f32|f64)"),
    matrix=re.compile(r"^(mma|wmma|wgmma)\b"),
    load=re.compile(r"^(ld\.(global|shared|const)|ldmatrix|cp\.async\.(c[ag]|bulk))"),
    store=re.compile(r"^(st\.(global|shared)|red\.)"),
    spill=re.compile(r"^(ld|st)\.local"),
    vector=re.compile(r"x2\b|f16x2"),
    register=_NEVER,
    jump=re.compile(r"^(?:@!?%p\d+ )?bra(?:\.uni)? \$(\w+);$"),
    renaming=re.compile(r"^mov\.\w+ %?[a-z]+\d+, %?[a-z]+\d+;$"),
)


def hot_loop(assembly: str) -> HotLoop | None:
    """The hottest loop of an assembly text; None where it is of another instruction set, or binary."""
    syntax = _syntax_of(assembly)
    if syntax is None:
        return None
    lines = [re.sub(r"\s+", " ", line.split("//")[0]).strip() for line in assembly.splitlines()]
    whole = list(_instructions(lines, syntax))
    spans = list(_loops(lines, syntax))
    inner = [a for a in spans if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in spans)]
    found = [[each for number, each in whole if first <= number <= last] for first, last in inner]
    hottest = max(found, key=_heat, default=[])
    chosen = hottest if _heat(hottest) else [each for _, each in whole]
    names = {number for each in chosen for number in syntax.register.findall(each.text)}
    return HotLoop(tuple(chosen), len(names))


def _heat(instructions: Sequence[Instruction]) -> int:
    return sum(each.kind in (FMA, FLOAT, MATRIX) for each in instructions)


def _syntax_of(assembly: str) -> _Syntax | None:
    if ".visible .entry" in assembly:
        return _PTX
    if re.search(r"%r[sb]p\b", assembly):
        return _X86
    return _ARM if re.search(r"^\tret$", assembly, re.MULTILINE) else None


def _loops(lines: Sequence[str], syntax: _Syntax) -> Iterator[tuple[int, int]]:
    """The first and the last line of each loop: a label, and a jump back to it."""
    labels: dict[str, int] = {}
    for number, line in enumerate(lines):
        label = re.match(r"^[.$](\w+):", line)
        if label is not None:
            labels[label[1]] = number
            continue
        jump = syntax.jump.match(line)
        if jump is not None and jump[1] in labels:
            yield labels[jump[1]], number


def _instructions(lines: Sequence[str], syntax: _Syntax) -> Iterator[tuple[int, Instruction]]:
    """The instructions with the numbers of their lines."""
    source_line = 0
    for number, line in enumerate(lines):
        place = re.match(r"^\.loc \d+ (\d+)", line)
        source_line = int(place[1]) if place is not None else source_line
        if not line or line[0] in ".$#{}(" or line.endswith(":") or syntax.renaming.match(line):
            continue
        yield number, Instruction(line, _kind(line, syntax), bool(syntax.vector.search(line)), source_line)


def _kind(line: str, syntax: _Syntax) -> str:
    bare = re.sub(r"^@!?%?\w+ ", "", line)
    patterns = (
        (FMA, syntax.fma),
        (MATRIX, syntax.matrix),
        (FLOAT, syntax.arithmetic),
        (SPILL, syntax.spill),
        (STORE, syntax.store),
        (LOAD, syntax.load),
    )
    return next((kind for kind, pattern in patterns if pattern.search(bare)), OTHER)
