"""Programs in the text that MLIR prints with debug information: what torch operations they hold, and their boundary."""

import math
import re
from collections import Counter
from collections.abc import Iterator

from tpuport.profile.chips.estimates import SourceFrame
from tpuport.profile.chips.hlo import source_line
from tpuport.profile.contents import Contents, Located

_DEFINITION = re.compile(r"^(?P<alias>#loc\d*) = loc\((?P<what>.*)\)$")
_FILE = re.compile(r'^"(?P<file>(?:[^"\\]|\\.)*)":(?P<line>\d+):\d+')
_NAMED = re.compile(r'^"(?P<name>(?:[^"\\]|\\.)*)"(?:\((?P<child>#loc\d*)\))?$')
_CALL = re.compile(r"^callsite\((?P<callee>#loc\d*) at (?P<caller>#loc\d*)\)$")
_USE = re.compile(r'loc\((?P<alias>#loc\d*)\)$|loc\((?P<inline>"[^"]*")\)$')
_TENSOR = re.compile(r"!vhlo\.tensor_v1<(?P<shape>(?:\d+x)*)(?P<complex>!vhlo\.complex_v1<)?!vhlo\.(?P<type>\w+?)_v1")
_ATTRIBUTES = re.compile(r"^  \} \{arg_attrs = #vhlo\.array_v1<\[(?P<list>.*?)\]>, res_attrs")
_ATTRIBUTE = re.compile(r"#vhlo\.dict_v1<\{(.*?)\}>")
_DONOR = '"jax.buffer_donor"> = #vhlo.bool_v1<true>'
_WIDTH = re.compile(r"\d+")


def read_program(text: str) -> Contents:
    """Read a program; a location of a form that is not known counts as no location.

    Raises ValueError when it has no main function.
    """
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if "func_v1 @main(" in line), None)
    if start is None:
        raise ValueError("no main function")
    given, _, returned = lines[start].partition(" -> ")
    arguments, results = _tensors(given), _tensors(returned)
    # A result may lie where an argument lay that is given away, and is of the same type.
    taken = Counter(argument for argument, gone in zip(arguments, _given_away(lines[start:]), strict=False) if gone)
    locations = _Locations(lines)
    found = [locations.operation(match) for line in lines if (match := _use(line))]
    return Contents(
        sum(map(_bytes, arguments)),
        sum(map(_bytes, results)),
        sum(_bytes(tensor) * count for tensor, count in (taken & Counter(results)).items()),
        tuple(locations.frames),
        tuple(dict.fromkeys(operation for operation in found if operation is not None)),
    )


def _use(line: str) -> re.Match[str] | None:
    return None if line.startswith(("#", "module", "}")) else _USE.search(line)


def _given_away(main: list[str]) -> Iterator[bool]:
    """Yield for every argument of the main function whether the caller gives its memory away."""
    attributes = next((match["list"] for line in main if (match := _ATTRIBUTES.match(line))), "")
    for one in _ATTRIBUTE.findall(attributes):
        yield _DONOR in one


_Tensor = tuple[str, bool, str]
"""Dimensions, whether its elements are complex, and their type."""


def _tensors(types: str) -> list[_Tensor]:
    return [(match["shape"], bool(match["complex"]), match["type"]) for match in _TENSOR.finditer(types)]


def _bytes(tensor: _Tensor) -> int:
    shape, is_complex, kind = tensor
    elements = math.prod(int(size) for size in shape.split("x") if size)
    width = _WIDTH.search(kind)
    bits = max(8, int(width[0])) if width else 8
    return elements * bits // 8 * (2 if is_complex else 1)


class _Locations:
    def __init__(self, lines: list[str]) -> None:
        found = filter(None, map(_DEFINITION.match, lines))
        self._definitions = {match["alias"]: match["what"] for match in found}
        self._entries: dict[str, int] = {}
        self.frames: list[SourceFrame] = []

    def operation(self, use: re.Match[str]) -> Located | None:
        """Return the torch operation that an instruction belongs to."""
        named = _NAMED.match(use["inline"] or self._definitions.get(use["alias"], ""))
        if named is None:
            return None
        return Located(self._entry(named["child"]) if named["child"] else 0, named["name"].partition("/")[0])

    def _entry(self, alias: str) -> int:
        """Return the entry of a stack in the table of frames, 0 where there is none."""
        if alias not in self._entries:
            self._entries[alias] = self._new_entry(self._definitions.get(alias, ""))
        return self._entries[alias]

    def _new_entry(self, what: str) -> int:
        parent = 0
        if call := _CALL.match(what):
            parent = self._entry(call["caller"])
            what = self._definitions.get(call["callee"], "")
        named = _NAMED.match(what)
        place = _FILE.match(self._definitions.get(named["child"] or "", "")) if named else None
        if named is None or place is None:
            return parent
        caller = self.frames[parent - 1] if parent else None
        self.frames.append(SourceFrame(place["file"], source_line(int(place["line"]), caller), named["name"], parent))
        return len(self.frames)
