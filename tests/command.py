"""The command line, run in this process as the installed script does, with no interpreter to start."""

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from tpuport.cli import app


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def tpuport(*arguments: object, cwd: Path, text: bytes = b"", **environment: str) -> Done:
    """Run a command in `cwd`, with `text` on standard input and what `environment` adds."""
    given, out, err = (io.TextIOWrapper(io.BytesIO(content), encoding="utf-8") for content in (text, b"", b""))
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "stdin", given),
        mock.patch.object(sys, "argv", ["tpuport", *map(str, arguments)]),
        mock.patch.dict(os.environ, {"NO_COLOR": "1", "COLUMNS": "100", **environment}),
    ):
        try:
            app.main()
            raise AssertionError("the command did not exit")
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Done(code, *(_written(stream) for stream in (out, err)))


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()
