"""`tpuport server`: a language server, for editors. The only module that imports pygls."""

import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from tpuport import __version__
from tpuport.cli import tree
from tpuport.errors import TpuportError, UsageError
from tpuport.model import Finding, Outcome, Safety, Severity, Span, Status

if TYPE_CHECKING:
    from lsprotocol import types
    from pygls.lsp.server import LanguageServer


def server() -> None:
    """Serve an editor over standard input and output: findings as you type, and fixes for them.

    Findings and settings are those of `tpuport lint`. Needs the extra `lsp`.
    """
    try:
        built = build()
    except ImportError:
        raise UsageError(
            "the language server needs pygls, which is not installed", hint='pip install "tpuport[lsp]"'
        ) from None
    built.start_io()


@dataclass(frozen=True, slots=True)
class Text:
    """The text of one document in an editor, saved or not."""

    path: Path
    content: str

    @property
    def raw(self) -> bytes:
        """The bytes that saving it would write, as far as its own declaration of an encoding tells."""
        plain = self.content.encode(errors="surrogatepass")
        try:
            encoding, _ = tokenize.detect_encoding(BytesIO(plain).readline)
            return self.content.encode(encoding)
        except (SyntaxError, UnicodeError, LookupError):
            return plain

    def linted(self) -> tuple[tree.Tree, Outcome | None]:
        """What lint says of it, with the run that says it; None where the settings leave the file out."""
        run = tree.gather(
            [self.path], select=None, ignore=None, min_torch="", rules=None, force_exclude=True, given=self.raw
        )
        return run, next((item for item in run.items if isinstance(item, Outcome)), None)

    def fixed(self, run: tree.Tree, codes: frozenset[str]) -> str | None:
        """The text with the safe fixes of the rules in `codes`; None where they change nothing."""
        from tpuport import engine

        rules = tuple(rule for rule in run.task.rules if rule.code in codes)
        outcome = engine.settle(self.path, replace(run.task, rules=rules, fix=True), self.raw)
        return outcome.new if outcome.status is Status.CHANGED else None


def fixes(text: Text, first: int, last: int) -> Iterator[tuple[str, list[Finding], str]]:
    """For each rule with a safe fix on the lines: a title, the findings there that it fixes, and the new text.

    A fix takes along all that has to move together, and applies its rule to the whole text.
    """
    run, outcome = text.linted()
    found = outcome.findings if outcome else ()
    fixable = [finding for finding in found if finding.fixable and finding.safety is Safety.SAFE]
    here = [finding for finding in fixable if finding.span.line <= last and finding.span.end_line >= first]
    offered: set[frozenset[str]] = set()
    for code, rule in sorted({(finding.code, finding.rule) for finding in here}):
        chains = {finding.chain for finding in fixable if finding.code == code} - {None}
        codes = frozenset([code, *(finding.code for finding in found if finding.chain in chains)])
        if codes in offered:
            continue
        offered.add(codes)
        new = text.fixed(run, codes)
        if new is not None:
            own = [finding for finding in here if finding.code in codes]
            yield f"Fix every {rule} in this file ({', '.join(sorted(codes))})", own, new
    if here and (new := text.fixed(run, frozenset(rule.code for rule in run.task.rules))) is not None:
        yield "Fix all that tpuport can fix safely in this file", here, new


def build() -> "LanguageServer":
    """The server with all that it answers to."""
    from lsprotocol import types
    from pygls.lsp.server import LanguageServer
    from pygls.uris import to_fs_path

    built = LanguageServer("tpuport", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)

    def text_of(uri: str) -> Text:
        return Text(Path(to_fs_path(uri) or "untitled.py"), built.workspace.get_text_document(uri).source)

    def publish(uri: str) -> None:
        text = text_of(uri)
        try:
            _, outcome = text.linted()
        except TpuportError as error:
            built.window_log_message(types.LogMessageParams(types.MessageType.Error, f"tpuport: {error}"))
            return
        lines = text.content.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        found = outcome.findings if outcome else ()
        diagnostics = [diagnostic(finding, lines, _encoding(built)) for finding in found]
        built.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics))

    @built.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def _opened(params: types.DidOpenTextDocumentParams) -> None:
        publish(params.text_document.uri)

    @built.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def _changed(params: types.DidChangeTextDocumentParams) -> None:
        publish(params.text_document.uri)

    @built.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def _closed(params: types.DidCloseTextDocumentParams) -> None:
        built.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))

    @built.feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
    )
    def _actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        text = text_of(uri)
        lines = text.content.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        found = list(_fixes(text, params.range.start.line + 1, params.range.end.line + 1))
        return [
            types.CodeAction(
                title,
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[diagnostic(finding, lines, _encoding(built)) for finding in findings],
                edit=types.WorkspaceEdit(changes={uri: [_edit(text.content, lines, new, _encoding(built))]}),
            )
            for title, findings, new in found
        ]

    return built


def _fixes(text: Text, first: int, last: int) -> Iterator[tuple[str, list[Finding], str]]:
    try:
        yield from fixes(text, first, last)
    except TpuportError:
        return  # the settings are wrong, as `publish` has said


def _encoding(built: "LanguageServer") -> str:
    """How the editor counts columns."""
    from lsprotocol.types import PositionEncodingKind

    return PositionEncodingKind(built.workspace.position_encoding or "utf-16").value


def diagnostic(finding: Finding, lines: Sequence[str], encoding: str) -> "types.Diagnostic":
    """A finding as an editor shows it."""
    from lsprotocol import types

    severities = {
        Severity.ERROR: types.DiagnosticSeverity.Error,
        Severity.WARNING: types.DiagnosticSeverity.Warning,
        Severity.INFO: types.DiagnosticSeverity.Information,
    }
    return types.Diagnostic(
        _range(finding.span, lines, encoding),
        f"{finding.message}: {finding.reason}" if finding.reason else finding.message,
        severity=severities[finding.severity],
        code=finding.code,
        source="tpuport",
    )


def _range(span: Span, lines: Sequence[str], encoding: str) -> "types.Range":
    from lsprotocol import types

    def position(line: int, column: int) -> types.Position:
        return types.Position(line - 1, _units(lines[line - 1][:column], encoding))

    return types.Range(position(span.line, span.column), position(span.end_line, span.end_column))


def _units(text: str, encoding: str) -> int:
    widths = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
    name = encoding if encoding == "utf-8" else f"{encoding}-le"
    return len(text.encode(name, errors="surrogatepass")) // widths[encoding]


def _edit(content: str, lines: Sequence[str], new: str, encoding: str) -> "types.TextEdit":
    """The change from a document to `new`: the lines between what both begin and end with."""
    from lsprotocol import types

    after = new.split("\n")
    shared = min(len(lines), len(after))
    start = next((number for number in range(shared) if lines[number] != after[number]), shared)
    same_end = 0
    while same_end < shared - start and lines[-1 - same_end] == after[-1 - same_end]:
        same_end += 1
    old_end, new_end = len(lines) - same_end, len(after) - same_end
    newline = "\r\n" if "\r\n" in content else "\n"
    if same_end:  # whole lines, up to the beginning of the first that stays
        text = "".join(line + newline for line in after[start:new_end])
        return types.TextEdit(types.Range(types.Position(start, 0), types.Position(old_end, 0)), text)
    end = types.Position(len(lines) - 1, _units(lines[-1], encoding))
    return types.TextEdit(types.Range(types.Position(start, 0), end), newline.join(after[start:]))
