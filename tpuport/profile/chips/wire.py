"""Protocol-buffer messages, read and written by field number: enough for XLA's protos, with no generated code."""

from collections.abc import Iterator

Value = int | bytes
_FIXED = {1: 8, 5: 4}


def fields(message: bytes) -> Iterator[tuple[int, Value]]:
    """Yield (number, value) of every field: an int, or the bytes of a string, a message or a packed list.

    Raises ValueError when `message` is no protocol buffer.
    """
    position, end = 0, len(message)
    while position < end:
        tag, position = _varint(message, position)
        kind = tag & 7
        if kind == 0:
            value, position = _varint(message, position)
            yield tag >> 3, value
            continue
        if kind == 2:
            size, position = _varint(message, position)
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise ValueError(f"wire type {kind} at byte {position}")
        if position + size > end:
            raise ValueError(f"a field of {size} bytes ends after the message")
        yield tag >> 3, message[position : position + size]
        position += size


def number_field(field: int, value: int) -> bytes:
    """Return one field with a number that is not negative; a message is the sum of its fields."""
    return _encoded(field << 3) + _encoded(value)


def content_field(field: int, content: bytes) -> bytes:
    """Return one field with a string, bytes or a message."""
    return _encoded(field << 3 | 2) + _encoded(len(content)) + content


def _encoded(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


class Message:
    """One message: its fields by number. Absent numbers are 0, empty or no items, as in proto3."""

    __slots__ = ("_fields",)

    def __init__(self, content: bytes) -> None:
        self._fields: dict[int, list[Value]] = {}
        for number, value in fields(content):
            self._fields.setdefault(number, []).append(value)

    def number(self, field: int) -> int:
        """Return an integer field."""
        value = self._fields.get(field, [0])[-1]
        return value if isinstance(value, int) else int.from_bytes(value, "little")

    def text(self, field: int) -> str:
        """Return a string field."""
        return self.content(field).decode("utf-8", errors="replace")

    def content(self, field: int) -> bytes:
        """Return a bytes field, or a message that is not taken apart."""
        value = self._fields.get(field, [b""])[-1]
        return value if isinstance(value, bytes) else b""

    def message(self, field: int) -> "Message":
        """Return a message field."""
        return Message(self.content(field))

    def messages(self, field: int) -> "list[Message]":
        """Return a repeated message field."""
        return [Message(value) for value in self._fields.get(field, []) if isinstance(value, bytes)]

    def texts(self, field: int) -> list[str]:
        """Return a repeated string field."""
        return [
            value.decode("utf-8", errors="replace") for value in self._fields.get(field, []) if type(value) is bytes
        ]

    def numbers(self, field: int) -> list[int]:
        """Return a repeated integer field, packed or not."""
        found: list[int] = []
        for value in self._fields.get(field, []):
            if isinstance(value, int):
                found.append(value)
                continue
            position = 0
            while position < len(value):
                number, position = _varint(value, position)
                found.append(number)
        return found


def _varint(content: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        try:
            byte = content[position]
        except IndexError:
            raise ValueError("the message ends inside a number") from None
        position += 1
        result |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return result, position
