"""Frozen dataclasses to JSON values and back, checked against their annotations."""

import dataclasses
import types
from enum import Enum
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class DecodeError(ValueError):
    """A JSON value that does not have the shape of the type asked for."""


def encode(value: Any) -> Any:
    """Return `value` (dataclass, enum, tuple, dict or primitive) as a JSON value."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    return value


def decode(kind: type[T], value: Any) -> T:
    """Build a `kind` from a JSON value.

    Fields that `kind` does not have are ignored (a newer writer); missing fields need a default.
    Raises DecodeError naming the place that does not fit.
    """
    result: T = _decode(kind, value, kind.__name__)
    return result


def _decode(kind: Any, value: Any, where: str) -> Any:
    origin = get_origin(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        return _decode_optional(kind, value, where)
    if origin is tuple:
        return tuple(_decode(get_args(kind)[0], item, f"{where}[]") for item in _expect(list, value, where))
    if origin is dict:
        key_kind, item_kind = get_args(kind)
        items = _expect(dict, value, where).items()
        return {_decode_key(key_kind, key, where): _decode(item_kind, item, f"{where}.{key}") for key, item in items}
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass(kind, value, where)
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(value)
        except ValueError:
            raise DecodeError(f"{where}: {value!r} is none of {', '.join(str(m.value) for m in kind)}") from None
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return _expect(kind, value, where)


def _decode_optional(kind: Any, value: Any, where: str) -> Any:
    if value is None:
        return None
    (inner,) = (argument for argument in get_args(kind) if argument is not types.NoneType)
    return _decode(inner, value, where)


def _decode_key(kind: Any, key: str, where: str) -> Any:
    try:
        return kind(key)
    except ValueError:
        raise DecodeError(f"{where}: key {key!r} is not {kind.__name__}") from None


def _decode_dataclass(kind: Any, value: Any, where: str) -> Any:
    given = _expect(dict, value, where)
    hints = get_type_hints(kind)
    arguments = {
        field.name: _decode(hints[field.name], given[field.name], f"{where}.{field.name}")
        for field in dataclasses.fields(kind)
        if field.name in given
    }
    try:
        return kind(**arguments)
    except TypeError as error:
        raise DecodeError(f"{where}: {error}") from None


def _expect(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise DecodeError(f"{where}: expected {kind.__name__}, found {type(value).__name__}")
    return value
