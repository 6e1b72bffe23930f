"""The language server, spoken to over its standard input and output as an editor does."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lint.conftest import Lint

pytest.importorskip("pygls")

SOURCE = """\
import torch

text = '𝄞'; device = 'cuda' if torch.cuda.is_available() else 'cpu'
x = torch.ones(2).to(device)
"""


class Editor:
    """One client of one server."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "tpuport", "server"]
        self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._number = 0

    def send(self, method: str, params: Any, **more: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        length = 0
        while line := self.process.stdout.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        message: dict[str, Any] = json.loads(self.process.stdout.read(length))
        return message

    def ask(self, method: str, params: Any) -> Any:
        self._number += 1
        self.send(method, params, id=self._number)
        while (message := self.read()).get("id") != self._number:
            pass
        assert "error" not in message
        return message["result"]

    def diagnostics(self) -> list[dict[str, Any]]:
        while (message := self.read()).get("method") != "textDocument/publishDiagnostics":
            pass
        found: list[dict[str, Any]] = message["params"]["diagnostics"]
        return found


@pytest.fixture
def editor(project: Path) -> Iterator[Editor]:
    client = Editor(project)
    with client.process:
        told = client.ask("initialize", {"processId": None, "rootUri": project.as_uri(), "capabilities": {}})
        assert told["serverInfo"]["name"] == "tpuport"
        client.send("initialized", {})
        yield client
        client.ask("shutdown", None)
        client.send("exit", None)
        assert client.process.wait(20) == 0


def opened(editor: Editor, file: Path, text: str) -> list[dict[str, Any]]:
    document = {"uri": file.as_uri(), "languageId": "python", "version": 1, "text": text}
    editor.send("textDocument/didOpen", {"textDocument": document})
    return editor.diagnostics()


def actions(editor: Editor, file: Path, line: int) -> list[dict[str, Any]]:
    place = {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 1}}
    params = {"textDocument": {"uri": file.as_uri()}, "range": place, "context": {"diagnostics": []}}
    found: list[dict[str, Any]] = editor.ask("textDocument/codeAction", params)
    return found


def applied(text: str, action: dict[str, Any]) -> str:
    ((edit,),) = action["edit"]["changes"].values()
    start, end = edit["range"]["start"], edit["range"]["end"]
    lines = text.splitlines(keepends=True)
    assert start["character"] == 0
    assert end["character"] == 0
    return "".join([*lines[: start["line"]], edit["newText"], *lines[end["line"] :]])


def test_findings_as_one_types_and_fixes_of_whole_chains(editor: Editor, project: Path) -> None:
    file = project / "unsaved.py"
    found = opened(editor, file, SOURCE)
    assert {(d["source"], d["range"]["start"]["line"]) for d in found} == {("tpuport", 2)}
    test = next(d for d in found if d["code"].startswith("TP3") or "is_available" in d["message"])
    assert test["range"]["start"]["character"] == SOURCE.splitlines()[2].index("torch.cuda") + 1  # 𝄞 is two in UTF-16
    fixes = actions(editor, file, 2)
    assert [fix["title"] for fix in fixes] == [
        "Fix every device-literal in this file (TP102, TP110)",
        "Fix all that tpuport can fix safely in this file",
    ]
    for fix in fixes:
        new = applied(SOURCE, fix)
        assert "cuda" not in new
        compile(new, "new", "exec")
    change = {"textDocument": {"uri": file.as_uri(), "version": 2}, "contentChanges": [{"text": new}]}
    editor.send("textDocument/didChange", change)
    assert editor.diagnostics() == []
    assert actions(editor, file, 2) == []


def test_what_does_not_parse_or_is_excluded_has_no_findings(editor: Editor, project: Path) -> None:
    assert opened(editor, project / "half.py", "x.cuda(\n") == []
    assert actions(editor, project / "half.py", 0) == []
    assert opened(editor, project / "build" / "made.py", SOURCE) == []


def test_line_ends_stay(editor: Editor, project: Path) -> None:
    text = SOURCE.replace("\n", "\r\n")
    assert opened(editor, project / "dos.py", text)
    new = applied(text, actions(editor, project / "dos.py", 2)[-1])
    assert new.count("\r\n") == new.count("\n")


def test_a_wrong_setting_is_logged_and_ends_nothing(editor: Editor, project: Path) -> None:
    (project / "tpuport.toml").write_text("nonsense = 1\n")
    document = {"uri": (project / "a.py").as_uri(), "languageId": "python", "version": 1, "text": SOURCE}
    editor.send("textDocument/didOpen", {"textDocument": document})
    while (message := editor.read()).get("method") != "window/logMessage":
        pass
    assert "nonsense" in message["params"]["message"]
    (project / "tpuport.toml").unlink()
    assert opened(editor, project / "b.py", SOURCE)


def test_without_the_extra_it_says_what_to_install(lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygls.lsp.server", None)
    done = lint(command="server")
    assert done.code == 2
    assert 'pip install "tpuport[lsp]"' in done.err
