import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tpuport.output.diff import unified

contents = st.lists(
    st.sampled_from([b"a\n", b"b\n", b"a\r\n", b"\r", b"\n", b"\xff\xe9\n", b"+\n", b"-- x\n", b"\\\n"]), min_size=1
)
last = st.sampled_from([b"", b"end", b"end\r", b"\x0c", b"@@"])


@pytest.mark.parametrize("tool", [["git", "apply", "--whitespace=nowarn", "-"], ["patch", "-p1", "--binary", "-s"]])
@settings(max_examples=25, deadline=None)
@given(contents, last, contents, last)
def test_any_diff_applies(
    tool: list[str],
    tmp_path_factory: pytest.TempPathFactory,
    old: list[bytes],
    old_last: bytes,
    new: list[bytes],
    new_last: bytes,
) -> None:
    before, after = b"".join(old) + old_last, b"".join(new) + new_last
    assume(before != after)
    directory: Path = tmp_path_factory.mktemp("diff")
    (directory / "x.py").write_bytes(before)
    done = subprocess.run(tool, cwd=directory, input=unified("x.py", before, after), capture_output=True, check=False)
    assert done.returncode == 0, done
    assert (directory / "x.py").read_bytes() == after


def test_equal_texts_have_no_diff() -> None:
    assert unified("x.py", b"a", b"a") == b""


def test_a_missing_end_is_marked_on_each_side() -> None:
    assert unified("x.py", b"a", b"b") == (
        b"--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
    )
