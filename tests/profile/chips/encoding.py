"""Making protocol-buffer messages by hand, for modules whose costs are known."""

from dataclasses import dataclass, field

Content = dict[int, "int | str | bytes | list[bytes] | list[int]"]


def varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def message(content: Content) -> bytes:
    encoded = b""
    for number, value in content.items():
        for item in value if isinstance(value, list) and (not value or isinstance(value[0], bytes)) else [value]:
            if isinstance(item, int):
                encoded += varint(number << 3) + varint(item)
                continue
            if isinstance(item, list):
                packed = b"".join(varint(entry) for entry in item)  # type: ignore[arg-type]
            else:
                packed = item.encode() if isinstance(item, str) else item
            encoded += varint(number << 3 | 2) + varint(len(packed)) + packed
    return encoded


@dataclass
class Instruction:
    opcode: str
    dimensions: tuple[int, ...] = (8, 128)
    frame: int = 0
    operation: str = ""
    config: str = ""
    target: str = ""
    operands: tuple[int, ...] = ()
    called: tuple[int, ...] = ()
    output_features: int = 0

    def encode(self, identifier: int) -> bytes:
        return message(
            {
                1: f"{self.opcode}.{identifier}",
                2: self.opcode,
                3: message({2: 11, 3: list(self.dimensions)}),
                7: message({2: f"{self.operation}/{self.operation}", 15: self.frame}),
                16: message({4: self.output_features}),
                28: self.target,
                35: identifier,
                36: list(self.operands),
                38: list(self.called),
                43: self.config,
            }
        )


@dataclass
class Module:
    """Computations by number, the first of which is the entry; frames as (file, line, function, parent)."""

    computations: dict[int, list[Instruction]]
    frames: list[tuple[str, int, str, int]] = field(default_factory=list)

    def encode(self) -> bytes:
        files = list(dict.fromkeys(frame[0] for frame in self.frames))
        functions = list(dict.fromkeys(frame[2] for frame in self.frames))
        locations = [
            message({1: files.index(file) + 1, 2: functions.index(function) + 1, 3: line})
            for file, line, function, _ in self.frames
        ]
        stack = [message({1: number, 2: frame[3]}) for number, frame in enumerate(self.frames, 1)]
        computations = [
            message({2: [item.encode(place) for place, item in enumerate(items)], 5: number})
            for number, items in self.computations.items()
        ]
        index: Content = {1: [file.encode() for file in files], 2: [name.encode() for name in functions]}
        index |= {3: locations, 4: stack}
        return message({1: "module", 3: computations, 6: next(iter(self.computations)), 17: message(index)})


def estimated(cycles: int) -> str:
    return f'{{"window_config":{{"estimated_cycles":"{cycles}"}}}}'
