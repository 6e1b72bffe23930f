from dataclasses import dataclass
from enum import StrEnum

import pytest

from tpuport.profile.codec import DecodeError, decode, encode


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Point:
    x: int
    colour: Colour = Colour.RED


@dataclass(frozen=True)
class Shape:
    points: tuple[Point, ...]
    counts: dict[int, float]
    name: str | None = None


SHAPE = Shape((Point(1), Point(2)), {3: 0.5})


def test_a_value_survives_the_round_trip() -> None:
    assert decode(Shape, encode(SHAPE)) == SHAPE


def test_fields_of_a_newer_writer_are_ignored() -> None:
    assert decode(Point, {"x": 1, "y": 2}) == Point(1)


def test_whole_numbers_are_floats_too() -> None:
    assert decode(Shape, {"points": [], "counts": {"1": 2}}).counts == {1: 2.0}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "Shape: expected dict, found list"),
        ({"points": [{"x": "1"}], "counts": {}}, r"Shape\.points\[\]\.x: expected int, found str"),
        ({"points": [{"x": True}], "counts": {}}, r"Shape\.points\[\]\.x: expected int, found bool"),
        ({"points": [{"x": 1, "colour": "blue"}], "counts": {}}, "'blue' is none of red"),
        ({"points": [], "counts": {"a": 1}}, "key 'a' is not int"),
        ({"points": []}, "counts"),
    ],
)
def test_what_does_not_fit_is_named(value: object, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        decode(Shape, value)
