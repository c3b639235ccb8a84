"""Random damage to files: bytes flipped, cut and spliced, and numbers, names and words replaced by odd ones."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from hostile_names import HOSTILE
from packages import mutated

ODD_NUMBERS = (
    *("0", "-1", "1", "2", "3", "7", "64", "4096", "1048576", "2147483648", "1099511627776"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "1" + "0" * 30, "1" + "0" * 5000),
)
"""Extents, offsets, counts: none, negative, large, larger than memory, than 64 bits, than Python reads."""
ALIKE = (
    ("arith.addf", "arith.mulf", "arith.subf", "arith.divf", "arith.maximumf", "math.powf", "math.copysign"),
    (
        "math.exp",
        "math.rsqrt",
        "math.log",
        "math.erf",
        "math.sqrt",
        "math.tanh",
        "arith.negf",
        "math.absf",
        "math.floor",
    ),
    (
        "arith.addi",
        "arith.muli",
        "arith.divsi",
        "arith.remsi",
        "arith.divui",
        "arith.shli",
        "arith.shrsi",
        "arith.andi",
    ),
    ("f32", "f16", "f64", "bf16"),
    ("i1", "i8", "i32", "i64", "ui8", "ui64"),
    ("add", "mul", "max", "min"),
    ("floordiv", "mod", "*", "+"),
    ("olt", "oge", "ueq", "uno", "true", "slt", "eq"),
)
"""Words that stand in the same places."""
ODD_JSON = ("NaN", "Infinity", "-Infinity", "1e999", "-1e-999", "1" + "0" * 400, "[" * 5000 + "]" * 5000, '"\\ud800"')
"""Values that JSON texts of other programs hold, or that no number type does."""


def hostile_texts(canary: str) -> tuple[str, ...]:
    """Names that try to be more, some of which would make the folder `canary` where they are run."""
    return (
        *HOSTILE.values(),
        f"$(mkdir {canary})",
        f"`mkdir {canary}`",
        f"'; mkdir {canary}; '",
        f"__import__('os').mkdir('{canary}')",
        f"x in [__import__('os').mkdir('{canary}')]:\n  pass\n for y",
        f'x\n@p = private constant [{len(canary) + 1} x i8] c"{canary}\\00"\ndeclare i32 @mkdir(ptr, i32)\n'
        "define float @powf(float %a, float %b) {\n  %r = call i32 @mkdir(ptr @p, i32 511)\n  ret float 0.0\n}\n;",
        f"c\x80\x04\x95cos\nmkdir\n(S'{canary}'\ntR.",
    )


def pick(rng: np.random.Generator, items: Sequence[Any]) -> Any:
    return items[int(rng.integers(len(items)))]


def damaged_bytes(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    """Bytes flipped, cut off, taken out, doubled, overwritten, or followed by the rest of another file."""
    if not data:
        return bytes(rng.integers(0, 256, 10, np.uint8))
    start, end = sorted(int(n) for n in rng.integers(0, len(data) + 1, 2))
    end = min(end, start + int(2 ** rng.uniform(0, 10)))
    match int(rng.integers(7)):
        case 0:
            changed = bytearray(data)
            for place in rng.integers(0, len(data), int(rng.integers(1, 9))):
                changed[int(place)] ^= 1 << int(rng.integers(8))
            return bytes(changed)
        case 1:
            return data[:start]
        case 2:
            return data[:start] + data[end:]
        case 3:
            return data[:end] + data[start:]
        case 4:
            return data[:start] + rng.bytes(end - start) + data[end:]
        case 5:
            return data[:start] + other[int(rng.integers(len(other) + 1)) :]
        case _:
            return data[:start] + rng.bytes(int(rng.integers(1, 50))) + data[start:]


def damaged_text(text: str, words: Sequence[str], canary: str, rng: np.random.Generator) -> str:
    """One to three changes of a program's text: numbers, words, quoted names, lines."""
    for _ in range(int(pick(rng, (1, 1, 1, 2, 3)))):
        match int(rng.integers(10)):
            case 0 | 1:
                text = _replaced(text, r"-?\b\d+\b", pick(rng, ODD_NUMBERS), rng)
            case 2:
                text = _replaced(text, r"[A-Za-z_][\w.]*", pick(rng, words), rng)
            case 7:
                text = _everywhere(text, r"(?<![%@#\w.])\d+", rng)
            case 8:
                text = _replaced(text, r"%\w+", pick(rng, re.findall(r"%\w+", text) or ["%x"]), rng)
            case 9:
                alike = pick(rng, ALIKE)
                text = _replaced(text, rf"(?<![\w.])(?:{'|'.join(map(re.escape, alike))})(?!\w)", pick(rng, alike), rng)
            case 3:
                text = _replaced(text, r'"[^"\n]*"', json.dumps(pick(rng, hostile_texts(canary))), rng)
            case 4:
                escaped = "".join(f"\\{b:02X}" for b in pick(rng, hostile_texts(canary)).encode("utf-8", "replace"))
                text = _replaced(
                    text, r'@\w+|"[^"\n]*"', f'@"{escaped}"' if rng.random() < 0.5 else f'"{escaped}"', rng
                )
            case 5:
                lines = text.split("\n")
                at, other = (int(n) for n in rng.integers(0, len(lines), 2))
                if rng.random() < 0.5:
                    lines[at], lines[other] = lines[other], lines[at]
                else:
                    lines.insert(at, lines[other])
                text = "\n".join(lines)
            case _:
                opening = pick(rng, "([{<")
                depth = int(pick(rng, (1, 50, 5000)))
                at = int(rng.integers(0, len(text) + 1))
                text = text[:at] + opening * depth + text[at:]
    return text


def _everywhere(text: str, pattern: str, rng: np.random.Generator) -> str:
    """Another number near one that is there, wherever that stands: extents go on agreeing."""
    found = re.findall(pattern, text)
    if not found:
        return text
    old = pick(rng, found)
    new = str(max(0, int(old[:18]) + int(rng.integers(-2, 3)) * int(pick(rng, (1, 1, 7, 1000)))))
    return re.sub(rf"(?<![%@#\w.]){old}(?!\d)", new, text)


def _replaced(text: str, pattern: str, new: str, rng: np.random.Generator) -> str:
    found = list(re.finditer(pattern, text))
    if not found:
        return text
    place = pick(rng, found)
    if rng.random() < 0.3:  # wherever it stands, so that what must agree does
        return re.sub(rf"(?<![\w\"]){re.escape(place[0])}(?![\w\"])", lambda _: new, text)
    return text[: place.start()] + new + text[place.end() :]


def damaged_json(value: dict[str, Any], canary: str, rng: np.random.Generator) -> str:
    """The text of an object with other values, some of which are no JSON, or no text."""
    changed = mutated(value, rng) if rng.random() < 0.6 else copy.deepcopy(value)
    marks = {}
    if rng.random() < 0.5:
        places = [(c, k) for c, k in _places(changed)]
        container, key = pick(rng, places) if places else (changed, "x")
        if rng.random() < 0.5:
            container[key] = pick(rng, hostile_texts(canary))
        else:
            marks["@odd@"] = pick(rng, (*ODD_JSON, *ODD_NUMBERS))
            container[key] = "@odd@"
    text = json.dumps(changed)
    for mark, odd in marks.items():
        text = text.replace(f'"{mark}"', odd)
    return text


def _places(value: Any) -> list[tuple[Any, Any]]:
    items = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [pair for key, each in items for pair in ((value, key), *_places(each))]
