import codecs
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuport.model import Status
from tpuport.source import text

PATH = Path("x.py")

lines = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
ends = st.sampled_from(["\n", "\r\n", "\r"])


@given(st.binary())
def test_any_bytes_come_back_or_are_refused(raw: bytes) -> None:
    try:
        source = text.decode(raw, PATH)
    except text.Unreadable:
        return
    assert source.encode(source.text) == raw
    assert "\r" not in source.text


@given(
    st.sampled_from([b"", codecs.BOM_UTF8]),
    st.sampled_from(
        ["", "# coding: utf-8\n", "# -*- coding: latin-1 -*-\r\n", "# vim: set fileencoding=shift_jis :\r"]
    ),
    st.lists(st.tuples(lines, ends)),
    lines,
)
def test_marks_cookies_and_mixed_line_ends_come_back(
    bom: bytes, cookie: str, body: list[tuple[str, str]], last: str
) -> None:
    content = cookie + "".join(line + end for line, end in body) + last
    raw = bom + content.encode("latin-1" if "latin" in cookie else "utf-8", "ignore")
    try:
        source = text.decode(raw, PATH)
    except text.Unreadable:
        return
    assert source.encode(source.text) == raw


@given(st.lists(st.tuples(st.from_regex(r"[a-z]{0,3}", fullmatch=True), ends), min_size=1), st.data())
def test_an_edit_leaves_the_ends_of_all_other_lines(body: list[tuple[str, str]], data: st.DataObject) -> None:
    raw = "".join(line + end for line, end in body).encode()
    source = text.decode(raw, PATH)
    edited = source.text.split("\n")
    at = data.draw(st.integers(0, len(edited) - 1))
    edited[at] = "EDITED"
    old, new = raw.splitlines(keepends=True), source.encode("\n".join(edited)).splitlines(keepends=True)
    assert len(new) in (len(old), len(old) + 1)
    assert new[at].startswith(b"EDITED")
    others = [number for number in range(min(len(old), len(new))) if number != at]
    assert [new[number] for number in others] == [old[number] for number in others]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_new_lines_end_as_the_file_does(end: str) -> None:
    source = text.decode(f"a{end}b{end}".encode(), PATH)
    assert source.encode("a\nnew\nb\n") == f"a{end}new{end}b{end}".encode()


def test_new_lines_in_a_mixed_file_end_as_the_line_before() -> None:
    source = text.decode(b"a\r\nb\nc\r\n", PATH)
    assert source.encode("a\nnew\nb\nc\nlast\n") == b"a\r\nnew\r\nb\nc\r\nlast\r\n"


def test_no_final_newline_stays_none() -> None:
    source = text.decode(b"a\r\nb", PATH)
    assert source.encode("a\nc") == b"a\r\nc"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"import torch\0", "NUL"),
        (b"x = '\xff'\n\n\n", "cannot be decoded"),
        (b"\n\n\nx = '\xff'\n", "line 4"),
        (b"# coding: nonsense\n", "unknown encoding"),
        (b"# coding: rot13\nabc\n", "cannot be decoded"),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", "cannot be decoded"),
        (b"# coding: raw_unicode_escape\n\\ud800\n", "cannot be decoded"),
    ],
)
def test_what_is_no_text_says_why(raw: bytes, reason: str) -> None:
    with pytest.raises(text.Unreadable) as refused:
        text.decode(raw, PATH)
    assert refused.value.outcome.status is Status.FAILED
    assert reason in refused.value.outcome.reason


def test_latin_1_is_decoded_as_declared() -> None:
    assert text.decode("# coding: latin-1\n# é\n".encode("latin-1"), PATH).text.endswith("é\n")


def test_a_large_file_is_skipped_with_its_size(tmp_path: Path) -> None:
    (tmp_path / "big.py").write_bytes(b"#" * 2000)
    with pytest.raises(text.Unreadable) as refused:
        text.read(tmp_path / "big.py", 1000)
    assert refused.value.outcome.status is Status.SKIPPED
    assert "2,000 bytes" in refused.value.outcome.reason


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_not_waited_for(tmp_path: Path, make: object) -> None:
    make(tmp_path / "x.py")  # type: ignore[operator]
    with pytest.raises(text.Unreadable):
        text.read(tmp_path / "x.py")


def test_a_missing_file_fails_with_the_systems_reason(tmp_path: Path) -> None:
    with pytest.raises(text.Unreadable, match="No such file"):
        text.read(tmp_path / "gone.py")
