"""LLVM functions as they are written: lines, names for values, blocks, fields of structures."""

from __future__ import annotations


class FunctionText:
    """The lines of one function; a value's name is a number of its own, `%v1`, and so is a label's."""

    def __init__(self) -> None:
        self.allocas: list[str] = []
        self.lines: list[str] = []
        self.block = "entry"
        self._count = 0

    def fresh(self) -> str:
        """Return a name that no value has."""
        self._count += 1
        return f"%v{self._count}"

    def put(self, text: str) -> str:
        """Append an instruction that has a value; return the value's name."""
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Append an instruction without a value."""
        self.lines.append(f"  {text}")

    def label(self, stem: str) -> str:
        """Return a label that no block has."""
        self._count += 1
        return f"{stem}{self._count}"

    def start_block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        self.do(f"br i1 {condition}, label %{then}, label %{otherwise}")

    def element(self, kind: str, pointer: str, index: str) -> str:
        """Return the address of an element of an array."""
        return self.put(f"getelementptr {kind}, ptr {pointer}, i64 {index}")

    def at(self, kind: str, pointer: str, *places: int) -> str:
        """Return the address of a field of a structure, or of an element of that."""
        return self.put(f"getelementptr {kind}, ptr {pointer}, i32 0{''.join(f', i32 {place}' for place in places)}")

    def field(self, kind: str, pointer: str, *places: int, of: str = "ptr") -> str:
        """Load a field of a structure, or an element of that, of the type `of`."""
        return self.put(f"load {of}, ptr {self.at(kind, pointer, *places)}")

    def loop(self, name: str, before: str, count: str, end: str) -> str:
        """Begin a loop, whose body ends in a branch to `{name}.next`; returns its number, which counts from 0."""
        self.do(f"br label %{name}")
        self.start_block(name)
        self.do(f"%{name}.i = phi i64 [ 0, %{before} ], [ %{name}.more, %{name}.next ]")
        self.branch(self.put(f"icmp ult i64 %{name}.i, {count}"), f"{name}.body", end)
        self.start_block(f"{name}.next")
        self.do(f"%{name}.more = add i64 %{name}.i, 1")
        self.do(f"br label %{name}")
        self.start_block(f"{name}.body")
        return f"%{name}.i"

    def text(self, head: str) -> str:
        """Return the function's definition; what it allocates on the stack comes first."""
        return "\n".join([f"{head} {{", "entry:", *self.allocas, *self.lines, "}"])
