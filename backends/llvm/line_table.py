"""LLVM IR whose instructions carry the numbers of their lines, so that assembly says where each instruction is from."""

from __future__ import annotations

import re
from collections.abc import Iterator

_UNIT = (
    "!llvm.dbg.cu = !{!900000}",
    "!llvm.module.flags = !{!900001}",
    "!900000 = distinct !DICompileUnit(language: DW_LANG_C99, file: !900002, isOptimized: true, runtimeVersion: 0, "
    "emissionKind: LineTablesOnly)",
    '!900001 = !{i32 2, !"Debug Info Version", i32 3}',
    '!900002 = !DIFile(filename: "kernel.ll", directory: ".")',
    "!900003 = !DISubroutineType(types: !900004)",
    "!900004 = !{}",
)
_FIRST = 1_000_000
"""Number of the first node of a line: beyond those of the unit, and of any that a kernel of ours has."""


def with_line_table(source: str) -> str:
    """Return LLVM IR text as the printer writes it, one instruction a line, with a location of its line for each.

    Code generation is not changed by it.
    """
    nodes: list[str] = []
    lines = list(_lines(source, nodes))
    return "\n".join([*lines, *_UNIT, *nodes, ""])


def _lines(source: str, nodes: list[str]) -> Iterator[str]:
    function: int | None = None
    for number, line in enumerate(source.splitlines(), 1):
        place = _FIRST + len(nodes)
        if line.startswith("define "):
            function = place
            nodes.append(
                f'!{place} = distinct !DISubprogram(name: "f{place}", scope: !900002, file: !900002, line: {number}, '
                "type: !900003, unit: !900000, spFlags: DISPFlagDefinition | DISPFlagOptimized)"
            )
            yield re.sub(r"\{\s*$", f"!dbg !{place} {{", line)
        elif function is not None and re.match(r" +[^;\s]", line):
            nodes.append(f"!{place} = !DILocation(line: {number}, column: 1, scope: !{function})")
            yield f"{line}, !dbg !{place}"
        else:
            function = None if line.startswith("}") else function
            yield line
